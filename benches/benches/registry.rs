//! Measures a turn's separate registry, and merging registries.

use std::{hint::black_box, time::Instant};

use toolcrib_benches::{Cell, Outcome, Table, median, micros, print, tool, tools};
use toolcrib_core::{Tool, ToolRegistry};

/// Number of repetitions; the figures are medians.
const TIMES: usize = 200;

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench registry";

fn main() -> Outcome {
    print(&[copies()?, merges()?])
}

/// An edit of a copy.
type Edit<'a> = &'a dyn Fn(&ToolRegistry);

/// A copy of a registry, as created for a turn on request, and its first edit.
fn copies() -> Outcome<Table> {
    const GOAL: (f64, u64) = (50.0, 5);
    let (new, other) = (tool(10_000)?, tool(7)?);
    let edits: [(&str, Edit<'_>); 5] = [
        ("none", &|_| {}),
        ("a tool is registered", &|copy| drop(copy.register(new.clone()))),
        ("a tool is overwritten", &|copy| drop(copy.overwrite(other.clone()))),
        ("a tool is taken out", &|copy| drop(copy.unregister("look_up_0007"))),
        ("a tool is hidden", &|copy| {
            copy.hide("look_up_0007");
        }),
    ];
    let mut rows = Vec::new();
    for count in [100, 10_000] {
        let baseline = ToolRegistry::try_from(tools(count)?)?;
        for (name, edit) in edits {
            let copied = || {
                let copy = baseline.clone();
                edit(&copy);
                black_box(copy)
            };
            let mut times = Vec::new();
            for _ in 0..TIMES {
                let began = Instant::now();
                let copy = copied();
                times.push(micros(began.elapsed()));
                drop(copy);
            }
            let allocations = allocation_counter::measure(|| drop(copied()));
            rows.push(vec![
                Cell::from(count as u64),
                name.into(),
                median(times).into(),
                GOAL.0.into(),
                allocations.count_total.into(),
                GOAL.1.into(),
            ]);
        }
    }
    Ok(Table {
        title: "A turn's own registry",
        command: COMMAND,
        columns: vec!["tools", "first edit of the copy", "µs", "goal, µs", "allocations", "goal"],
        rows,
    })
}

/// Ten registries of a thousand tools each.
fn merges() -> Outcome<Table> {
    const GOAL: f64 = 2.0;
    let registry = |tools: Vec<Tool>| ToolRegistry::try_from(tools);
    let thousands = (0..10).map(|at| (at * 1000..(at + 1) * 1000).map(tool).collect());
    let different = thousands
        .map(|tools: Result<Vec<_>, _>| Ok(registry(tools?)?))
        .collect::<Outcome<Vec<_>>>()?;
    let same = registry(tools(1000)?)?;
    let same: Vec<_> = (0..10).map(|_| same.clone()).collect();
    let mut rows = Vec::new();
    for (name, registries, expected) in
        [("all different", &different, 10_000), ("the same ten times", &same, 1000)]
    {
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let began = Instant::now();
            let merged = ToolRegistry::merge(registries)?;
            times.push(micros(began.elapsed()) / 1000.0);
            if black_box(merged).len() != expected {
                return Err("a merge lost something".into());
            }
        }
        rows.push(vec![name.into(), median(times).into(), GOAL.into()]);
    }
    Ok(Table {
        title: "A merge of 10 registries of 1,000 tools",
        command: COMMAND,
        columns: vec!["tools", "ms", "goal, ms"],
        rows,
    })
}
