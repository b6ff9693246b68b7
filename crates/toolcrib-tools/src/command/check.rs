//! Everything that can be said of a command tool before it is called.

use std::{
    collections::HashSet,
    path::{self, Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use toolcrib_core::{Capabilities, Tool, ToolContext};
use toolcrib_scope::process::{ProcessLimits, Processes, find_program};

use super::{
    ArgItem, CommandToolSpec, Stdin,
    arguments::ArgTemplate,
    environment::Environment,
    error::{CommandToolError, CommandToolErrors, CommandToolPart, CommandToolProblem},
    run::Body,
};
use crate::{
    making::{Parameters, ToolErrors},
    template::{SECRET, Template, TemplateError},
};

pub(super) fn build(spec: CommandToolSpec) -> Result<Tool, CommandToolErrors> {
    let CommandToolSpec { mut declaration, base_dir, working_dir, .. } = spec;
    declaration.close_schema();
    let name = declaration.name.clone();
    let read_only = declaration.annotations.read_only;
    let mut check = Check::new(&declaration.input_schema);
    // Where the host stands later may be elsewhere.
    let base_dir = path::absolute(&base_dir).unwrap_or(base_dir);
    let program = check.program(&spec.program, &base_dir);
    let args = check.args(spec.args);
    let environment = check.environment(spec.env, spec.inherit_env);
    let working_dir = working_dir.map(|folder| check.folder(base_dir.join(folder)));
    check.limits(spec.max_output_bytes, &spec.limits);
    check.exit_codes(&spec.ok_exit_codes);
    let errors = check.finish(spec.stdin);
    let secrets = Capabilities::none().secrets(environment.secrets());
    let body = Arc::new(Body {
        processes: Processes::any().only([&program]),
        program,
        args,
        stdin: spec.stdin,
        environment,
        working_dir,
        max_output_bytes: spec.max_output_bytes,
        limits: spec.limits,
        allow_stray_children: spec.allow_stray_children,
        ok_exit_codes: spec.ok_exit_codes,
        read_only,
    });
    let made = declaration
        .into_builder()
        .capabilities(secrets)
        .open_world()
        .handler(move |args: Value, cx: ToolContext| Arc::clone(&body).call(args, cx));
    ToolErrors::or_tool(name, errors, made)
}

/// What is found while the parts are read.
struct Check<'a> {
    parameters: Parameters<'a>,
    errors: Vec<CommandToolError>,
}

impl<'a> Check<'a> {
    fn new(schema: &'a Value) -> Self {
        Self { parameters: Parameters::of(schema), errors: Vec::new() }
    }

    fn wrong(
        &mut self,
        part: CommandToolPart,
        offset: Option<usize>,
        problem: impl Into<CommandToolProblem>,
    ) {
        self.errors.push(CommandToolError { part, offset, problem: problem.into() });
    }

    /// The program's file. Where there is none, there is an error, and so no tool.
    fn program(&mut self, name: &str, base_dir: &Path) -> PathBuf {
        match find_program(name, base_dir) {
            Ok(program) => program,
            Err(error) => {
                self.wrong(CommandToolPart::Program, None, error);
                PathBuf::new()
            }
        }
    }

    fn args(&mut self, items: Vec<ArgItem>) -> Vec<ArgTemplate> {
        let mut read = Vec::with_capacity(items.len());
        for (position, ArgItem { text, when, allow_leading_dash }) in items.into_iter().enumerate()
        {
            if let Some(parameter) = &when {
                self.uses(&CommandToolPart::ArgWhen { position }, None, parameter);
            }
            let part = CommandToolPart::Arg { position };
            if let Some(template) = self.arg(&part, &text) {
                read.push(ArgTemplate { template, when, allow_leading_dash });
            }
        }
        read
    }

    fn arg(&mut self, part: &CommandToolPart, text: &str) -> Option<Template> {
        if text.contains('\0') {
            self.wrong(part.clone(), text.find('\0'), CommandToolProblem::Nul);
        }
        let template = match bare_secret(text) {
            // Whoever writes it means the secret, and the word would be passed.
            Some(offset) => Err(TemplateError::SecretNotHere { offset }),
            None => Template::parse(text),
        };
        let template = self.readable(part, template)?;
        for (parameter, offset) in template.params() {
            self.uses(part, Some(offset), parameter);
        }
        Some(template)
    }

    fn readable(
        &mut self,
        part: &CommandToolPart,
        template: Result<Template, TemplateError>,
    ) -> Option<Template> {
        template
            .map_err(|error| {
                self.parameters.not_all_read();
                self.wrong(part.clone(), Some(error.offset()), error);
            })
            .ok()
    }

    fn uses(&mut self, part: &CommandToolPart, offset: Option<usize>, parameter: &str) {
        if let Err(declared) = self.parameters.uses(parameter) {
            let parameter = parameter.to_owned();
            let problem = CommandToolProblem::UnknownParameter { parameter, declared };
            self.wrong(part.clone(), offset, problem);
        }
    }

    fn environment(&mut self, env: Vec<(String, String)>, passed_on: Vec<String>) -> Environment {
        let mut names = HashSet::new();
        let mut read = Environment::default();
        for (position, (name, text)) in env.into_iter().enumerate() {
            let part = CommandToolPart::Env { position, name: name.clone() };
            self.variable(&part, &name, &mut names);
            if text.contains('\0') {
                self.wrong(part.clone(), text.find('\0'), CommandToolProblem::Nul);
            }
            let template = self.readable(&part, Template::parse_with_secrets(&text));
            let Some(template) = template else { continue };
            for (parameter, offset) in template.params() {
                let problem = CommandToolProblem::PlaceInEnv { parameter: parameter.to_owned() };
                self.wrong(part.clone(), Some(offset), problem);
            }
            read.declared.push((name, template));
        }
        for (position, name) in passed_on.into_iter().enumerate() {
            let part = CommandToolPart::InheritEnv { position, name: name.clone() };
            self.variable(&part, &name, &mut names);
            read.passed_on.push(name);
        }
        read
    }

    fn variable(&mut self, part: &CommandToolPart, name: &str, names: &mut HashSet<String>) {
        if name.is_empty() || name.contains(['=', '\0']) {
            self.wrong(part.clone(), None, CommandToolProblem::VariableName);
        }
        if !names.insert(name.to_owned()) {
            self.wrong(part.clone(), None, CommandToolProblem::VariableTwice);
        }
    }

    fn folder(&mut self, path: PathBuf) -> PathBuf {
        if !path.is_dir() {
            let problem = CommandToolProblem::NoFolder { path: path.clone() };
            self.wrong(CommandToolPart::WorkingDir, None, problem);
        }
        path
    }

    fn limits(&mut self, max_output_bytes: usize, limits: &ProcessLimits) {
        if max_output_bytes == 0 {
            self.wrong(CommandToolPart::MaxOutputBytes, None, CommandToolProblem::Zero);
        }
        let zero = [
            (CommandToolPart::MemoryMax, limits.memory == Some(0)),
            (CommandToolPart::ProcessesMax, limits.processes == Some(0)),
            (CommandToolPart::FileMax, limits.file_size == Some(0)),
            (CommandToolPart::CpuMax, limits.cpu_time.is_some_and(|time| time.is_zero())),
        ];
        for (part, _) in zero.into_iter().filter(|(_, is_zero)| *is_zero) {
            self.wrong(part, None, CommandToolProblem::Zero);
        }
    }

    fn exit_codes(&mut self, codes: &[i32]) {
        if codes.is_empty() {
            self.wrong(CommandToolPart::OkExitCodes, None, CommandToolProblem::NoExitCode);
        }
        for code in codes.iter().copied().filter(|code| !(0..=255).contains(code)) {
            let problem = CommandToolProblem::ExitCode { code };
            self.wrong(CommandToolPart::OkExitCodes, None, problem);
        }
    }

    fn finish(mut self, stdin: Stdin) -> Vec<CommandToolError> {
        if stdin == Stdin::None {
            for parameter in self.parameters.unused() {
                let part = CommandToolPart::Parameter(parameter.clone());
                self.wrong(part, None, CommandToolProblem::UnusedParameter { parameter });
            }
        }
        self.errors
    }
}

/// Where a text holds `secret:NAME`, outside of braces or in them.
fn bare_secret(text: &str) -> Option<usize> {
    let names = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    text.match_indices(SECRET)
        .find(|(at, word)| text.get(at + word.len()..).is_some_and(names))
        .map(|(at, _)| at)
}
