//! Compares the instructions of operations at two sizes: what grows faster than its limit fails.

use std::{collections::HashMap, fs};

use tinyjson::JsonValue;

use super::program::{BROKEN, Program, counting, folder, total};
use crate::{
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// A command, over projects of two sizes.
struct Command {
    /// What `growth --fill` creates.
    kind: &'static str,
    sizes: [u32; 2],
    args: &'static [&'static str],
}

/// The limit of commands, over projects of which one is ten times as large as the other.
const LINEAR: f64 = 12.0;

const COMMANDS: [Command; 14] = [
    Command { kind: "tools", sizes: [1_000, 10_000], args: &["check"] },
    Command { kind: "tools", sizes: [1_000, 10_000], args: &["menu", "--offline"] },
    Command { kind: "rules", sizes: [1_000, 10_000], args: &["check"] },
    Command { kind: "rules", sizes: [1_000, 10_000], args: &["menu", "--offline"] },
    Command { kind: "skills", sizes: [1_000, 10_000], args: &["check"] },
    Command { kind: "skills", sizes: [1_000, 10_000], args: &["menu", "--offline"] },
    Command { kind: "servers", sizes: [10, 100], args: &["check"] },
    Command { kind: "servers", sizes: [10, 100], args: &["menu", "--offline"] },
    Command { kind: "sessions", sizes: [1_000, 10_000], args: &["runs"] },
    Command { kind: "sessions", sizes: [1_000, 10_000], args: &["usage"] },
    Command { kind: "calls", sizes: [1_000, 10_000], args: &["runs"] },
    Command { kind: "calls", sizes: [1_000, 10_000], args: &["show", "calls"] },
    Command { kind: "calls", sizes: [1_000, 10_000], args: &["export", "calls"] },
    Command { kind: "calls", sizes: [1_000, 10_000], args: &["trace", "calls"] },
];

/// Counts every operation, prints its growth, and returns those beyond their limit.
pub(super) fn beyond_limits(workspace: &Workspace) -> Result<Vec<String>, Problem> {
    let growth = Program::built(workspace, "toolcrib-benches", "growth")?;
    let toolcrib = Program::built(workspace, "toolcrib-cli", "toolcrib")?;
    let names = output(growth.command(workspace).arg("--list"), BROKEN)?;
    let mut beyond = Vec::new();
    let mut judge = |name: &str, sizes: [f64; 2], limit: f64, counted: [u64; 2]| {
        let ratio = counted[1] as f64 / counted[0] as f64;
        let [small, large] = sizes;
        let [before, after] = counted;
        let text = format!("{name}: {before} at {small}, {after} at {large}: {ratio:.2} times");
        eprintln!("{text}");
        if ratio > limit {
            beyond.push(format!("{text}, at most {limit} are permitted"));
        }
    };
    for name in names.lines() {
        let Counted { sizes, limit, instructions } = operation(workspace, &growth, name)?;
        judge(name, sizes, limit, instructions);
    }
    for Command { kind, sizes, args } in &COMMANDS {
        let name = format!("`toolcrib {}` with {kind}", args.join(" "));
        let counted = sizes.map(|size| command(workspace, &growth, &toolcrib, kind, size, args));
        let [small, large] = counted;
        judge(&name, sizes.map(f64::from), LINEAR, [small?, large?]);
    }
    Ok(beyond)
}

/// The counts of an operation.
struct Counted {
    sizes: [f64; 2],
    limit: f64,
    instructions: [u64; 2],
}

/// Counts an operation of `growth` between its marks.
fn operation(workspace: &Workspace, growth: &Program, name: &str) -> Result<Counted, Problem> {
    let file = folder(workspace)?.join(format!("growth-{name}.out"));
    let mut valgrind = counting(workspace, &file);
    valgrind.arg("--dump-before=*counted_mark*");
    let said = output(valgrind.arg(growth.path()).arg(name), BROKEN)?;
    let read = || {
        let said: HashMap<String, JsonValue> = said.parse::<JsonValue>().ok()?.try_into().ok()?;
        let sizes: Vec<_> = said.get("sizes")?.get::<Vec<JsonValue>>()?.iter().collect();
        let [small, large] = sizes[..] else { return None };
        // The first part is what precedes the first mark, the third what lies between the two sizes.
        let part = |number| {
            let file = format!("{}.{number}", file.display());
            total(&fs::read_to_string(file).ok()?)
        };
        Some(Counted {
            sizes: [*small.get::<f64>()?, *large.get::<f64>()?],
            limit: *said.get("limit")?.get::<f64>()?,
            instructions: [part(2)?, part(4)?],
        })
    };
    read()
        .ok_or_else(|| Problem::new(format!("{name} was not counted; its output: {said}"), BROKEN))
}

/// Counts a whole run of the program in a project of one size.
fn command(
    workspace: &Workspace,
    growth: &Program,
    toolcrib: &Program,
    kind: &str,
    size: u32,
    args: &[&str],
) -> Result<u64, Problem> {
    let project = folder(workspace)?.join("projects").join(format!("{kind}-{size}"));
    // Created for each commit: an old store would be migrated within the count.
    let _ = fs::remove_dir_all(&project);
    let mut fill = growth.command(workspace);
    run(fill.args(["--fill", kind, &size.to_string()]).arg(&project), BROKEN)?;
    let file = folder(workspace)?.join("command.out");
    let mut valgrind = counting(workspace, &file);
    valgrind.arg(toolcrib.path()).args(args).arg("--project").arg(&project);
    output(&mut valgrind, "run the command without valgrind")?;
    let counted = workspace.read(&file)?;
    total(&counted).ok_or_else(|| Problem::new("nothing was counted", BROKEN))
}
