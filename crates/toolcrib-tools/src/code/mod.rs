//! A toolset for programmers: linters, type checkers and tests of Rust, Node, Python and Go, with their
//! problems by file and line.
//!
//! A call runs the usual program of the folder's language in a sandbox: see [`terminal`](crate::terminal).
//! The language is that of the folder's files: `Cargo.toml`, `package.json`, `go.mod`, and for Python
//! `pyproject.toml` and others. The output of the program is parsed; failed tests are a result and not an
//! error.

mod cargo;
mod go;
mod node;
mod problem;
mod pytest;
mod run;
mod table;

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use toolcrib_core::{Annotations, Tool};

pub(crate) use self::table::KIND;
use self::{problem::Problem, run::Body};
use crate::{
    Declaration, ToolErrors,
    command::{CheckedCommand, CommandToolSpec, prepare},
    declaration::prefixed,
};

/// The names of parameters.
const FOLDER: &str = "folder";
const LANGUAGE: &str = "language";
const FILTER: &str = "filter";

/// The label of the toolset, unless a project gives it another one.
pub const TOOLSET: &str = "code";

/// The languages, as arguments name them.
const LANGUAGES: [&str; 4] = ["rust", "node", "python", "go"];

/// The default of the time of one call.
const MOST_TIME: Duration = Duration::from_secs(600);

/// The time that a call has after its program was stopped.
const STOP_TIME: Duration = Duration::from_secs(10);

/// A tool of the toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeTool {
    /// Runs the linter.
    Lint,
    /// Runs the compiler or type checker, without a result.
    Typecheck,
    /// Runs the tests.
    RunTests,
}

impl CodeTool {
    /// Every tool of the set.
    pub const ALL: [Self; 3] = [Self::Lint, Self::Typecheck, Self::RunTests];

    /// Its name, after the prefix of the toolset, if it has one.
    pub fn name(self, prefix: Option<&str>) -> String {
        let name = match self {
            Self::Lint => "lint",
            Self::Typecheck => "typecheck",
            Self::RunTests => "run_tests",
        };
        prefixed(prefix, name)
    }

    /// Its declaration: its name, description and parameters, and all else as in `base`. The
    /// description of `base` says what the code is; it may be empty.
    pub fn declaration(self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        let does = match self {
            Self::Lint => {
                "Runs the linter on the code, and returns its findings by file and line. Use it after \
                 you have changed code."
            }
            Self::Typecheck => {
                "Checks that the code compiles, or its types, and returns errors by file and line. Use \
                 it after each change, before you run the tests."
            }
            Self::RunTests => {
                "Runs the tests, and returns the number of passed and failed ones, and each failure \
                 with its file and line. Use it before you say that a change works."
            }
        };
        let mut parameters = Map::new();
        let text = |about: &str| json!({ "type": "string", "description": about });
        let about = "The folder of the code, from the working folder; that one by default.";
        parameters.insert(FOLDER.to_owned(), text(about));
        if self == Self::RunTests {
            let about = "A part of the names of the tests to run; all by default.";
            parameters.insert(FILTER.to_owned(), text(about));
        }
        let about = "The language, if the folder has several; that of its files by default.";
        let language = json!({ "type": "string", "enum": LANGUAGES, "description": about });
        parameters.insert(LANGUAGE.to_owned(), language);
        Declaration {
            name: self.name(prefix),
            description: base.described(does),
            // Programs of the project run, which may do anything that the sandbox permits.
            annotations: Annotations { read_only: false, destructive: false, idempotent: true },
            input_schema: json!({
                "type": "object",
                "properties": parameters,
                "additionalProperties": false,
            }),
            timeout: Some(base.timeout.unwrap_or(MOST_TIME) + STOP_TIME),
            ..base.in_toolset(TOOLSET)
        }
    }

    /// Makes the tool, of a spec with the program `sh` and with this tool's
    /// [`declaration`](Self::declaration).
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(self, spec: CommandToolSpec) -> Result<Tool, ToolErrors> {
        let CheckedCommand { declaration, body, capabilities, found } = prepare(spec, false);
        let name = declaration.name.clone();
        let most = declaration.timeout.map(|timeout| timeout.saturating_sub(STOP_TIME));
        let shell = body.program.to_string_lossy().into_owned();
        let body = Body { tool: self, program: Arc::new(body), most: most.unwrap_or(MOST_TIME) };
        let made = declaration
            .into_builder()
            .project_text()
            .capabilities(capabilities.process([shell]))
            .own_handles()
            .open_world()
            .handler(move |args: Value, cx| body.clone().call(args, cx));
        found.or_tool(name, made)
    }
}

/// The parsed output of a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    problems: Vec<Problem>,
    passed: usize,
    failed: usize,
    /// Whether tests were counted.
    has_counts: bool,
}

impl Report {
    /// Removes problems that were reported before, such as those of each target of a package.
    fn drop_repeats(&mut self) {
        let mut seen = HashSet::new();
        self.problems.retain(|problem| seen.insert(problem.clone()));
    }
}

#[cfg(test)]
mod tests;
