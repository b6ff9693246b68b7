//! Everything that can be said of a command tool before it is called.

use std::{
    collections::HashSet,
    path::{self, Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use toolcrib_capabilities::process::{
    FindProgramError, ProcessLimits, Processes, find_program, program_digest,
};
use toolcrib_core::{Capabilities, Tool, ToolContext};

use super::{
    ArgItem, CommandToolSpec, Stdin,
    arguments::ArgTemplate,
    attached,
    environment::Environment,
    run::Body,
    table::{OF_A_SHELL, env_field, words},
};
use crate::{
    Declaration, ToolErrors,
    findings::{ErrorList, Field, Findings},
    making::declare_or_use,
    template::{SECRET, Template, TemplateError},
};

pub(crate) struct CheckedCommand {
    pub(crate) declaration: Declaration,
    pub(crate) body: Body,
    pub(crate) capabilities: Capabilities,
    pub(crate) found: ErrorList,
}

pub(super) fn build(spec: CommandToolSpec) -> Result<Tool, ToolErrors> {
    let base_dir = spec
        .working_dir
        .as_ref()
        .map_or_else(|| spec.base_dir.clone(), |folder| spec.base_dir.join(folder));
    // A script that an interpreter runs is an argument.
    let scripts: Vec<_> = spec.args.iter().map(|item| base_dir.join(&item.text)).collect();
    let CheckedCommand { declaration, body, capabilities, found } = prepare(spec, true);
    let (name, body) = (declaration.name.clone(), Arc::new(body));
    let program = body.program.clone();
    let made = declaration
        .into_builder()
        .project_text()
        .capabilities(capabilities)
        .open_world()
        .program(move || program_digest([&program].into_iter().chain(&scripts)))
        .handler(move |args: Value, cx: ToolContext| Arc::clone(&body).call(args, cx));
    found.or_tool(name, made)
}

/// Finds the program and reads all places. `uses_all`: parameters that nothing uses are reported.
pub(crate) fn prepare(spec: CommandToolSpec, uses_all: bool) -> CheckedCommand {
    let CommandToolSpec { mut declaration, base_dir, working_dir, .. } = spec;
    declaration.close_schema();
    let read_only = declaration.annotations.read_only;
    let mut check = Check(Findings::of(&declaration));
    // The host's working folder may change later.
    let base_dir = path::absolute(&base_dir).unwrap_or(base_dir);
    let program = check.program(&spec.program, !spec.args.is_empty(), &base_dir);
    let args = check.args(spec.args);
    let environment = check.environment(spec.env, spec.inherit_env);
    let working_dir = working_dir.map(|folder| check.folder(base_dir.join(folder)));
    check.limits(spec.max_output_bytes, &spec.limits);
    check.exit_codes(&spec.ok_exit_codes);
    if spec.stdin == Stdin::None && uses_all {
        check.unused();
    }
    let found = check.0.finish();
    let attachments = attached::parameters(&declaration.input_schema);
    let mut capabilities = Capabilities::none().secrets(environment.secrets());
    capabilities.attachments = !attachments.is_empty();
    let body = Body {
        processes: Processes::any().only([&program]),
        program,
        args,
        attachments,
        stdin: spec.stdin,
        environment,
        working_dir,
        max_output_bytes: spec.max_output_bytes,
        limits: spec.limits,
        allow_stray_children: spec.allow_stray_children,
        sandbox: spec.sandbox,
        ok_exit_codes: spec.ok_exit_codes,
        read_only,
    };
    CheckedCommand { declaration, body, capabilities, found }
}

struct Check<'a>(Findings<'a>);

impl Check<'_> {
    /// The program's file; an empty path after an error.
    fn program(&mut self, name: &str, has_args: bool, base_dir: &Path) -> PathBuf {
        if self.0.is_unreadable(name) {
            return PathBuf::new();
        }
        let field = Field::new("the program", "/program").clear_in_file();
        find_program(name, base_dir).unwrap_or_else(|error| {
            let help = program_help(name, has_args, &error);
            self.0.wrong_with(&field, None, program_problem(&error), help);
            PathBuf::new()
        })
    }

    fn args(&mut self, items: Vec<ArgItem>) -> Vec<ArgTemplate> {
        let mut read = Vec::with_capacity(items.len());
        for (position, ArgItem { text, when, allow_leading_dash }) in items.into_iter().enumerate()
        {
            let field = |before, key| {
                let label = format!("{before}item {} of `args`", position + 1);
                Field::new(label, format!("/args/{position}/{key}")).clear_in_file()
            };
            if let Some(parameter) = &when {
                self.uses(&field("`when` of ", "when"), None, parameter);
            }
            if let Some(template) = self.arg(&field("", "value"), &text) {
                read.push(ArgTemplate { template, when, allow_leading_dash });
            }
        }
        read
    }

    fn arg(&mut self, field: &Field, text: &str) -> Option<Template> {
        self.refuse_nul(field, text);
        let template = match bare_secret(text) {
            // The author means the secret, and the word would be passed.
            Some(offset) => Err(TemplateError::SecretNotHere { offset }),
            None => Template::parse(text),
        };
        let template = self.0.template(field, template)?;
        for (parameter, offset) in template.params() {
            self.uses(field, Some(offset), parameter);
        }
        Some(template)
    }

    fn refuse_nul(&mut self, field: &Field, text: &str) {
        if let Some(offset) = text.find('\0') {
            self.0.wrong(
                field,
                Some(offset),
                "it contains a NUL byte, which no program can be passed",
            );
        }
    }

    fn uses(&mut self, field: &Field, offset: Option<usize>, parameter: &str) {
        let Err(declared) = self.0.parameters.uses(parameter) else { return };
        let (message, help) = if self.0.source.is_secret(parameter) {
            let help = format!(
                "no secret is allowed here; give it in the environment: env = {{ {parameter} = \
                 \"secret:{parameter}\" }}"
            );
            (format!("`{parameter}` is a secret"), Some(help))
        } else {
            let next = declare_or_use(&declared);
            (format!("there is no parameter `{parameter}`; {next}"), None)
        };
        self.0.wrong_with(field, offset, message, help);
    }

    fn environment(&mut self, env: Vec<(String, String)>, passed_on: Vec<String>) -> Environment {
        let mut names = HashSet::new();
        let mut read = Environment::default();
        for (name, text) in env {
            let field = env_field(&name);
            self.variable(&field.key(), &name, &mut names);
            self.refuse_nul(&field, &text);
            let template = self.0.template(&field, Template::parse_with_secrets(&text));
            let Some(template) = template else { continue };
            for (parameter, offset) in template.params() {
                let is_secret = self.0.source.is_secret(parameter);
                let message = if is_secret {
                    format!("`{parameter}` is a secret")
                } else {
                    format!(
                        "the environment takes no arguments of a call; pass `{parameter}` in `args` \
                         or on stdin, and write `{{{{` for the brace itself"
                    )
                };
                let help = is_secret.then(|| format!("write `{{secret:{parameter}}}`"));
                self.0.wrong_with(&field, Some(offset), message, help);
            }
            read.declared.push((name, template));
        }
        for (position, name) in passed_on.into_iter().enumerate() {
            if !self.0.is_unreadable(&name) {
                let label = format!("the variable `{}` of `inherit_env`", name.escape_debug());
                let field = Field::new(label, format!("/inherit_env/{position}"));
                self.variable(&field, &name, &mut names);
            }
            read.passed_on.push(name);
        }
        read
    }

    fn variable(&mut self, field: &Field, name: &str, names: &mut HashSet<String>) {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = "a variable's name is not empty and contains neither `=` nor NUL bytes";
            self.0.wrong(field, None, message);
        }
        if !names.insert(name.to_owned()) {
            let message = "this variable is declared twice; a program would see one of the values";
            self.0.wrong(field, None, message);
        }
    }

    fn folder(&mut self, path: PathBuf) -> PathBuf {
        if !path.is_dir() {
            let field = Field::new("the working folder", "/working_dir");
            self.0.wrong(&field, None, format!("there is no folder {}", path.display()));
        }
        path
    }

    fn limits(&mut self, max_output_bytes: usize, limits: &ProcessLimits) {
        let is_zero = [
            ("max_output_bytes", max_output_bytes == 0),
            ("memory_max", limits.memory == Some(0)),
            ("total_memory_max", limits.total_memory == Some(0)),
            ("processes_max", limits.processes == Some(0)),
            ("file_max", limits.file_size == Some(0)),
            ("cpu_max", limits.cpu_time.is_some_and(|time| time.is_zero())),
        ];
        for (key, _) in is_zero.into_iter().filter(|(_, is_zero)| *is_zero) {
            let field = Field::new(format!("`{key}`"), format!("/{key}"));
            self.0.wrong(&field, None, "it is 0; it must be at least 1");
        }
    }

    fn exit_codes(&mut self, codes: &[i32]) {
        let field = Field::new("`ok_exit_codes`", "/ok_exit_codes");
        if codes.is_empty() {
            let message = "it names no exit code, so every call would fail; 0 is the usual one";
            self.0.wrong(&field, None, message);
        }
        for code in codes.iter().filter(|code| !(0..=255).contains(*code)) {
            let message = format!("{code} is not an exit code; they lie between 0 and 255");
            self.0.wrong(&field, None, message);
        }
    }

    fn unused(&mut self) {
        self.0.report_unused(|name| {
            format!(
                "nothing uses it; write `{{{name}}}` in an item of `args`, pass all as JSON on \
                 stdin, or drop it"
            )
        });
    }
}

/// Without the `PATH` itself, which is long and says little.
fn program_problem(error: &FindProgramError) -> String {
    match error {
        FindProgramError::NotOnPath { name, .. } if name.contains(char::is_whitespace) => format!(
            "there is no program `{name}` on the PATH; `program` is one name; its \
             arguments belong in `args`"
        ),
        FindProgramError::NotOnPath { name, .. } => format!(
            "there is no program `{name}` on the PATH; install it, or name its file with a `/` in it"
        ),
        other => other.to_string(),
    }
}

/// The next step where a program is not found, other than installing it.
fn program_help(program: &str, has_args: bool, error: &FindProgramError) -> Option<String> {
    if let FindProgramError::NoProgram { file } = error
        && file.is_file()
    {
        return Some(format!("make it executable: chmod +x {}", file.display()));
    }
    let (first, rest) = program.trim().split_once(char::is_whitespace)?;
    if first.contains(OF_A_SHELL) || rest.contains(OF_A_SHELL) {
        return Some(
            "there is no shell; write a script into the project and name it: program = \"./NAME\""
                .to_owned(),
        );
    }
    let more = if has_args { ", …" } else { "" };
    Some(format!("write program = \"{first}\" and args = [{}{more}]", words(rest)))
}

/// The offset of `secret:NAME` in a text, outside or inside braces.
fn bare_secret(text: &str) -> Option<usize> {
    let names = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    text.match_indices(SECRET)
        .find(|(at, word)| text.get(at + word.len()..).is_some_and(names))
        .map(|(at, _)| at)
}
