//! The spans of a run, for any subscriber of the crate `tracing`: here one that prints their tree.
//!
//! `cargo run -p example-tracing` prints it. For times and fields, use `tracing_subscriber::fmt` or an
//! exporter of OpenTelemetry instead of `Tree`.
#![allow(clippy::print_stdout, reason = "a program for people")]

use toolcrib::{models::ScriptedModel, prelude::*};
use tracing::{Subscriber, span};
use tracing_subscriber::{
    layer::{Context, Layer, SubscriberExt as _},
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

/// The state of an order. Use it when a user asks where an order is.
#[tool(read_only)]
async fn find_order(order: u32) -> String {
    format!("order {order} left the warehouse this morning")
}

const SCRIPT: &str = r#"
[[rule]]
not_called = "find_order"
calls = [{ tool = "find_order", args = { order = 1042 } }]

[[rule]]
text = "It left the warehouse this morning."
"#;

/// Prints the name of each new span, below the span that it is in.
struct Tree;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Tree {
    fn on_new_span(&self, _: &span::Attributes<'_>, id: &span::Id, cx: Context<'_, S>) {
        let Some(span) = cx.span(id) else { return };
        let depth = span.scope().count();
        println!("{:width$}{}", "", span.name(), width = 2 * depth - 2);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::registry().with(Tree).init();
    let model = ScriptedModel::from_toml("script", SCRIPT)?;
    let agent = Agent::builder().model(model).tool(find_order_tool()).build()?;
    agent.engine().events().write_spans();
    println!("{}", agent.run("Where is order 1042?", TurnOptions::default()).await.into_answer()?);
    Ok(())
}
