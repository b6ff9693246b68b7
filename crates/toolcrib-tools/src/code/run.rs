//! The body: one call, one run of a linter, a compiler or tests.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_artifacts::Artifact;
use toolcrib_capabilities::process::ProcessEnd;
use toolcrib_core::{ErrorCode, ToolContext, ToolError, ToolOutput};

use super::{
    CodeTool, FILTER, FOLDER, LANGUAGE, Report, cargo, go, node, problem::Problem, pytest,
};
use crate::{
    arguments::{refused, text},
    command::{self, limits::ended_by},
    terminal::run::{ProgramRun, room, run_to_end},
};

/// The mark of the line that says which program runs.
const MARK: &str = "::toolcrib ";

/// The exit code without a program to run.
const NOTHING_TO_RUN: i32 = 126;

/// The exit code of a shell for a program that is not installed.
const NOT_INSTALLED: i32 = 127;

/// The most problems in the data of a result.
const MOST_PROBLEMS: usize = 200;

/// Finds the language of the folder, unless it is given, and the Python to run.
const BEGIN: &str = r#"exec 2>&1
cd -- "$1" || exit 126
language=$2
if [ -z "$language" ]; then
  if [ -f Cargo.toml ]; then language=rust
  elif [ -f go.mod ]; then language=go
  elif [ -f package.json ]; then language=node
  elif [ -f pyproject.toml ] || [ -f setup.py ] || [ -f setup.cfg ] || [ -f pytest.ini ] ||
    ls ./*.py >/dev/null 2>&1 || ls ./tests/*.py >/dev/null 2>&1; then language=python
  fi
fi
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python
manager=npm
[ -f pnpm-lock.yaml ] && manager=pnpm
# A script of the project that calls npx starts no package that is not installed.
export npm_config_yes=false
has() { command -v "$1" >/dev/null 2>&1; }
has_script() { grep -Eq "\"$1\"[[:space:]]*:" package.json; }
has_module() { "$python" -c "import $1" >/dev/null 2>&1; }
missing() { printf '::missing %s: %s\n' "$1" "$2"; exit 127; }
run() { printf '::toolcrib %s %s\n' "$language" "$*"; exec "$@"; }
case $language in
rust) has cargo || missing cargo 'install Rust, see https://rustup.rs' ;;
go) has go || missing go 'install Go, see https://go.dev/doc/install' ;;
python) has "$python" || missing python3 'install Python, see https://www.python.org/downloads' ;;
esac
# A package of the project, or of a folder above it.
installed() {
  folder=$PWD
  while :; do
    [ -x "$folder/node_modules/.bin/$1" ] && { printf '%s\n' "$folder/node_modules/.bin/$1"; return; }
    [ "$folder" = / ] || [ -z "$folder" ] && return 1
    folder=${folder%/*}
    folder=${folder:-/}
  done
}
script() {
  has "$manager" || missing "$manager" 'install Node with npm, see https://nodejs.org, or pnpm, see https://pnpm.io'
  run "$manager" "$@"
}
"#;

const LINT: &str = r#"case $language in
rust) run cargo clippy --all-targets --message-format short ;;
go) run go vet ./... ;;
node)
  if has_script lint; then script run --silent lint
  elif eslint=$(installed eslint); then run "$eslint" .
  else missing eslint "run \`$manager install --save-dev eslint\` in this folder"; fi ;;
python)
  if has ruff; then run ruff check --output-format concise --no-cache .
  elif has_module ruff; then run "$python" -m ruff check --output-format concise --no-cache .
  elif has_module flake8; then run "$python" -m flake8 .
  else missing ruff "run \`$python -m pip install ruff\`"; fi ;;
esac
exit 126
"#;

const TYPECHECK: &str = r#"case $language in
rust) run cargo check --all-targets --message-format short ;;
go) run go vet ./... ;;
node)
  if has_script typecheck; then script run --silent typecheck
  elif tsc=$(installed tsc); then run "$tsc" --noEmit --pretty false
  else missing tsc "run \`$manager install --save-dev typescript\` in this folder"; fi ;;
python)
  if has_module mypy; then run "$python" -m mypy --no-color-output --no-error-summary .
  elif has pyright; then run pyright
  else missing mypy "run \`$python -m pip install mypy\`"; fi ;;
esac
exit 126
"#;

const TESTS: &str = r#"case $language in
rust) run cargo test --no-fail-fast --message-format short ${3:+"$3"} ;;
go) run go test -v ./... ${3:+-run "$3"} ;;
node)
  has_script test || missing 'the script "test"' 'add it to "scripts" in package.json'
  script test --silent ${3:+-- "$3"} ;;
python)
  if has_module pytest; then
    run "$python" -m pytest -q --tb=short -rfE --color=no -p no:cacheprovider ${3:+-k "$3"}
  else run "$python" -m unittest ${3:+-k "$3"}; fi ;;
esac
exit 126
"#;

/// The programs that a message of theirs, or of their caller, reports as missing, and how to install them.
const MISSING: [(&str, &str); 7] = [
    ("no such command: `clippy`", "run `rustup component add clippy`"),
    ("'cargo-clippy' is not installed", "run `rustup component add clippy`"),
    ("No module named pytest", "run `python3 -m pip install pytest`"),
    ("No module named", "install the dependencies of the project"),
    ("could not determine executable", "install the dependencies of the project"),
    ("npx canceled due to missing packages", "install the dependencies of the project"),
    ("no such command", "install the cargo subcommand"),
];

/// The end of unittest's output if it found no test.
const NO_TESTS: &str = "Ran 0 tests in";

/// The handler of a tool.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) tool: CodeTool,
    pub(super) program: Arc<command::Body>,
    pub(super) most: Duration,
}

impl Body {
    pub(super) async fn call(self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let mut given = Vec::with_capacity(3);
        for name in [FOLDER, LANGUAGE, FILTER] {
            let value = text(&args, name).unwrap_or_default().into_owned();
            if value.contains('\0') || value.starts_with('-') {
                return Err(refused(name, "may not begin with `-` or contain a NUL character"));
            }
            given.push(value);
        }
        if let Some(folder) = given.first_mut().filter(|folder| folder.is_empty()) {
            ".".clone_into(folder);
        }
        let has_filter = given.last().is_some_and(|filter| !filter.is_empty());
        let script = match self.tool {
            CodeTool::Lint => LINT,
            CodeTool::Typecheck => TYPECHECK,
            CodeTool::RunTests => TESTS,
        };
        let words = ["-c".to_owned(), format!("{BEGIN}{script}"), "sh".to_owned()];
        let words = words.into_iter().chain(given).map(Into::into).collect();
        let process = self.program.process(words, &cx).await?;
        // Without `.`; programs write paths from where it really is.
        let root: PathBuf = process.working_dir.components().collect();
        let root = root.canonicalize().unwrap_or(root);
        let ran = run_to_end(&self.program, process, self.most, &cx).await?;
        let output = ran.text(&cx);
        let (command, language, output) = parts(&output);
        let what = if command.is_empty() { "the program" } else { command };
        let next = "run fewer tests with `filter`, or ask for a longer timeout of this tool";
        if let Some((code, about)) = ran.stopped(what, self.most, next, &cx) {
            return Err(ToolError::new(code, format!("{about}\n{}", shown(&ran, &cx))));
        }
        let ProcessEnd::Code(code) = ran.finished.ended else {
            let end = ended_by(ran.finished.ended, ran.limits);
            let about = format!("{what} was ended by {end}\n{}", shown(&ran, &cx));
            return Err(ToolError::failed(about));
        };
        if command.is_empty() && code == NOTHING_TO_RUN {
            return Err(not_found(output));
        }
        if let Some(text) = missing(command, code, output) {
            return Err(ToolError::new(ErrorCode::NotAvailable, text));
        }
        let report = read(language, output, &root);
        Ok(self.result(&ran, &report, (command, code), &cx, has_filter))
    }

    fn result(
        &self,
        ran: &ProgramRun,
        report: &Report,
        (command, code): (&str, i32),
        cx: &ToolContext,
        has_filter: bool,
    ) -> ToolOutput {
        let Report { problems, passed, failed, has_counts } = report;
        let none_ran = self.tool == CodeTool::RunTests && *has_counts && passed + failed == 0;
        let is_good = code == 0 && !(none_ran && has_filter);
        let about = match (self.tool, has_counts, is_good) {
            _ if none_ran && has_filter && problems.is_empty() => {
                "no test ran; none that runs matches `filter`".to_owned()
            }
            _ if none_ran && is_good => "no test ran".to_owned(),
            (CodeTool::RunTests, true, true) => format!("{passed} passed"),
            (CodeTool::RunTests, true, false) => format!("{passed} passed, {failed} failed"),
            (_, _, true) if problems.is_empty() => "no problems".to_owned(),
            (_, _, true) => format!("{} warnings", problems.len()),
            _ => format!("failed with exit code {code}, {} problems", problems.len()),
        };
        let mut shown = format!("{command}: {about}");
        let mut left = room(cx);
        for (at, problem) in problems.iter().enumerate() {
            let line = problem.to_string();
            match left.checked_sub(line.chars().count() + 1) {
                Some(rest) => left = rest,
                None => {
                    let more = problems.len() - at;
                    let place = ran.artifact.as_ref().map(Artifact::id);
                    let place = place.map(|id| format!("; the whole output is the artifact {id}"));
                    let _ = write!(shown, "\n[{more} more problems{}]", place.unwrap_or_default());
                    break;
                }
            }
            let _ = write!(shown, "\n{line}");
        }
        if problems.is_empty() && !is_good {
            let _ = write!(shown, "\n{}", self::shown(ran, cx));
        }
        let data: Vec<_> = problems.iter().take(MOST_PROBLEMS).map(Problem::data).collect();
        ToolOutput::text(shown).structured(json!({
            "command": command,
            "ok": is_good,
            "exit_code": code,
            "passed": has_counts.then_some(passed),
            "failed": has_counts.then_some(failed),
            "problems": data,
            "artifact": ran.artifact.as_ref().map(Artifact::id),
        }))
    }
}

/// Reads the output of the programs of a language. Places are relative to `root`.
fn read(language: &str, output: &str, root: &Path) -> Report {
    let mut report = match language {
        "rust" => cargo::read(output),
        "node" => node::read(output),
        "python" => pytest::read(output),
        _ => go::read(output),
    };
    for place in report.problems.iter_mut().filter_map(|problem| problem.place.as_mut()) {
        if let Ok(below) = Path::new(&place.file).strip_prefix(root) {
            place.file = below.to_string_lossy().into_owned();
        }
    }
    report
}

/// The error of a program that is not installed.
fn missing(command: &str, code: i32, output: &str) -> Option<String> {
    if let Some(about) = output.strip_prefix("::missing ") {
        return Some(format!("not installed: {}", about.trim_end()));
    }
    if command.ends_with("unittest") && output.contains(NO_TESTS) {
        let next = "tests of pytest need it: run `python3 -m pip install pytest`";
        return Some(format!("`{command}` found no tests; {next}"));
    }
    let is_short = output.lines().count() < 8;
    let known = MISSING.iter().find(|(text, _)| is_short && output.contains(text));
    let next = match (code, known) {
        (0, _) => return None,
        // npx, which npm made silent, refuses to install a package; a script rarely fails without a word.
        (1, None) if command.contains("--silent") && output.trim().is_empty() => {
            "it failed without output: a package that a script starts by npx may be missing; install \
             the dependencies of the project"
        }
        (_, Some((_, next))) => next,
        (NOT_INSTALLED, None) => "install the dependencies of the project",
        (_, None) => return None,
    };
    let why = output.trim();
    let gap = if why.is_empty() { "" } else { "\n" };
    Some(format!("`{command}` cannot be run here: {why}{gap}{next}"))
}

/// The output as a terminal shows it, without the mark.
fn shown(ran: &ProgramRun, cx: &ToolContext) -> String {
    parts(&ran.shown(cx)).2.to_owned()
}

/// The program that ran, its language, and its output.
fn parts(output: &str) -> (&str, &str, &str) {
    let Some(marked) = output.strip_prefix(MARK) else { return ("", "", output) };
    let (line, rest) = marked.split_once('\n').unwrap_or((marked, ""));
    let (language, command) = line.split_once(' ').unwrap_or((line, ""));
    (command, language, rest)
}

fn not_found(output: &str) -> ToolError {
    let output = output.trim();
    ToolError::input_invalid(match output.is_empty() {
        true => {
            "the folder has no `Cargo.toml`, `package.json`, `go.mod` or Python files; name the \
                 `folder` of the code"
                .to_owned()
        }
        false => format!("`folder` cannot be entered: {output}"),
    })
}
