//! Runs the benches that measure times and memory, and writes what they find into
//! `docs/benchmarks.md`.

use std::fs;

use crate::{
    counts::cpus,
    problem::Problem,
    workspace::{Workspace, output, unreadable},
};

const PAGE: &str = "docs/benchmarks.md";

/// What is found stands between these lines; the rest of the page is written by people.
const BEGIN: &str = "<!-- written by `cargo xtask bench` -->\n";
const END: &str = "<!-- end of what is written by `cargo xtask bench` -->\n";

/// Each prints its figures as Markdown.
const PROGRAMS: [&[&str]; 5] = [
    &["bench", "--bench", "loop"],
    &["bench", "--bench", "adapter"],
    &["bench", "--bench", "dispatch"],
    &["bench", "--bench", "validators"],
    &["run", "--release", "--bin", "counts"],
];

pub(crate) fn run(workspace: &Workspace) -> Result<(), Problem> {
    let mut found = format!("{BEGIN}\n{}\n", circumstances(workspace)?);
    for program in PROGRAMS {
        let (command, which) = program.split_first().map_or(("", program), |(c, w)| (*c, w));
        let mut cargo = workspace.cargo([command, "--quiet", "--package", "toolcrib-benches"]);
        let printed = output(cargo.args(which), "mend what it says above")?;
        println!("{printed}\n");
        found.push_str(&format!("\n{printed}\n"));
    }
    write(workspace, &format!("{found}\n{END}"))
}

/// Where, when and of what.
fn circumstances(workspace: &Workspace) -> Result<String, Problem> {
    let say = |program: &str, args: &[&str]| {
        output(workspace.program(program).args(args), "put the program on the PATH")
    };
    let changed =
        if say("git", &["status", "--porcelain"])?.is_empty() { "" } else { " and changes" };
    Ok(format!(
        "{}, on {}, {} {}, {}, commit {}{changed}.",
        say("date", &["-u", "+%F"])?,
        cpus(),
        say("uname", &["-s"])?,
        say("uname", &["-r"])?,
        say("rustc", &["--version"])?,
        say("git", &["rev-parse", "--short", "HEAD"])?,
    ))
}

fn write(workspace: &Workspace, found: &str) -> Result<(), Problem> {
    let path = workspace.root().join(PAGE);
    let page = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
    let parts = page
        .split_once(BEGIN)
        .and_then(|(before, rest)| rest.split_once(END).map(|(_, after)| (before, after)));
    let Some((before, after)) = parts else {
        return Err(Problem::new(
            format!("{PAGE} has no place for figures"),
            format!("put these two lines where they belong:\n{BEGIN}{END}"),
        ));
    };
    fs::write(&path, format!("{before}{found}{after}")).map_err(|error| {
        Problem::new(format!("{PAGE} cannot be written: {error}"), "make it writable")
    })
}
