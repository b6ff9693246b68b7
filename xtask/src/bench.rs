//! Runs the benches that measure times and memory, and writes the results into
//! `docs/benchmarks.md`.

use std::{fs, process::Stdio};

use crate::{
    counts::cpus,
    gateways,
    package::{self, Target},
    problem::Problem,
    workspace::{Workspace, output, run as run_program},
};

pub(crate) const PAGE: &str = "docs/benchmarks.md";

/// Each prints its figures as Markdown.
const PROGRAMS: [&[&str]; 11] = [
    &["bench", "--bench", "loop"],
    &["bench", "--bench", "adapter"],
    &["bench", "--bench", "dispatch"],
    &["bench", "--bench", "validators"],
    &["bench", "--bench", "visibility"],
    &["bench", "--bench", "registry"],
    &["bench", "--bench", "artifacts"],
    &["bench", "--bench", "sandbox"],
    &["bench", "--bench", "files"],
    &["bench", "--bench", "sessions"],
    &["run", "--release", "--bin", "counts"],
];

/// The variable with the program that the gateway's bench starts.
const PROGRAM: &str = "TOOLCRIB_BENCH_PROGRAM";
const CHAOS: &str = "TOOLCRIB_BENCH_CHAOS";
const GATEWAYS: &str = "TOOLCRIB_BENCH_GATEWAYS";

pub(crate) fn run(workspace: &Workspace) -> Result<(), Problem> {
    let mut found = circumstances(workspace)?;
    for program in PROGRAMS {
        let (command, which) = program.split_first().map_or(("", program), |(c, w)| (*c, w));
        let mut cargo = workspace.cargo([command, "--quiet", "--package", "toolcrib-benches"]);
        let printed = output(cargo.args(which), "fix the error above")?;
        println!("{printed}\n");
        found.push_str(&format!("\n{printed}\n"));
    }
    write(workspace, PAGE, "bench", &found)
}

/// The release profile: everything that is compared is built with it.
const RELEASED: [&str; 2] = ["--profile", "dist"];

/// The gateway: our programs in the release profile, and third-party ones.
pub(crate) fn run_gateway(workspace: &Workspace) -> Result<(), Problem> {
    let program = package::compile(workspace, &Target::here()?)?;
    let chaos = ["build", "--package", "toolcrib-testbed", "--bin", "chaos-mcp"];
    run_program(workspace.cargo(chaos).args(RELEASED), "fix the compiler errors above")?;
    let mut cargo = workspace.cargo(["bench", "--quiet", "--package", "toolcrib-benches"]);
    cargo
        .args(["--bench", "gateway"])
        .args(RELEASED)
        .env(PROGRAM, program)
        .env(CHAOS, workspace.target().join("dist").join("chaos-mcp"))
        .env(GATEWAYS, gateways::folder(workspace))
        // It prints its progress.
        .stderr(Stdio::inherit());
    let printed = output(&mut cargo, "fix the error above")?;
    println!("{printed}\n");
    write(workspace, PAGE, "bench gateway", &format!("{}\n{printed}\n", circumstances(workspace)?))
}

/// Date, machine and versions.
pub(crate) fn circumstances(workspace: &Workspace) -> Result<String, Problem> {
    let say = |program: &str, args: &[&str]| {
        output(workspace.program(program).args(args), "put the program on the PATH")
    };
    let changed =
        if say("git", &["status", "--porcelain"])?.is_empty() { "" } else { " and changes" };
    Ok(format!(
        "{}, on {}, {} {}, {}, commit {}{changed}.\n",
        say("date", &["-u", "+%F"])?,
        cpus(),
        say("uname", &["-s"])?,
        say("uname", &["-r"])?,
        say("rustc", &["--version"])?,
        say("git", &["rev-parse", "--short", "HEAD"])?,
    ))
}

/// Writes a command's results between two marker lines; people write the rest of the page.
pub(crate) fn write(
    workspace: &Workspace,
    page: &str,
    command: &str,
    found: &str,
) -> Result<(), Problem> {
    let begin = format!("<!-- written by `cargo xtask {command}` -->\n");
    let end = format!("<!-- end of what is written by `cargo xtask {command}` -->\n");
    let path = workspace.root().join(page);
    let text = workspace.read(&path)?;
    let parts = text
        .split_once(&begin)
        .and_then(|(before, rest)| rest.split_once(&end).map(|(_, after)| (before, after)));
    let Some((before, after)) = parts else {
        return Err(Problem::new(
            format!("{page} has no place for figures"),
            format!("add these two lines at the right place:\n{begin}{end}"),
        ));
    };
    fs::write(&path, format!("{before}{begin}\n{found}\n{end}{after}")).map_err(|error| {
        Problem::new(format!("{page} cannot be written: {error}"), "make it writable")
    })
}
