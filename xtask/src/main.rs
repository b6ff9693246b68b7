//! `cargo xtask`: the checks before a change is merged, in one command.
//!
//! # Layers
//!
//! - `steps`: the steps of each command, in order.
//! - `tests`: running the tests of the workspace.
//! - `sqlite_crates`: checks that Toolcrib can be used beside other crates that link SQLite.
//! - `sources`: checks that Rust files stay small enough to read, and that `unsafe` is used in one folder only.
//! - `shape`: checks that the imports of each crate point down, from one layer to those below it, and that its circles are small.
//! - `search_bench`: measures the tool search on a public data set, which it installs.
//! - `sanitize_bench`: measures how many files of published packages a model would not read as they are.
//! - `prose`: checks texts that users read for the phrases that `docs/internal/style.md` replaces, and limits them in comments.
//! - `oracle`: the vendors' own SDKs, for tests of the model adapters.
//! - `loops`: runs the agent loop beside those of other frameworks, which it installs, and writes the times into `docs/benchmarks.md`.
//! - `listed`: checks that `docs/internal/dependencies.md` lists exactly the direct dependencies.
//! - `jdk`: a Java development kit, whose programs tests run under the default limits.
//! - `harm`: runs the tests of the faults that were found from outside.
//! - `frameworks`: runs the programs of `examples/frameworks` and `examples/restate`, a separate workspace, and compares pages with programs.
//! - `crash`: kills workers on a PostgreSQL store, stops its server at once, and cuts connections.
//! - `crash_table`: kills the same loop in Toolcrib and in other systems, and writes what happened into `docs/crash-table.md`.
//! - `conformance`: the official MCP conformance suite, run on the gateway and on the client.
//! - `cargo_deny`: licenses, bans and sources of the dependencies, by cargo-deny.
//! - `browser`: Chromium, in which tests open pages.
//! - `zsh`: Zsh, in which a test completes a line.
//! - `book`: `docs/` as a book.
//! - `links`: checks the links between the repository's documents.
//! - `bench`: runs the benches that measure times and memory, and writes the results into `docs/benchmarks.md`.
//! - `package`: `cargo xtask package`.
//! - `gateways`: third-party MCP gateways, for comparison with Toolcrib's.
//! - `peers`: third-party MCP servers and clients, for tests of the client and the gateway.
//! - `postgres`: PostgreSQL's binaries, of which tests and the crash table start their own servers.
//! - `proxy`: HAProxy, behind which a test restarts gateways.
//! - `packages`: installs third-party packages into a separate folder, with the versions and digests of a list.
//! - `counts`: compares instructions and allocations of the most frequent operations with a baseline, and with a fixed commit.
//! - `attacks`: runs the attacks.
//! - `api`: the public names of the facade as a text file, which the repository keeps, so that a change of them is seen.
//! - `example`: runs the support desk of `examples/` as its README describes, on a copy.
//! - `small_examples`: checks the crates of `examples/`, and that each example is listed.
//! - `workspace`: the paths of the workspace, and running programs in it.
//! - `report`: what `cargo xtask test` prints at its end besides the steps.
//! - `problem`: the error of a step.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "host crate: it runs programs and prints to the terminal"
)]

mod api;
mod attacks;
mod bench;
mod book;
mod browser;
mod cargo_deny;
mod conformance;
mod counts;
mod crash;
mod crash_table;
mod example;
mod frameworks;
mod gateways;
mod harm;
mod jdk;
mod links;
mod listed;
mod loops;
mod oracle;
mod package;
mod packages;
mod peers;
mod postgres;
mod problem;
mod prose;
mod proxy;
mod report;
mod sanitize_bench;
mod search_bench;
mod shape;
mod small_examples;
mod sources;
mod sqlite_crates;
mod steps;
mod tests;
mod workspace;
mod zsh;

use std::process::ExitCode;

use crate::{
    steps::{
        API, ATTACKS, BENCH, BENCH_GATEWAY, BENCH_LOOPS, BLESS, BLESS_API, BLESS_CONFORMANCE, BOOK,
        CONFIGS, CONFORMANCE, COUNTS, CRASH, CRASH_TABLE, EXAMPLE, FRAMEWORKS, FULL, HARM, LINT,
        ORACLE, OTLP, PACKAGE, PACKAGE_LICENSES, PACKAGE_MUSL, PEERS, PICTURES, PORTABLE, PROSE,
        SANITIZE_BENCH, SEARCH_BENCH, SEARCH_CHOOSE, SHAPE, TEST,
    },
    workspace::Workspace,
};

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test      everything that CI checks: lint, tests, docs, public API and examples
  full      too long for `test`: tests with more interrupts and random cases, all pages of the
            documentation, `otlp`, `frameworks`, `portable`, crates one by one, also beside other SQLite
            crates, counts, whether all crates could be published, and `package`
  package   the program as it is released, as a wheel, npm packages and an archive, each installed into an
            empty environment and tried there; installs zig and the third-party programs of `peers`, for Node;
            `package musl` for every Linux; `package licenses` only target/package/texts/THIRD-PARTY.txt
  portable  library, agent and gateway without Unix-only calls (`--cfg portable`), and their tests
  lint      formatting, file sizes, imports, links, the dependencies by cargo-deny and beside other SQLite
            crates, and clippy
  prose     phrases that docs/internal/style.md replaces, in user-visible texts and in comments
  shape     the import circles of each crate, of which `lint` permits no large one
  oracle    the model adapters against the vendors' own SDKs, which it installs
  peers     the MCP client and the gateway against third-party servers and clients, which it installs
  conformance
            the official MCP suite, which it installs, on the gateway and the client, beside FastMCP's
            proxy, into docs/conformance.md; --bless removes expected failures that pass
  pictures  a run at a terminal and the page of its trace, as docs/run-*.svg and docs/trace-*.svg, for the README
  configs   70 shapes of the files in which MCP clients declare servers
  harm      the tests of faults that were found from outside; fails if a kind of fault has none
  attacks   all tests in modules called `attacks`, with 10,000 rounds of random cases
  api       the pages of the libraries, without warnings, and the public names of `toolcrib`, compared with
            docs/internal/public-api.txt; --bless writes it there
  book      docs/ as a book, in target/book; installs mdBook
  example   the programs of examples/, and the support desk on a copy
  frameworks
            the programs of examples/frameworks: tools in rig and rmcp, a model of genai, clients in Python and
            TypeScript; and the service of examples/restate, which it kills, against Restate's server from npm
  otlp      the tests of traces in OTLP, with the feature `otlp` of the program
  counts    instructions and allocations, compared with benches/baseline.json and benches/origin.json, and
            how they grow with a session or a set; --bless makes them the baseline
  bench     times and memory, written into docs/benchmarks.md. Run nothing else meanwhile
  bench gateway
            the same for `toolcrib serve`, compared with third-party gateways, which it installs (104 MB)
  bench loops
            the agent loop beside those of rig, Vercel's ai and pydantic-ai, which it installs (60 MB)
  crash [SESSIONS [STOPS]]
            workers on a PostgreSQL store, which are killed, while its server is stopped at once and connections
            are cut: 10,000 sessions and 500 stops, unless the arguments say otherwise
  crash-table [ROW…]
            what happens to effects when a process is killed, in Toolcrib and in other systems, which it installs
            (700 MB), into docs/crash-table.md; TOOLCRIB_KILLS=20 tries a row, and writes nothing; --page writes
            only the page
  sanitize-bench
            how many files of the packages that the lock files name, which it installs, are not shown to
            a model as they are; fails if 1 in 2,000 or more has a replaced token, or 1 in 1,000 or more a
            removed hidden character or escape sequence
  search-bench
            recall and speed of the tool search on BFCL, which it installs (2 MB), and on our own
            needs, into docs/tool-search.md; --choose searches the weights instead
  help      this text

Each command covers the whole workspace, stops at the first step that fails, and then exits with 1.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut workspace = Workspace::here();
    let steps = match words.as_slice() {
        ["test"] => {
            workspace = workspace.by_clippy();
            TEST
        }
        ["lint"] => LINT,
        ["prose"] => PROSE,
        ["shape"] => SHAPE,
        ["oracle"] => ORACLE,
        ["peers"] => PEERS,
        ["conformance"] => CONFORMANCE,
        ["conformance", "--bless"] => BLESS_CONFORMANCE,
        ["configs"] => CONFIGS,
        ["pictures"] => PICTURES,
        ["harm"] => HARM,
        ["attacks"] => ATTACKS,
        ["book"] => BOOK,
        ["api"] => API,
        ["api", "--bless"] => BLESS_API,
        ["example"] => EXAMPLE,
        ["frameworks"] => FRAMEWORKS,
        ["otlp"] => OTLP,
        ["counts"] => COUNTS,
        ["counts", "--bless"] => BLESS,
        ["full"] => FULL,
        ["package"] => PACKAGE,
        ["package", "musl"] => PACKAGE_MUSL,
        ["package", "licenses"] => PACKAGE_LICENSES,
        ["portable"] => PORTABLE,
        ["bench"] => BENCH,
        ["bench", "gateway"] => BENCH_GATEWAY,
        ["bench", "loops"] => BENCH_LOOPS,
        ["crash", ..] => CRASH,
        ["crash-table", ..] => CRASH_TABLE,
        ["sanitize-bench"] => SANITIZE_BENCH,
        ["search-bench"] => SEARCH_BENCH,
        ["search-bench", "--choose"] => SEARCH_CHOOSE,
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [] => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
        unknown => {
            eprintln!("unknown command `{}`\n\n{HELP}", unknown.join(" "));
            return ExitCode::from(2);
        }
    };
    if steps::run(steps, &workspace) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
