//! What is written before a function stands in its tool's definition.

use std::time::Duration;

use serde_json::json;
use toolcrib::{
    prelude::*,
    tool::{Annotations, Capabilities, Lifetime, OnCollision},
};

use crate::support::{call, made, text};

/// Adds up.
#[tool]
async fn add(left: i64, right: i64) -> i64 {
    left + right
}

#[tokio::test]
async fn a_function_becomes_a_tool_and_stays_a_function() {
    assert_eq!(add(1, 2).await, 3);
    let tool = made(add_tool());
    assert_eq!(tool.name(), "add");
    assert_eq!(tool.description(), "Adds up.");
    assert_eq!(text(tool, json!({ "left": 1, "right": 2 })).await, "3");
}

#[test]
fn nothing_is_declared_that_is_not_written() {
    let tool = made(add_tool());
    assert_eq!(tool.toolset(), None);
    assert_eq!(tool.annotations(), Annotations::default());
    assert_eq!(tool.timeout(), None);
    assert_eq!(tool.max_result_chars(), None);
    assert!(!tool.untrusted() && !tool.always_include() && !tool.sequential());
    assert!(!tool.runs_inline());
    assert_eq!(tool.ephemeral(), None);
    assert_eq!(tool.on_collision(), OnCollision::Fail);
    assert_eq!(*tool.capabilities(), Capabilities::none());
}

/// Not what a model reads.
#[tool(
    name = "weather-now",
    description = "The weather.",
    toolset = "weather",
    read_only,
    idempotent,
    sequential,
    inline,
    timeout = "2m 30s",
    max_result_chars = 8_000,
    untrusted,
    always_include,
    ephemeral,
    on_collision = "replace",
    capabilities(
        network = ["api.example.com", "*.example.org"],
        process = ["git"],
        secrets = ["WEATHER_KEY"],
    ),
)]
async fn weather(city: String) -> String {
    format!("{city}: sunny")
}

#[test]
fn every_option_lands_in_the_definition() {
    let tool = made(weather_tool());
    assert_eq!(tool.name(), "weather-now");
    assert_eq!(tool.description(), "The weather.");
    assert_eq!(tool.toolset(), Some("weather"));
    let annotations = Annotations { read_only: true, destructive: false, idempotent: true };
    assert_eq!(tool.annotations(), annotations);
    assert!(tool.sequential() && tool.runs_inline());
    assert_eq!(tool.timeout(), Some(Duration::from_secs(150)));
    assert_eq!(tool.max_result_chars(), Some(8000));
    assert!(tool.untrusted() && tool.always_include());
    assert_eq!(tool.ephemeral(), Some(Lifetime::Iteration));
    assert_eq!(tool.on_collision(), OnCollision::Replace);
    let capabilities = Capabilities::none()
        .network(["api.example.com", "*.example.org"])
        .process(["git"])
        .secrets(["WEATHER_KEY"]);
    assert_eq!(*tool.capabilities(), capabilities);
}

fn printer() -> Result<(), &'static str> {
    Err("no printer is connected")
}

/// Prints.
#[tool(available_if = printer)]
fn print() {}

/// Always there.
#[tool(available_if = || true)]
fn there() {}

#[test]
fn a_function_or_a_closure_says_whether_the_tool_is_available() {
    let reason = made(print_tool()).check_available().unwrap_err();
    assert_eq!(&*reason, "no printer is connected");
    assert_eq!(made(there_tool()).check_available(), Ok(()));
    assert!(!made(add_tool()).has_availability_check());
}

/// Forgets all orders.
#[tool(destructive, ephemeral = "turn", on_collision = "keep", timeout = "500ms")]
fn forget() {}

/// Stays for a step.
#[tool(ephemeral = "iteration", on_collision = "fail")]
fn fleeting() {}

/// Stays for the conversation.
#[tool(ephemeral = "session")]
fn bookmark() {}

#[test]
fn options_with_a_choice_take_each_of_it() {
    let forget = made(forget_tool());
    assert!(forget.annotations().destructive);
    assert_eq!(forget.ephemeral(), Some(Lifetime::Turn));
    assert_eq!(forget.on_collision(), OnCollision::Keep);
    assert_eq!(forget.timeout(), Some(Duration::from_millis(500)));
    let fleeting = made(fleeting_tool());
    assert_eq!(fleeting.ephemeral(), Some(Lifetime::Iteration));
    assert_eq!(fleeting.on_collision(), OnCollision::Fail);
    assert_eq!(made(bookmark_tool()).ephemeral(), Some(Lifetime::Session));
}

#[test]
fn the_origin_is_the_line_of_the_attribute() {
    let origin = made(add_tool()).origin().to_owned();
    let (file, line) = origin.rsplit_once(':').unwrap();
    assert!(file.ends_with("tests/macros/definition.rs"), "{origin}");
    let line: usize = line.parse().unwrap();
    let source = include_str!("definition.rs").lines().nth(line - 1).unwrap();
    assert_eq!(source, "#[tool]", "{origin}");
}

/// Orders of a customer.
///
///  - `open`: not yet paid
///  - "closed": all others
///
/// ```json
/// { "customer": 7 }
/// ```
#[tool]
fn orders(
    /// The customer's number,
    /// as on the **invoice**.
    customer: u16,
) -> u16 {
    customer
}

#[doc = include_str!("described.md")]
#[tool]
fn described() {}

#[test]
fn doc_comments_are_taken_word_for_word() {
    let tool = made(orders_tool());
    assert_eq!(
        tool.description(),
        "Orders of a customer.\n\n - `open`: not yet paid\n - \"closed\": all others\n\n\
         ```json\n{ \"customer\": 7 }\n```"
    );
    let customer = &tool.input_schema()["properties"]["customer"];
    assert_eq!(customer["description"], "The customer's number,\nas on the **invoice**.");
    assert_eq!(made(described_tool()).description(), include_str!("described.md").trim());
}

/// Renamed by its keyword.
#[tool]
async fn r#match(r#type: String, r#ref: Option<u8>) -> String {
    format!("{type} {ref:?}", r#type = r#type, r#ref = r#ref)
}

#[tokio::test]
async fn raw_identifiers_are_called_what_they_mean() {
    let tool = made(match_tool());
    assert_eq!(tool.name(), "match");
    assert_eq!(text(tool, json!({ "type": "x", "ref": 1 })).await, "x Some(1)");
}

mod elsewhere {
    //! The facade under another path.
    pub(crate) mod crib {
        pub(crate) use toolcrib::*;
    }
}

/// Finds the facade where it is said to be.
#[tool(crate = "crate::definition::elsewhere::crib")]
async fn found(at: u8) -> u8 {
    at
}

#[tokio::test]
async fn the_path_of_the_facade_can_be_declared() {
    assert_eq!(text(found_tool(), json!({ "at": 1 })).await, "1");
}

#[tokio::test]
async fn a_tool_within_a_function_uses_its_items() {
    const FACTOR: u32 = 7;
    /// Multiplies.
    #[tool]
    fn multiply(number: u32) -> u32 {
        number * FACTOR
    }
    assert_eq!(text(multiply_tool(), json!({ "number": 6 })).await, "42");
}

macro_rules! scaled {
    ($name:ident, $number:ty, $state:ty, $by:expr) => {
        /// Scales.
        #[tool]
        fn $name(State(base): $state, number: $number, scale: Option<$number>) -> $number {
            base + number * scale.unwrap_or($by)
        }
    };
}
scaled!(tenfold, u32, State<u32>, 10);

#[tokio::test]
async fn a_tool_may_be_written_by_a_macro() {
    assert_eq!(text(tenfold_tool(1), json!({ "number": 6 })).await, "61");
}

/// Only there when it is asked for.
#[tool]
#[cfg(any())]
fn absent() {}

/// Takes what its configuration has.
#[tool]
#[allow(dead_code, reason = "what makes it is not called under every configuration")]
fn configured(always: u8, #[cfg(any())] never: u8, #[cfg(not(any()))] too: u8) -> u8 {
    always + too
}

#[tokio::test]
async fn cfg_reaches_into_the_parameters() {
    let result = call(configured_tool(), json!({ "always": 1, "never": 1, "too": 2 })).await;
    assert_eq!(result.code, Some(ErrorCode::InputInvalid));
    assert_eq!(text(configured_tool(), json!({ "always": 1, "too": 2 })).await, "3");
}
