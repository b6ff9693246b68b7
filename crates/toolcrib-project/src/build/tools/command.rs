//! Tools of the kind `command`.

use std::path::PathBuf;

use toolcrib_config::Spot;
use toolcrib_core::Tool;
use toolcrib_scope::process::{self, FindProgramError};
use toolcrib_tools::command::{
    ArgItem, CommandToolError, CommandToolPart, CommandToolProblem, CommandToolSpec, Stdin,
};

use super::Source;
use crate::{
    build::report_unlimited_processes,
    config::{CommandSection, OF_A_SHELL, Text, words},
};

pub(super) fn build(command: &CommandSection, source: &Source<'_>) -> Option<Tool> {
    report_reach_of_plugin(command, source);
    let stays_inside = command.program.as_ref().is_none_or(|program| {
        source.root.check_program(&program.value, &program.at, source.problems)
    });
    report_stray_children(command, source);
    report_unlimited_processes(&source.section.at.file, source.problems);
    match spec(command, source).build() {
        Ok(tool) if stays_inside => Some(tool),
        Ok(_) => None,
        Err(errors) => {
            for error in errors.errors {
                let is_said = !stays_inside && error.part == CommandToolPart::Program;
                if !is_said && let Some(at) = place(&error, command, source) {
                    let (message, help) = told(&error, command, source);
                    source.refuse(&at, message, help);
                }
            }
            None
        }
    }
}

fn spec(command: &CommandSection, source: &Source<'_>) -> CommandToolSpec {
    let args = command.args.iter().map(|item| ArgItem {
        text: item.value.value.to_string(),
        when: item.when.as_ref().map(|when| when.value.to_string()),
        allow_leading_dash: item.allow_leading_dash,
    });
    let env = command.env.iter();
    let program = command.program.as_ref().map_or("", |program| &*program.value);
    let default = CommandToolSpec::new(source.declaration.clone(), program, source.root.path());
    CommandToolSpec {
        args: args.collect(),
        stdin: if command.json_on_stdin { Stdin::Json } else { Stdin::None },
        env: env.map(|one| (one.name.value.to_string(), one.value.value.to_string())).collect(),
        inherit_env: command.inherit_env.iter().map(|name| name.value.to_string()).collect(),
        working_dir: Some(working_dir(command, source)),
        max_output_bytes: command.max_output_bytes.unwrap_or(default.max_output_bytes),
        limits: command.limits.or(default.limits),
        allow_stray_children: command.allow_stray_children,
        ok_exit_codes: command.ok_exit_codes.clone().unwrap_or(default.ok_exit_codes),
        ..default
    }
}

/// The folder that the program runs in; the project's own where the one that is named cannot be
/// used, which is recorded.
fn working_dir(command: &CommandSection, source: &Source<'_>) -> PathBuf {
    let named = command.working_dir.as_ref().and_then(|named| {
        let folder = source.root.folder(&named.value);
        folder
            .map_err(|error| {
                let help = source.root.near(&error, &named.value);
                source.refuse(&named.at, format!("`{}` {error}", named.value), help);
            })
            .ok()
    });
    named.unwrap_or_else(|| source.root.path().to_owned())
}

/// What a plugin's program would reach, that must be granted.
fn report_reach_of_plugin(command: &CommandSection, source: &Source<'_>) {
    let Some(grant) = &source.names.grant else { return };
    let at = command.program.as_ref().map_or(&source.section.at, |program| &program.at);
    grant.check_program(at, source.problems);
    for variable in &command.inherit_env {
        grant.refuse_variable(&variable.at, source.problems);
    }
}

/// Where what a program starts could outlive it, that must be wanted.
fn report_stray_children(command: &CommandSection, source: &Source<'_>) {
    if command.allow_stray_children {
        return;
    }
    if let Err(unsupported) = process::support() {
        let at = command.program.as_ref().map_or(&source.section.at, |program| &program.at);
        source.refuse(
            at,
            format!("what this program starts could outlive it here: {unsupported}"),
            "or write allow_stray_children = true; then what leaves the program's process group \
             lives on after a call",
        );
    }
}

/// What is wrong, with the part named where its place says too little of it, and what to write
/// instead where more can be said of it here.
fn told(
    error: &CommandToolError,
    command: &CommandSection,
    source: &Source<'_>,
) -> (String, Option<String>) {
    let message = match &error.part {
        CommandToolPart::Declaration
        | CommandToolPart::Program
        | CommandToolPart::Arg { .. }
        | CommandToolPart::ArgWhen { .. } => error.problem.to_string(),
        _ => error.to_string(),
    };
    match &error.problem {
        CommandToolProblem::Program(missing) => (message, program_help(command, missing)),
        CommandToolProblem::PlaceInEnv { parameter } if source.is_secret(parameter) => {
            let message = format!("{}: `{parameter}` is a secret", error.part);
            (message, Some(format!("write `{{secret:{parameter}}}`")))
        }
        CommandToolProblem::UnknownParameter { parameter, .. } if source.is_secret(parameter) => {
            let help = format!(
                "no secret may stand here; give it in the environment: env = {{ {parameter} = \
                 \"secret:{parameter}\" }}"
            );
            (format!("`{parameter}` is a secret"), Some(help))
        }
        _ => (message, None),
    }
}

/// What to do where a program is not found, beside installing it.
fn program_help(command: &CommandSection, missing: &FindProgramError) -> Option<String> {
    if let FindProgramError::NoProgram { file } = missing
        && file.is_file()
    {
        return Some(format!("make it executable: chmod +x {}", file.display()));
    }
    let (first, rest) = command.program.as_ref()?.value.trim().split_once(char::is_whitespace)?;
    if first.contains(OF_A_SHELL) || rest.contains(OF_A_SHELL) {
        return Some(
            "there is no shell; write a script into the project and name it: program = \"./NAME\""
                .to_owned(),
        );
    }
    let more = if command.args.is_empty() { "" } else { ", …" };
    Some(format!("write program = \"{first}\" and args = [{}{more}]", words(rest)))
}

/// Where it is wrong: at the very character if that can be told. `None` for what was recorded when
/// the section was read, and for what only follows from that.
fn place(error: &CommandToolError, command: &CommandSection, source: &Source<'_>) -> Option<Spot> {
    let section = source.section;
    match error.problem {
        CommandToolProblem::Definition(_) => return source.place_of_definition(),
        CommandToolProblem::UnusedParameter { .. } if command.is_broken => return None,
        CommandToolProblem::UnknownParameter { .. }
        | CommandToolProblem::UnusedParameter { .. }
            if !source.schema_is_sound =>
        {
            return None;
        }
        _ => {}
    }
    let in_text = |text: &Text| text.place(error.offset);
    let item = |position: usize| command.args.get(position);
    let known = match &error.part {
        CommandToolPart::Parameter(name) => Some(section.input.place_of(name, &section.at)),
        // Without one there is nothing more to say of it.
        CommandToolPart::Program => return command.program.as_ref().map(|name| name.at.clone()),
        CommandToolPart::Arg { position } => item(*position).map(|item| in_text(&item.value)),
        CommandToolPart::ArgWhen { position } => {
            item(*position).and_then(|item| item.when.as_ref()).map(in_text)
        }
        CommandToolPart::Env { position, .. } => {
            command.env.get(*position).map(|variable| match error.problem {
                CommandToolProblem::VariableName | CommandToolProblem::VariableTwice => {
                    variable.name.at.clone()
                }
                _ => in_text(&variable.value),
            })
        }
        CommandToolPart::InheritEnv { position, .. } => {
            command.inherit_env.get(*position).map(|name| name.at.clone())
        }
        _ => None,
    };
    Some(known.unwrap_or_else(|| section.at.clone()))
}
