//! Names in somebody's crate that mean something else than they usually do.

#![allow(dead_code, unused_macros, reason = "they only stand in the way")]

use serde_json::json;
use toolcrib::tool;

use crate::support::text;

mod std {}
mod core {}
mod serde {}
mod schemars {}
mod toolcrib_core {}

type Result<T> = ::core::result::Result<T, ::std::io::Error>;
struct Option;
struct String;
struct Vec;
struct Box;
struct Ok;
struct Err;
struct Arc;
struct Tool;
struct ToolOutput;
struct InvalidToolError;
struct ReturnType;
struct Output;
struct Data;
struct ClonedState;
struct __Arguments;
struct Json;
trait Clone {}
trait Fn {}
trait Send {}
trait Into {}
trait From {}
trait Default {}
trait Deserialize {}
trait Serialize {}
trait JsonSchema {}

macro_rules! concat {
    ($($any:tt)*) => {
        compile_error!("not this one")
    };
}
macro_rules! file {
    () => {
        compile_error!("not this one")
    };
}

/// Halves.
#[tool(timeout = "1s", capabilities(secrets = ["KEY"]), ephemeral, on_collision = "keep")]
async fn halve(
    /// An even number.
    count: u32,
    #[serde(default)] twice: bool,
) -> Result<u32> {
    match (count % 2, twice) {
        (1, _) => ::core::result::Result::Err(::std::io::Error::other("it is odd")),
        (_, true) => ::core::result::Result::Ok(count / 4),
        _ => ::core::result::Result::Ok(count / 2),
    }
}

/// Something with a tool.
struct Holder(u32);

#[tool]
impl Holder {
    /// What it holds.
    #[tool]
    fn held(&self, factor: u32) -> u32 {
        self.0 * factor
    }
}

#[tokio::test]
async fn shadowed_names_do_not_change_the_generated_code() {
    assert_eq!(text(halve_tool(), json!({ "count": 4, "twice": true })).await, "1");
    let holder = ::std::sync::Arc::new(Holder(2));
    for tool in holder.tools() {
        assert_eq!(text(tool, json!({ "factor": 3 })).await, "6");
    }
}
