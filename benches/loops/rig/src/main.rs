//! rig: one run of its loop with its own scripted model. Prints the times of its iterations as JSON.

use std::{
    env,
    error::Error,
    sync::{Arc, Mutex},
    time::Instant,
};

use rig::{
    AgentBuilder,
    message::ToolName,
    test_utils::{MockCompletionModel, MockTurn},
    tool::{DynamicTool, ToolOutput},
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

const ITERATIONS: usize = 200;

/// The processor time of the process and the time of the clock, in microseconds, at each call of the tool.
type Starts = Arc<Mutex<Vec<[f64; 2]>>>;

fn look_up(number: usize, starts: &Starts, began: Instant) -> Result<DynamicTool, Box<dyn Error>> {
    let starts = Arc::clone(starts);
    let schema = json!({
        "type": "object",
        "properties": {
            "number": {
                "type": "integer",
                "minimum": 0,
                "description": format!("The record's number in ledger {number}."),
            },
            "details": { "type": "boolean", "description": "Whether to add its history." },
        },
        "required": ["number"],
        "additionalProperties": false,
    });
    let description = format!("Looks a record up in ledger {number} by its number.");
    let name = ToolName::new(format!("look_up_{number:04}"))?;
    Ok(DynamicTool::new(name, description, schema, move |args| {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = cpu.tv_sec as f64 * 1e6 + cpu.tv_nsec as f64 / 1e3;
        starts.lock().unwrap().push([cpu, began.elapsed().as_secs_f64() * 1e6]);
        let number = args["number"].clone();
        Box::pin(async move { Ok(ToolOutput::text(format!("record {number}: open"))) })
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let tools: usize = env::args().nth(1).ok_or("write the number of tools")?.parse()?;
    let (starts, began) = (Starts::default(), Instant::now());
    let tools = (0..tools).map(|number| look_up(number, &starts, began));
    let tools = tools.collect::<Result<Vec<_>, _>>()?;
    let calls = (1..=ITERATIONS).map(|number| {
        MockTurn::tool_call(format!("call_{number}"), "look_up_0007", json!({ "number": 1042 }))
    });
    let model = MockCompletionModel::from_turns(calls.chain([MockTurn::text("Done.")]));
    let agent = AgentBuilder::new(model).dynamic_tools(tools).build();
    let answer = agent.prompt("Read the ledgers.").max_turns(ITERATIONS + 1).await?;
    let starts = starts.lock().unwrap().clone();
    if answer.output() != "Done." || starts.len() != ITERATIONS {
        return Err(format!("it ended otherwise: {}", answer.output()).into());
    }
    let times = |at: usize| -> Vec<f64> {
        starts.windows(2).map(|pair| pair[1][at] - pair[0][at]).collect()
    };
    println!("{}", json!({ "iterations": times(0), "wall": times(1) }));
    Ok(())
}
