//! `[[tool]]` of the kind `terminal`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use toolcrib_capabilities::process::{Sandbox, SandboxTier, find_program};
use toolcrib_config::{Located, Spot, Table};
use toolcrib_core::Tool;

use super::{Jobs, TerminalTool};
use crate::{
    Declaration, DeclaredKind, ExternalAccess, ToolErrors,
    command::{ArgItem, CommandToolSpec, DeclaredCommand},
};

/// The keys that only this kind has. It has those of `command` too, except for the program, its
/// arguments, its input and its exit codes.
pub const KEYS: &[&str] = &["shell", "max_jobs", "job_timeout"];

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
pub struct DeclaredShell {
    pub(crate) command: DeclaredCommand,
    /// Whether `inherit_env` is written.
    inherits: bool,
}

impl DeclaredShell {
    /// Reads the keys of every kind that runs a program; problems are recorded.
    pub(crate) fn read(table: &Table<'_>, program: String) -> Self {
        let mut command = DeclaredCommand::read_shared(table, program);
        let inherits = table.has("inherit_env");
        let (spec, _) = command.parts();
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

    /// The shell, as a program.
    pub fn command(&self) -> &DeclaredCommand {
        &self.command
    }

    /// Sets the sandbox `files`, unless one is written or the project has a stricter default.
    pub fn default_tier(&mut self, of_project: SandboxTier, at: &Spot) {
        let (_, sandbox) = self.command.parts();
        if sandbox.tier.is_none() && of_project < SandboxTier::Files {
            sandbox.tier = Some(Located { value: SandboxTier::Files, at: at.clone() });
        }
    }

    /// [`DeclaredCommand::default_stray_children`] of its program.
    pub fn default_stray_children(&mut self, of_project: bool) {
        self.command.default_stray_children(of_project);
    }

    /// The whole spec of a tool that runs command lines in it, with the folders of the project and the
    /// resolved sandbox.
    pub fn complete(
        &self,
        declaration: Declaration,
        base_dir: &Path,
        working_dir: PathBuf,
        sandbox: Sandbox,
    ) -> CommandToolSpec {
        let spec = self.command.complete(declaration, base_dir, working_dir, sandbox);
        CommandToolSpec { args: vec![ArgItem::from("-c")], ..spec }
    }

    /// [`DeclaredKind::external_access`] of a tool that runs such command lines in it.
    pub(crate) fn external_access(&self, line: &'static str) -> Vec<ExternalAccess<'_>> {
        let mut accesses = self.command.external_access();
        for access in &mut accesses {
            if let ExternalAccess::Program { command, inherit_env, .. } = access {
                command.extend(["-c", line]);
                if !self.inherits {
                    *inherit_env = &[];
                }
            }
        }
        accesses
    }
}

/// A tool of the toolset as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredTerminal {
    tool: TerminalTool,
    shell: DeclaredShell,
    jobs: Jobs,
}

impl DeclaredTerminal {
    /// Reads the keys of this kind, for all its tools; problems are recorded. `is_sandboxed`: the
    /// project declares a sandbox for all programs; without one, the shell's is `files`.
    pub fn read_all(table: &Table<'_>) -> Vec<Self> {
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

    /// The shell.
    pub fn shell(&self) -> &DeclaredShell {
        &self.shell
    }

    /// Its declaration, as [`TerminalTool::declaration`].
    pub fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix)
    }

    /// As [`TerminalTool::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(&self, spec: CommandToolSpec) -> Result<Tool, ToolErrors> {
        let source = spec.declaration.source.clone();
        self.tool.build(spec, &self.jobs).map_err(|mut found| {
            // The program has another key here.
            for error in found.errors.iter_mut().filter(|error| error.field == "/program") {
                error.field = "/shell".to_owned();
                error.at = source.value("/shell").cloned();
            }
            found
        })
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
        self.shell.command.secret_texts()
    }

    fn is_read_only(&self) -> bool {
        self.tool.is_read_only()
    }
}

/// The time of a job, in a form for a message.
pub(super) fn shown_time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}
