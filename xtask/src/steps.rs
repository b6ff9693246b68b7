//! The steps, what each runs, and in which order.

use std::{
    env,
    time::{Duration, Instant},
};

use crate::{
    bench, cargo_deny, counts, example, gateways, harm, links, listed, local_model, oracle, peers,
    problem::Problem,
    sizes, small_examples, unsafe_code,
    workspace::{Workspace, run as run_program},
};

/// One check.
pub(crate) struct Step {
    name: &'static str,
    check: fn(&Workspace) -> Result<(), Problem>,
}

// What is quick comes first, so that a small slip is found in seconds and not behind a build.
const FORMAT: Step = Step { name: "formatting", check: format };
const SIZES: Step = Step { name: "file sizes", check: sizes::check };
const UNSAFE: Step = Step { name: "unsafe code", check: unsafe_code::check };
const LINKS: Step = Step { name: "links", check: links::check };
const DEPENDENCIES: Step = Step { name: "dependencies", check: dependencies };
const CLIPPY: Step = Step { name: "clippy", check: clippy };
const SDKS: Step = Step { name: "vendors' SDKs", check: oracle::install };
const ORACLE_TEST: Step = Step { name: "oracle", check: oracle::compare };
const OTHERS: Step = Step { name: "MCP peers", check: peers::install };
const PEERS_TEST: Step = Step { name: "with peers", check: peers::compare };
const TESTS: Step = Step { name: "tests", check: tests };
const HARM_LISTED: Step = Step { name: "kinds of faults", check: harm::check_listed };
const HARM_TEST: Step = Step { name: "faults", check: harm::test };
const ALONE: Step = Step { name: "crate by crate", check: crate_by_crate };
const API_DOCS: Step = Step { name: "documentation", check: documentation };
const SMALL_EXAMPLES: Step = Step { name: "examples", check: small_examples::check };
const SUPPORT_DESK: Step = Step { name: "support desk", check: example::check };
const COUNTED: Step = Step { name: "counts", check: counts::check };
const BLESSED: Step = Step { name: "new baseline", check: counts::bless };
const MODEL: Step = Step { name: "model", check: local_model::install };
const MODEL_SERVER: Step = Step { name: "its server", check: local_model::test_server };
const MODEL_FIRST_TOOL: Step = Step { name: "first tool", check: local_model::first_tool };
const MODEL_DESK: Step = Step { name: "support desk", check: local_model::support_desk };
const MODEL_FIGURES: Step = Step { name: "figures", check: local_model::figures };
const FIGURES: Step = Step { name: "benches", check: bench::run };
const GATEWAYS: Step = Step { name: "gateways", check: gateways::install };
const GATEWAY_FIGURES: Step = Step { name: "bench", check: bench::run_gateway };

pub(crate) const TEST: &[Step] = &[
    FORMAT,
    SIZES,
    UNSAFE,
    LINKS,
    DEPENDENCIES,
    CLIPPY,
    SDKS,
    OTHERS,
    TESTS,
    HARM_LISTED,
    ALONE,
    API_DOCS,
    SMALL_EXAMPLES,
    SUPPORT_DESK,
    COUNTED,
];
pub(crate) const LINT: &[Step] = &[FORMAT, SIZES, UNSAFE, LINKS, DEPENDENCIES, CLIPPY];
pub(crate) const ORACLE: &[Step] = &[SDKS, ORACLE_TEST];
pub(crate) const PEERS: &[Step] = &[OTHERS, PEERS_TEST];
pub(crate) const HARM: &[Step] = &[HARM_LISTED, HARM_TEST];
pub(crate) const DOCS: &[Step] = &[API_DOCS];
pub(crate) const EXAMPLE: &[Step] = &[SMALL_EXAMPLES, SUPPORT_DESK];
pub(crate) const COUNTS: &[Step] = &[COUNTED];
pub(crate) const BLESS: &[Step] = &[BLESSED];
pub(crate) const LOCAL_MODEL: &[Step] =
    &[MODEL, MODEL_SERVER, MODEL_FIRST_TOOL, MODEL_DESK, MODEL_FIGURES];
pub(crate) const BENCH: &[Step] = &[FIGURES];
pub(crate) const BENCH_GATEWAY: &[Step] = &[OTHERS, GATEWAYS, GATEWAY_FIGURES];

/// Runs steps until one fails; says whether none did.
pub(crate) fn run(steps: &[Step], workspace: &Workspace) -> bool {
    let began = Instant::now();
    let mut times = Vec::with_capacity(steps.len());
    for (position, step) in steps.iter().enumerate() {
        eprintln!("\n== {}/{} {}", position + 1, steps.len(), step.name);
        let step_began = Instant::now();
        let outcome = (step.check)(workspace);
        let took = step_began.elapsed();
        if let Err(problem) = outcome {
            eprintln!("\nFAILED at {} after {}", step.name, seconds(took));
            eprintln!("{problem}");
            return false;
        }
        eprintln!("-- {}: ok ({})", step.name, seconds(took));
        times.push((step.name, took));
    }
    eprintln!();
    for (name, took) in times {
        eprintln!("{name:<14} {:>8}", seconds(took));
    }
    eprintln!("{:<14} {:>8}", "all ok", seconds(began.elapsed()));
    true
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

fn format(workspace: &Workspace) -> Result<(), Problem> {
    run_program(
        &mut workspace.cargo(["fmt", "--all", "--check"]),
        "run `cargo fmt --all`; if cargo has no `fmt`, `rustup component add rustfmt`",
    )
}

fn dependencies(workspace: &Workspace) -> Result<(), Problem> {
    listed::check(workspace)?;
    cargo_deny::check(workspace)
}

fn clippy(workspace: &Workspace) -> Result<(), Problem> {
    run_program(
        &mut workspace.cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        "mend what is listed above, or write `#[expect(LINT, reason = \"…\")]` where it is meant; \
         if cargo has no `clippy`, `rustup component add clippy`",
    )
}

fn tests(workspace: &Workspace) -> Result<(), Problem> {
    run_program(
        workspace
            .cargo(["test", "--workspace"])
            // Many tests wait, for processes and for time-outs: twice as many as two processors.
            .env("RUST_TEST_THREADS", "4")
            .env(oracle::VARIABLE, oracle::python(workspace))
            .env(peers::VARIABLE, peers::folder(workspace)),
        "run one test alone with `cargo test -p CRATE NAME`; where a snapshot differs and the new \
         one is right, accept it with `INSTA_UPDATE=always cargo test -p CRATE NAME`",
    )
}

/// In a build of the whole workspace one crate's features cover for what another forgot to declare;
/// whoever depends on a single crate has no such luck.
fn crate_by_crate(workspace: &Workspace) -> Result<(), Problem> {
    for name in workspace.crates()? {
        run_program(
            &mut workspace.cargo(["check", "--quiet", "--package", &name]),
            "add the feature that is missing to this crate's own Cargo.toml",
        )?;
    }
    Ok(())
}

fn documentation(workspace: &Workspace) -> Result<(), Problem> {
    let mut flags = env::var("RUSTDOCFLAGS").unwrap_or_default();
    flags.push_str(" -D warnings");
    run_program(
        workspace
            .cargo(["doc", "--workspace", "--no-deps", "--all-features"])
            .env("RUSTDOCFLAGS", flags.trim()),
        "mend the links and comments listed above; `cargo doc --workspace --no-deps --open` shows the \
         pages",
    )
}
