//! The steps of each command, in order.

use std::{
    env, thread,
    time::{Duration, Instant},
};

use crate::{
    api, attacks, bench, book, browser, cargo_deny, conformance, counts, crash, crash_table,
    example, frameworks, gateways, harm, jdk, links, listed, loops, oracle, package, peers,
    postgres,
    problem::{Problem, joined},
    prose, proxy, sanitize_bench, search_bench, shape, small_examples, sources, sqlite_crates,
    tests,
    workspace::{Workspace, run as run_program},
    zsh,
};

/// One check.
pub(crate) struct Step {
    name: &'static str,
    check: fn(&Workspace) -> Result<(), Problem>,
}

// Fast steps come first, so that a small mistake is found in seconds and not after a build.
const FORMAT: Step = Step { name: "formatting", check: format };
const SOURCES: Step = Step { name: "Rust files", check: sources::check };
const CIRCLES: Step = Step { name: "imports", check: shape::check };
const SHOWN_CIRCLES: Step = Step { name: "import circles", check: shape::show };
const LINKS: Step = Step { name: "links", check: links::check };
const BOOK_PAGES: Step = Step { name: "pages of the book", check: book::check };
const BOOK_BUILT: Step = Step { name: "book", check: book::build };
const DEPENDENCIES: Step = Step { name: "dependencies", check: dependencies };
const PROSE_CHECK: Step = Step { name: "prose", check: prose::check };
const CLIPPY: Step = Step { name: "clippy", check: clippy };
const COMPILED: Step = Step { name: "clippy, dependencies, installs", check: compile_and_install };
const SDKS: Step = Step { name: "vendors' SDKs", check: oracle::install };
const ORACLE_TEST: Step = Step { name: "oracle", check: oracle::compare };
const POSTGRES: Step = Step { name: "PostgreSQL", check: postgres::install };
const OTHERS: Step = Step { name: "MCP peers", check: peers::install };
const PEERS_TEST: Step = Step { name: "with peers", check: peers::compare };
const SUITE: Step = Step { name: "MCP suite", check: conformance::install };
const FASTMCP: Step = Step { name: "FastMCP", check: conformance::install_fastmcp };
const CONFORMANCE_MATRIX: Step = Step { name: "conformance", check: conformance::check };
const NEW_CONFORMANCE: Step = Step { name: "fewer failures", check: conformance::bless };
const TESTS: Step = Step { name: "tests, examples, conformance", check: test_all };
const LONG_TESTS: Step = Step { name: "long tests", check: long_tests };
const PICTURES_WRITTEN: Step = Step { name: "pictures", check: pictures };
const CONFIG_SHAPES: Step = Step { name: "shapes of files", check: config_shapes };
const HARM_LISTED: Step = Step { name: "kinds of faults", check: harm::check_listed };
const HARM_TEST: Step = Step { name: "faults", check: harm::test };
const ATTACKS_TEST: Step = Step { name: "attacks", check: attacks::run };
const ALONE: Step = Step { name: "crate by crate", check: crate_by_crate };
const PORTABLE_BUILD: Step = Step { name: "portable build", check: portable };
const PACKAGE_TOOLS: Step = Step { name: "zig", check: package::install };
const PACKAGES: Step = Step { name: "packages", check: package::build };
const PACKAGES_MUSL: Step = Step { name: "packages", check: package::build_musl };
const LICENSES: Step = Step { name: "licenses", check: package::write_licenses };
const CRATES: Step = Step { name: "crates", check: publishable };
const ALL_PAGES: Step = Step { name: "all pages", check: all_pages };
const API_PAGES: Step = Step { name: "documentation", check: api::write_pages };
const PUBLIC_API: Step = Step { name: "public API", check: api::check };
const NEW_PUBLIC_API: Step = Step { name: "new public API", check: api::bless };
const SMALL_EXAMPLES: Step = Step { name: "examples", check: small_examples::check };
const SUPPORT_DESK: Step = Step { name: "support desk", check: example::check };
const FRAMEWORKS_RUN: Step = Step { name: "frameworks", check: frameworks::check };
const EXAMPLES_PAGES: Step = Step { name: "pages of examples", check: frameworks::check_pages };
const EXAMPLES_LISTED: Step =
    Step { name: "list of examples", check: small_examples::check_listed };
const OTLP_TESTS: Step = Step { name: "OTLP", check: otlp_tests };
const SQLITE_CRATES: Step = Step { name: "SQLite crates", check: sqlite_crates::compile };
const COUNTED: Step = Step { name: "counts", check: counts::check };
const BLESSED: Step = Step { name: "new baseline", check: counts::bless };
const FIGURES: Step = Step { name: "benches", check: bench::run };
const GATEWAYS: Step = Step { name: "gateways", check: gateways::install };
const LOOPS: Step = Step { name: "frameworks", check: loops::install };
const LOOP_FIGURES: Step = Step { name: "bench", check: loops::measure };
const GATEWAY_FIGURES: Step = Step { name: "bench", check: bench::run_gateway };

const CRASHES: Step = Step { name: "crashes", check: crash::check };

const KILLS: Step = Step { name: "kills", check: crash_table::measure };

const ALTERED: Step = Step { name: "altered files", check: sanitize_bench::measure };

const SEARCH_DATA: Step = Step { name: "BFCL", check: search_bench::install };
const SEARCH_FIGURES: Step = Step { name: "search", check: search_bench::measure };
const SEARCH_WEIGHTS: Step = Step { name: "weights", check: search_bench::choose };

pub(crate) const TEST: &[Step] = &[
    FORMAT,
    SOURCES,
    CIRCLES,
    LINKS,
    PROSE_CHECK,
    BOOK_PAGES,
    EXAMPLES_PAGES,
    EXAMPLES_LISTED,
    COMPILED,
    TESTS,
    HARM_LISTED,
    PUBLIC_API,
];
pub(crate) const LINT: &[Step] = &[
    FORMAT,
    SOURCES,
    CIRCLES,
    LINKS,
    PROSE_CHECK,
    BOOK_PAGES,
    EXAMPLES_PAGES,
    EXAMPLES_LISTED,
    DEPENDENCIES,
    CLIPPY,
];
pub(crate) const PROSE: &[Step] = &[PROSE_CHECK];
pub(crate) const SHAPE: &[Step] = &[SHOWN_CIRCLES];
pub(crate) const ORACLE: &[Step] = &[SDKS, ORACLE_TEST];
pub(crate) const PEERS: &[Step] = &[OTHERS, PEERS_TEST];
pub(crate) const CONFORMANCE: &[Step] = &[OTHERS, SUITE, FASTMCP, CONFORMANCE_MATRIX];
pub(crate) const BLESS_CONFORMANCE: &[Step] = &[OTHERS, SUITE, FASTMCP, NEW_CONFORMANCE];
pub(crate) const HARM: &[Step] = &[HARM_LISTED, HARM_TEST];
pub(crate) const PICTURES: &[Step] = &[PICTURES_WRITTEN];
pub(crate) const CONFIGS: &[Step] = &[CONFIG_SHAPES];
pub(crate) const ATTACKS: &[Step] = &[ATTACKS_TEST];
pub(crate) const API: &[Step] = &[API_PAGES, PUBLIC_API];
pub(crate) const BLESS_API: &[Step] = &[API_PAGES, NEW_PUBLIC_API];
pub(crate) const BOOK: &[Step] = &[LINKS, BOOK_PAGES, BOOK_BUILT];
pub(crate) const EXAMPLE: &[Step] = &[SMALL_EXAMPLES, SUPPORT_DESK];
pub(crate) const FRAMEWORKS: &[Step] = &[EXAMPLES_PAGES, OTHERS, FRAMEWORKS_RUN];
pub(crate) const OTLP: &[Step] = &[OTLP_TESTS];
pub(crate) const COUNTS: &[Step] = &[COUNTED];
pub(crate) const BLESS: &[Step] = &[BLESSED];
pub(crate) const PACKAGE: &[Step] = &[PACKAGE_TOOLS, PACKAGES];
pub(crate) const PACKAGE_MUSL: &[Step] = &[PACKAGE_TOOLS, PACKAGES_MUSL];
pub(crate) const PACKAGE_LICENSES: &[Step] = &[LICENSES];
pub(crate) const PORTABLE: &[Step] = &[PORTABLE_BUILD];
pub(crate) const FULL: &[Step] = &[
    SDKS,
    OTHERS,
    POSTGRES,
    CLIPPY,
    LONG_TESTS,
    ALL_PAGES,
    OTLP_TESTS,
    FRAMEWORKS_RUN,
    PORTABLE_BUILD,
    ALONE,
    SQLITE_CRATES,
    COUNTED,
    CRATES,
    PACKAGE_TOOLS,
    PACKAGES,
];
pub(crate) const BENCH: &[Step] = &[FIGURES];
pub(crate) const BENCH_GATEWAY: &[Step] = &[PACKAGE_TOOLS, GATEWAYS, GATEWAY_FIGURES];
pub(crate) const BENCH_LOOPS: &[Step] = &[OTHERS, LOOPS, LOOP_FIGURES];
pub(crate) const CRASH: &[Step] = &[POSTGRES, CRASHES];
pub(crate) const CRASH_TABLE: &[Step] = &[KILLS];
pub(crate) const SANITIZE_BENCH: &[Step] = &[ALTERED];
pub(crate) const SEARCH_BENCH: &[Step] = &[SEARCH_DATA, SEARCH_FIGURES];
pub(crate) const SEARCH_CHOOSE: &[Step] = &[SEARCH_DATA, SEARCH_WEIGHTS];

/// Runs steps until one fails; returns whether none did.
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
            workspace.report().print();
            return false;
        }
        eprintln!("-- {}: ok ({})", step.name, seconds(took));
        times.push((step.name, took));
    }
    workspace.report().print();
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
    cargo_deny::check(workspace)?;
    frameworks::check_lock_file(workspace)?;
    sqlite_crates::check(workspace)
}

const CLIPPY_HELP: &str = "fix the errors above, or add `#[expect(LINT, reason = \"…\")]` if they are intended; if cargo has \
     no `clippy`, `rustup component add clippy`";

fn clippy(workspace: &Workspace) -> Result<(), Problem> {
    run_program(
        &mut workspace.cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        CLIPPY_HELP,
    )
}

/// Compiles all that the later steps run, with clippy's lints, and installs third-party programs and
/// checks dependencies. These wait for the network while the compiler uses the processors.
fn compile_and_install(workspace: &Workspace) -> Result<(), Problem> {
    thread::scope(|scope| {
        let report = workspace.report();
        let install = || {
            oracle::install(workspace)?;
            peers::install(workspace)?;
            conformance::install(workspace)?;
            postgres::install(workspace)?;
            proxy::install(workspace)?;
            browser::install(workspace)?;
            zsh::install(workspace)?;
            jdk::install(workspace)
        };
        let installs = scope.spawn(move || {
            report.measured("installing", install)?;
            dependencies(workspace)
        });
        report.measured("compiling", || {
            run_program(&mut workspace.compile(tests::COMPILED), CLIPPY_HELP)
        })?;
        joined(installs)
    })
}

/// Runs all tests of CI, and beside the first of them the examples and the MCP suite, which mostly wait.
fn test_all(workspace: &Workspace) -> Result<(), Problem> {
    tests::run_all(workspace, || {
        workspace.report().measured("examples, MCP suite", || {
            small_examples::check(workspace)?;
            example::check(workspace)?;
            conformance::check_sample(workspace)
        })
    })
}

/// Runs all tests again, with the long form of those that have one, and one that has no short form.
fn long_tests(workspace: &Workspace) -> Result<(), Problem> {
    let mut cargo = workspace.cargo(["test", "--workspace"]);
    cargo.env("TOOLCRIB_FULL", "1");
    tests::run_in_turn(cargo, workspace)?;
    let ignored = ["test", "--package", "toolcrib", "--test", "macros", "--", "--ignored"];
    tests::run_in_turn(workspace.cargo(ignored), workspace)
}

/// The shapes of the files in which MCP clients declare servers.
fn config_shapes(workspace: &Workspace) -> Result<(), Problem> {
    let args = ["test", "--package", "toolcrib-mcp", "--test", "mcp", "--", "configs::"];
    tests::run_in_turn(workspace.cargo(args), workspace)
}

/// Writes the pictures of the README, which the long tests compare.
fn pictures(workspace: &Workspace) -> Result<(), Problem> {
    let args = ["test", "--workspace", "--test", "cli", "--", "pictures::"];
    let mut cargo = workspace.cargo(args);
    cargo.env("TOOLCRIB_PICTURES", "1");
    tests::run_in_turn(cargo, workspace)
}

/// The tests of the program with its feature `otlp`, which CI does not compile.
fn otlp_tests(workspace: &Workspace) -> Result<(), Problem> {
    let args =
        ["test", "--workspace", "--features", "toolcrib-cli/otlp", "--test", "cli", "--", "otlp::"];
    tests::run_in_turn(workspace.cargo(args), workspace)
}

/// In a build of the whole workspace, one crate's features hide missing declarations of another; a
/// user of a single crate would get the error.
fn crate_by_crate(workspace: &Workspace) -> Result<(), Problem> {
    for name in workspace.crates()? {
        run_program(
            &mut workspace.cargo(["check", "--quiet", "--package", &name]),
            "add the missing feature to this crate's Cargo.toml",
        )?;
    }
    Ok(())
}

/// The documentation with all features, and that of the programs.
fn all_pages(workspace: &Workspace) -> Result<(), Problem> {
    let args = ["doc", "--workspace", "--no-deps", "--all-features", "--quiet"];
    run_program(
        workspace.cargo(args).env("RUSTDOCFLAGS", "-D warnings"),
        "fix the links and comments listed above",
    )
}

/// Whether all crates could be published, in their order, without compiling them again.
fn publishable(workspace: &Workspace) -> Result<(), Problem> {
    run_program(
        &mut workspace.cargo([
            "publish",
            "--workspace",
            "--dry-run",
            "--no-verify",
            "--allow-dirty",
        ]),
        "add the file or the version that is missing to the crate's Cargo.toml; a dependency of tests \
         within the workspace has a path and no version",
    )
}

/// The features of `toolcrib` that need no Unix-only calls.
const PORTABLE_FEATURES: &str =
    "agent,artifacts,command,files,gateway,http,hub,lint,macros,mcp,models,testing,vendors";

/// Builds the library, the agent and the gateway without Unix-only calls, and runs their tests. The
/// separate target folder keeps the other builds.
fn portable(workspace: &Workspace) -> Result<(), Problem> {
    let mut flags = env::var("RUSTFLAGS").unwrap_or_default();
    flags.push_str(" --cfg portable");
    let cargo = |args: &[&str]| {
        let mut cargo = workspace.cargo(args.iter().copied());
        cargo
            .env("RUSTFLAGS", flags.trim())
            .env("CARGO_TARGET_DIR", workspace.target().join("portable"));
        cargo
    };
    let args = [
        "check",
        "--package",
        "toolcrib",
        "--no-default-features",
        "--features",
        PORTABLE_FEATURES,
    ];
    run_program(
        &mut cargo(&args),
        "give the Unix-only call an alternative under `#[cfg(portable)]`, which works or refuses",
    )?;
    let crates =
        ["toolcrib-core", "toolcrib-engine", "toolcrib-agent", "toolcrib-mcp", "toolcrib-gateway"];
    let packages = crates.into_iter().flat_map(|name| ["--package", name]);
    let args: Vec<_> = ["test", "--lib", "--tests"].into_iter().chain(packages).collect();
    tests::run_in_turn(cargo(&args), workspace)
}
