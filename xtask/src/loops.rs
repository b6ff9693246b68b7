//! Runs the agent loop beside those of other frameworks, which it installs, and writes the times into
//! `docs/benchmarks.md`.

use std::path::PathBuf;

use tinyjson::JsonValue;

use crate::{
    bench,
    example::items,
    packages, peers,
    problem::Problem,
    workspace::{Workspace, output, run},
};

const FOLDER: &str = "benches/loops";
const PACKAGE: &str = "benches/loops/package.json";
const LOCK: &str = "benches/loops/package-lock.json";
const REQUIREMENTS: &str = "benches/loops/requirements.txt";

/// Each program runs this often, all in turns: a disturbance affects all alike.
const ROUNDS: usize = 5;

/// The iterations that count as a run's first, and as its last.
const ENDS: usize = 20;

const TOOLS: [u32; 2] = [10, 1_000];

/// A framework, as it is named in the table.
#[derive(Clone, Copy)]
struct Framework {
    name: &'static str,
    run: fn(&Workspace, u32) -> Result<String, Problem>,
}

const FRAMEWORKS: [Framework; 4] = [
    Framework { name: "toolcrib", run: toolcrib },
    Framework { name: "rig 0.44 (Rust)", run: rig },
    Framework { name: "Vercel ai 7.0.173 (Node 24)", run: ai },
    Framework { name: "pydantic-ai 2.68 (Python)", run: pydantic_ai },
];

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("loops")
}

/// Installs the frameworks into a separate folder, unless these versions are there. The peers must be
/// installed: they provide Node.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    let (folder, node) = (folder(workspace), peers::node(workspace));
    let works = || packages::works(workspace, &folder) && folder.join("node_modules").exists();
    packages::once(workspace, &folder, &[REQUIREMENTS, PACKAGE, LOCK], works, || {
        packages::install(workspace, &folder, REQUIREMENTS)?;
        packages::npm_ci(workspace, &folder, &node, [PACKAGE, LOCK])
    })?;
    let manifest = workspace.root().join(FOLDER).join("rig/Cargo.toml");
    let mut cargo = workspace.cargo(["build", "--release", "--locked", "--manifest-path"]);
    cargo.arg(manifest).arg("--target-dir").arg(folder);
    run(&mut cargo, "fix the program for the version of rig that it names")
}

/// The times of one run, in microseconds.
struct Times {
    wall: f64,
    cpu: f64,
    first: f64,
    last: f64,
}

pub(crate) fn measure(workspace: &Workspace) -> Result<(), Problem> {
    let mut found = bench::circumstances(workspace)?;
    found.push_str(
        "\n| loop | tools | wall time of an iteration, µs | as a multiple of ours | processor time, µs | \
         last 20 / first 20 |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for tools in TOOLS {
        let mut runs: [Vec<Times>; FRAMEWORKS.len()] = Default::default();
        for _ in 0..ROUNDS {
            for (framework, runs) in FRAMEWORKS.iter().zip(&mut runs) {
                let printed = (framework.run)(workspace, tools)?;
                runs.push(times(&printed).ok_or_else(|| {
                    let problem = format!("{} printed no times: {printed}", framework.name);
                    Problem::new(problem, "look at benches/loops")
                })?);
            }
        }
        let of = |runs: &[Times], figure: fn(&Times) -> f64| median(runs.iter().map(figure));
        let ours = runs.first().map_or(0.0, |runs| of(runs, |times| times.wall));
        for (framework, runs) in FRAMEWORKS.iter().zip(&runs) {
            let wall = of(runs, |times| times.wall);
            found.push_str(&format!(
                "| {} | {tools} | {} | {:.1} | {} | {:.2} |\n",
                framework.name,
                figure(wall),
                wall / ours,
                figure(of(runs, |times| times.cpu)),
                of(runs, |times| times.last / times.first),
            ));
        }
    }
    println!("{found}");
    bench::write(workspace, bench::PAGE, "bench loops", &found)
}

/// Three significant digits.
fn figure(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn times(printed: &str) -> Option<Times> {
    let run: JsonValue = printed.parse().ok()?;
    let of = |name: &str| -> Vec<f64> {
        items(&run, name).filter_map(|time| time.get::<f64>().copied()).collect()
    };
    let (cpu, wall) = (of("iterations"), of("wall"));
    let first = median(wall.iter().copied().take(ENDS));
    let last = median(wall.iter().copied().rev().take(ENDS));
    let times = Times { wall: median(wall), cpu: median(cpu), first, last };
    (times.first > 0.0).then_some(times)
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

const HELP: &str = "look at the programs in benches/loops";

fn toolcrib(workspace: &Workspace, tools: u32) -> Result<String, Problem> {
    let menu = if tools == 10 { "10 tools" } else { "1,000 tools" };
    let mut cargo = workspace.cargo(["bench", "--quiet", "--package", "toolcrib-benches"]);
    cargo.args(["--bench", "loop", "--", "--one"]).arg(format!("[\"Plain\",\"{menu}\"]"));
    output(&mut cargo, HELP)
}

fn rig(workspace: &Workspace, tools: u32) -> Result<String, Problem> {
    let program = folder(workspace).join("release").join("bench-loop-rig");
    output(workspace.program(program).arg(tools.to_string()), HELP)
}

fn ai(workspace: &Workspace, tools: u32) -> Result<String, Problem> {
    let program = workspace.root().join(FOLDER).join("ai.mjs");
    let mut node = workspace.program(peers::node(workspace).join("bin/node"));
    node.current_dir(folder(workspace)).arg(program).arg(tools.to_string());
    output(&mut node, HELP)
}

fn pydantic_ai(workspace: &Workspace, tools: u32) -> Result<String, Problem> {
    let program = workspace.root().join(FOLDER).join("pydantic-ai.py");
    let mut python = workspace.program(packages::interpreter(&folder(workspace)));
    output(python.arg(program).arg(tools.to_string()), HELP)
}
