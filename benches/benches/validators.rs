//! Measures checking a tool's schema, and compiling it at the tool's first call.

use std::time::Instant;

use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use toolcrib_benches::{Cell, Outcome, Table, engine, median, micros, print, runtime};
use toolcrib_core::{InvalidToolError, Tool, ToolCall, ToolContext, ToolResult};
use toolcrib_engine::{Iteration, TurnOptions};

/// Number of tools of each kind. Each has a unique schema, because schemas of equal content share a
/// validator. An engine keeps the compiled schemas of this many tools with ten patterns each, and not of
/// twice as many.
const TOOLS: usize = 50;

/// The schema of a property, by its number.
type Schema = fn(usize) -> Value;

fn main() -> Outcome {
    let runtime = runtime()?;
    let plain: Schema = |_| json!({ "type": "string" });
    let pattern: Schema = |at| {
        let pattern = format!("^[a-z]{{1,{}}}$", at + 1);
        json!({ "type": "string", "pattern": pattern })
    };
    let list: Schema = |_| {
        let inner: Map<_, _> =
            (0..5).map(|at| (format!("f{at}"), json!({ "type": "string" }))).collect();
        json!({ "type": "array", "items": { "type": "object", "properties": inner } })
    };
    let kinds = [
        ("1 string", 1, plain),
        ("10 strings", 10, plain),
        ("50 strings", 50, plain),
        ("10 strings with a pattern", 10, pattern),
        ("10 lists of objects of 5", 10, list),
    ];
    let rows = kinds
        .into_iter()
        .map(|(name, properties, schema)| row(&runtime, name, properties, schema))
        .collect::<Result<_, _>>()?;
    print(&[Table {
        title: "The first call of a tool",
        command: "cargo bench -p toolcrib-benches --bench validators",
        columns: vec![
            "properties",
            "schema, bytes",
            "looked at, µs",
            "first call, µs",
            "second call, µs",
            "so compiling, µs",
        ],
        rows,
    }])
}

fn row(runtime: &Runtime, name: &str, properties: usize, schema: Schema) -> Outcome<Vec<Cell>> {
    let tools =
        (0..TOOLS).map(|number| tool(number, properties, schema)).collect::<Result<Vec<_>, _>>()?;
    let size = tools.first().map_or(0, |tool| tool.input_schema().to_string().len());
    // One-time work of the process is not part of any tool.
    engine().tool(tool(TOOLS, properties, schema)?).build()?;

    let began = Instant::now();
    let engine = engine().tools(tools).build()?;
    let looked_at = micros(began.elapsed()) / TOOLS as f64;
    runtime.block_on(async {
        let mut turn = engine.turn(TurnOptions::default())?;
        let mut iteration = turn.iteration().await?;
        let first = calls(&mut iteration).await?;
        let second = calls(&mut iteration).await?;
        Ok(vec![
            name.into(),
            (size as u64).into(),
            looked_at.into(),
            first.into(),
            second.into(),
            (first - second).into(),
        ])
    })
}

/// A tool with optional properties of one kind.
fn tool(number: usize, properties: usize, schema: Schema) -> Result<Tool, InvalidToolError> {
    let properties: Map<_, _> =
        (0..properties).map(|at| (format!("p{number}_{at}"), schema(at))).collect();
    Tool::builder(name(number))
        .description("Takes anything.")
        .input_schema(json!({
            "type": "object", "properties": properties, "additionalProperties": false,
        }))
        .handler(|_: Value, _: ToolContext| async {})
}

fn name(number: usize) -> String {
    format!("tool_{number}")
}

/// The median time of one call of each tool, in microseconds.
async fn calls(iteration: &mut Iteration) -> Outcome<f64> {
    let mut times = Vec::with_capacity(TOOLS);
    for number in 0..TOOLS {
        let call = ToolCall::new("call_1", name(number), json!({}));
        let began = Instant::now();
        let results = iteration.execute(vec![call]).await;
        times.push(micros(began.elapsed()));
        if !results.iter().all(ToolResult::is_ok) {
            return Err(format!("a call of `{}` failed", name(number)).into());
        }
    }
    Ok(median(times))
}
