//! `cargo xtask`: the checks before a change is merged, in one command.
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
mod report;
mod sanitize_bench;
mod search_bench;
mod shape;
mod small_examples;
mod sources;
mod steps;
mod tests;
mod workspace;

use std::process::ExitCode;

use crate::{
    steps::{
        API, ATTACKS, BENCH, BENCH_GATEWAY, BENCH_LOOPS, BLESS, BLESS_API, BLESS_CONFORMANCE, BOOK,
        CONFIGS, CONFORMANCE, COUNTS, EXAMPLE, FRAMEWORKS, FULL, HARM, LINT, ORACLE, OTLP, PACKAGE,
        PACKAGE_LICENSES, PACKAGE_MUSL, PEERS, PORTABLE, PROSE, SANITIZE_BENCH, SEARCH_BENCH,
        SEARCH_CHOOSE, SHAPE, TEST,
    },
    workspace::Workspace,
};

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test      everything that CI checks: lint, tests, docs, public API and examples
  full      too long for `test`: tests with more interrupts and random cases, all pages of the
            documentation, `otlp`, `frameworks`, `portable`, crates one by one, counts, whether all
            crates could be published, and `package`
  package   the program as it is released, as a wheel, npm packages and an archive, each installed into an
            empty environment and tried there; installs zig and the third-party programs of `peers`, for Node;
            `package musl` for every Linux; `package licenses` only target/package/texts/THIRD-PARTY.txt
  portable  library, agent and gateway without Unix-only calls (`--cfg portable`), and their tests
  lint      formatting, file sizes, imports, links, cargo-deny for the dependencies, and clippy
  prose     phrases that docs/style.md replaces, in user-visible texts and in comments
  shape     the import circles of each crate, of which `lint` permits no large one
  oracle    the model adapters against the vendors' own SDKs, which it installs
  peers     the MCP client and the gateway against third-party servers and clients, which it installs
  conformance
            the official MCP suite, which it installs, on the gateway and the client, beside FastMCP's
            proxy, into docs/conformance.md; --bless removes expected failures that pass
  configs   70 shapes of the files in which MCP clients declare servers
  harm      the tests of faults that were found from outside; fails if a kind of fault has none
  attacks   all tests in modules called `attacks`, with 10,000 rounds of random cases
  api       the pages of the libraries, without warnings, and the public API, compared with
            docs/internal/public-api.txt; --bless writes it there
  book      docs/ as a book, in target/book; installs mdBook
  example   the programs of examples/, and the support desk on a copy
  frameworks
            the programs of examples/frameworks: tools in rig and rmcp, a model of genai, clients in Python and
            TypeScript
  otlp      the tests of traces in OTLP, with the feature `otlp` of the program
  counts    instructions and allocations, compared with benches/baseline.json and benches/origin.json, and
            how they grow with a session or a set; --bless makes them the baseline
  bench     times and memory, written into docs/benchmarks.md. Run nothing else meanwhile
  bench gateway
            the same for `toolcrib serve`, compared with third-party gateways, which it installs (104 MB)
  bench loops
            the agent loop beside those of rig, Vercel's ai and pydantic-ai, which it installs (60 MB)
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
