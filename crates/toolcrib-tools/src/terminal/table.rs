//! `[[tool]]` of the kind `terminal`.

use std::{path::Path, time::Duration};

use toolcrib_capabilities::process::{SandboxTier, find_program};
use toolcrib_config::Table;

use super::{Jobs, TerminalTool};
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    ProgramAccess,
    command::{ArgItem, CommandToolSpec, DeclaredCommand},
    kind::boxed,
};

/// The kind has the keys of `command` too, except for the program, its arguments, its input and its exit
/// codes.
pub(crate) const KIND: KindReader = KindReader {
    word: "terminal",
    keys: &["shell", "max_jobs", "job_timeout"],
    form: KindForm::TOOLSET,
    read: |table| boxed(DeclaredTerminal::read_all(table)),
};

/// The shells that are looked for if none is declared.
pub const DEFAULT_SHELLS: [&str; 2] = ["bash", "sh"];

/// The variables that the shell has from this process if no `inherit_env` is written.
const INHERITED: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ"];

/// The variables without which programs color and page their output.
const PLAIN: [(&str, &str); 4] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];

/// The most permitted jobs of a conversation.
const MOST_JOBS: usize = 64;

/// A shell as read from a table: a program that a model's words control, with the environment that
/// programs for people expect.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredShell {
    command: DeclaredCommand,
    /// Whether `inherit_env` is written.
    inherits: bool,
}

impl DeclaredShell {
    /// Reads the keys of every kind that runs a program; problems are recorded.
    pub(crate) fn read(table: &Table<'_>, program: String) -> Self {
        let mut command = DeclaredCommand::read_shared(table, program);
        let inherits = table.has("inherit_env");
        let spec = command.spec_mut();
        if !inherits {
            spec.inherit_env = INHERITED.map(str::to_owned).into();
        }
        let is_set = |spec: &CommandToolSpec, name| {
            spec.env.iter().any(|(set, _)| set == name)
                || spec.inherit_env.iter().any(|set| set == name)
        };
        for (name, value) in PLAIN {
            if !is_set(spec, name) {
                spec.env.push((name.to_owned(), value.to_owned()));
            }
        }
        // A declared variable replaces an inherited one of the default list.
        let declared: Vec<_> = spec.env.iter().map(|(name, _)| name.clone()).collect();
        if !inherits {
            spec.inherit_env.retain(|name| !declared.contains(name));
        }
        Self { command, inherits }
    }

    /// [`DeclaredKind::external_access`] of a tool that runs such command lines in it.
    pub(crate) fn external_access(&self, line: &'static str) -> Vec<ExternalAccess<'_>> {
        let access = self.command.access();
        let inherit_env = if self.inherits { access.inherit_env } else { &[] };
        let access = ProgramAccess { args: vec!["-c", line], inherit_env, ..access };
        vec![ExternalAccess::Program(access)]
    }

    pub(crate) fn secret_texts(&self) -> Vec<(String, &str)> {
        self.command.secret_texts()
    }

    /// The whole spec of a tool that runs command lines in it. They are a model's words, so the sandbox
    /// is `files` unless a tier is written.
    pub(crate) fn complete(
        &self,
        declaration: Declaration,
        ports: &dyn KindPorts,
    ) -> CommandToolSpec {
        let place = ports.program(&self.command.access(), SandboxTier::Files);
        let spec = self.command.complete(declaration, place);
        CommandToolSpec { args: vec![ArgItem::from("-c")], ..spec }
    }
}

/// A tool of the toolset as read from a table.
#[derive(Debug)]
struct DeclaredTerminal {
    tool: TerminalTool,
    shell: DeclaredShell,
    jobs: Jobs,
}

impl DeclaredTerminal {
    fn read_all(table: &Table<'_>) -> Vec<Self> {
        let shell = table.text("shell").map(|shell| shell.value.to_string());
        let found = || {
            let is_there = |shell: &&str| find_program(shell, Path::new("/")).is_ok();
            DEFAULT_SHELLS.into_iter().find(is_there).unwrap_or("sh").to_owned()
        };
        let shell = DeclaredShell::read(table, shell.unwrap_or_else(found));
        let most = table.integer("max_jobs", 0..=MOST_JOBS).unwrap_or(Jobs::DEFAULT_MOST);
        let time = table.duration("job_timeout").unwrap_or(Jobs::DEFAULT_TIME);
        let jobs = Jobs::new(most, time);
        let without_jobs = most == 0;
        let tools = TerminalTool::ALL.into_iter();
        tools
            .filter(|tool| !without_jobs || *tool == TerminalTool::Run)
            .map(|tool| Self { tool, shell: shell.clone(), jobs: jobs.clone() })
            .collect()
    }
}

impl DeclaredKind for DeclaredTerminal {
    /// The tools over jobs start nothing, so a review of the project shows the shell once for each tool
    /// that does.
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        if !self.tool.runs_commands() {
            return Vec::new();
        }
        self.shell.external_access("{command}")
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        self.shell.secret_texts()
    }

    fn is_read_only(&self) -> bool {
        self.tool.is_read_only()
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix)
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        let spec = self.shell.complete(declaration, ports);
        let source = spec.declaration.source.clone();
        Some(self.tool.build(spec, &self.jobs).map_err(|mut found| {
            // The program has another key here.
            for error in found.errors.iter_mut().filter(|error| error.field == "/program") {
                error.field = "/shell".to_owned();
                error.at = source.value("/shell").cloned();
            }
            found
        }))
    }
}

/// The time of a job, in a form for a message.
pub(super) fn shown_time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}
