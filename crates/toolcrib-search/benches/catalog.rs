//! Recall on the definitions of `examples/five-hundred`: needs in a user's words, each with the tools
//! that answer it. No weight was chosen on them.
//!
//! `cargo xtask search-bench` runs it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a program for developers: it reads files, prints, and may stop at an error"
)]

use std::{env, error::Error, fs, path::Path};

use serde_json::{Value, json};
use toolcrib_core::Tool;
use toolcrib_search::Index;

const SERVERS: &str = "../../examples/five-hundred/servers";
const NEEDS: &str = "benches/needs.tsv";

fn main() -> Result<(), Box<dyn Error>> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tools = Vec::new();
    let mut files: Vec<_> = fs::read_dir(crate_folder.join(SERVERS))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "json")) {
        let server = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let listed: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
        for tool in listed["tools"].as_array().into_iter().flatten() {
            tools.push(read(server, tool)?);
        }
    }
    let index = Index::new(&tools);
    let needs = fs::read_to_string(crate_folder.join(NEEDS))?;
    let needs: Vec<(&str, Vec<&str>)> = needs
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(need, right)| (need, right.split('|').collect()))
        .collect();
    let mut recall = [0_usize; 4];
    for (need, right) in &needs {
        let found = index.search(need, 10);
        let rank = found.iter().position(|hit| right.contains(&hit.tool.name().as_str()));
        for (count, within) in recall.iter_mut().zip([1, 3, 5, 10]) {
            *count += usize::from(rank.is_some_and(|rank| rank < within));
        }
        if env::args().any(|argument| argument == "--missed") && rank.is_none_or(|rank| rank >= 5) {
            let names: Vec<_> = found.iter().take(5).map(|hit| hit.tool.name().as_str()).collect();
            println!("{need}: {rank:?} {}", names.join(" "));
        }
    }
    println!("| tools | needs | R@1 | R@3 | R@5 | R@10 |\n|---|---|---|---|---|---|");
    let [r1, r3, r5, r10] = recall.map(|count| count as f64 / needs.len() as f64);
    println!("| {} | {} | {r1:.3} | {r3:.3} | {r5:.3} | {r10:.3} |", tools.len(), needs.len());
    Ok(())
}

fn read(server: &str, tool: &Value) -> Result<Tool, Box<dyn Error>> {
    let text = |key: &str| tool[key].as_str().unwrap_or_default();
    let schema = match &tool["inputSchema"] {
        Value::Object(schema) => Value::Object(schema.clone()),
        _ => json!({ "type": "object" }),
    };
    let builder = Tool::builder(format!("mcp__{server}__{}", text("name")))
        .mcp_server(server)
        .description(text("description"))
        .input_schema(schema);
    Ok(builder.handler(|_: Value, _| async { "" })?)
}
