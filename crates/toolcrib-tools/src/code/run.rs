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
    command,
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
has_script() { grep -Eq "\"$1\"[[:space:]]*:" package.json; }
has_module() { "$python" -c "import $1" >/dev/null 2>&1; }
run() { printf '::toolcrib %s %s\n' "$language" "$*"; exec "$@"; }
"#;

const LINT: &str = r#"case $language in
rust) run cargo clippy --all-targets --message-format short ;;
go) run go vet ./... ;;
node) if has_script lint; then run "$manager" run --silent lint; else run npx --no-install eslint .; fi ;;
python)
  if command -v ruff >/dev/null 2>&1; then run ruff check --output-format concise --no-cache .
  elif has_module ruff; then run "$python" -m ruff check --output-format concise --no-cache .
  elif has_module flake8; then run "$python" -m flake8 .
  else run "$python" -m compileall -q . ; fi ;;
esac
exit 126
"#;

const TYPECHECK: &str = r#"case $language in
rust) run cargo check --all-targets --message-format short ;;
go) run go vet ./... ;;
node)
  if has_script typecheck; then run "$manager" run --silent typecheck
  else run npx --no-install tsc --noEmit --pretty false; fi ;;
python)
  if has_module mypy; then run "$python" -m mypy --no-color-output --no-error-summary .
  elif command -v pyright >/dev/null 2>&1; then run pyright
  else run "$python" -m compileall -q . ; fi ;;
esac
exit 126
"#;

const TESTS: &str = r#"case $language in
rust) run cargo test --no-fail-fast --message-format short ${3:+"$3"} ;;
go) run go test -v ./... ${3:+-run "$3"} ;;
node) run "$manager" test --silent ${3:+-- "$3"} ;;
python)
  if has_module pytest; then
    run "$python" -m pytest -q --tb=short -rfE --color=no -p no:cacheprovider ${3:+-k "$3"}
  else run "$python" -m unittest ${3:+-k "$3"}; fi ;;
esac
exit 126
"#;

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
            return Err(ToolError::new(code, format!("{about}\n{}", ran.shown(&cx))));
        }
        let code = match ran.finished.ended {
            ProcessEnd::Code(code) => code,
            signal @ ProcessEnd::Signal(_) => {
                let about = format!("{what} was ended by {signal}\n{}", ran.shown(&cx));
                return Err(ToolError::failed(about));
            }
        };
        if command.is_empty() && code == NOTHING_TO_RUN {
            return Err(not_found(output));
        }
        let is_missing = ["No module named", "could not determine executable", "no such command"]
            .iter()
            .any(|text| output.contains(text));
        if code == NOT_INSTALLED || (code != 0 && is_missing && output.lines().count() < 8) {
            let text = format!("`{command}` cannot be run here: {}", output.trim());
            return Err(ToolError::new(ErrorCode::NotAvailable, text));
        }
        let mut report = match language {
            "rust" => cargo::read(output),
            "node" => node::read(output),
            "python" => pytest::read(output),
            _ => go::read(output),
        };
        for place in report.problems.iter_mut().filter_map(|problem| problem.place.as_mut()) {
            if let Ok(below) = Path::new(&place.file).strip_prefix(&root) {
                place.file = below.to_string_lossy().into_owned();
            }
        }
        Ok(self.result(&ran, &report, (command, code), &cx))
    }

    fn result(
        &self,
        ran: &ProgramRun,
        report: &Report,
        (command, code): (&str, i32),
        cx: &ToolContext,
    ) -> ToolOutput {
        let Report { problems, passed, failed, has_counts } = report;
        let is_good = code == 0;
        let about = match (self.tool, has_counts, is_good) {
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
            let _ = write!(shown, "\n{}", ran.shown(cx));
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

/// The program that ran, its language, and its output.
fn parts(output: &str) -> (&str, &str, &str) {
    let marked = output.strip_prefix(MARK).and_then(|rest| rest.split_once('\n'));
    let Some((line, rest)) = marked else { return ("", "", output) };
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
