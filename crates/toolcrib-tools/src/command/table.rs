//! `[[tool]]` of the kind `command`.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use toolcrib_capabilities::process::SandboxTier;
use toolcrib_config::{Table, Value};

use super::{ArgItem, CommandToolSpec, ProcessLimitsSection, SandboxSection, Stdin};
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    ProgramAccess, ProgramPlace, findings::Field, kind::boxed,
};

pub(crate) const KIND: KindReader = KindReader {
    word: "command",
    keys: &[
        "program",
        "args",
        "stdin",
        "env",
        "inherit_env",
        "working_dir",
        "max_output_bytes",
        "memory_max",
        "total_memory_max",
        "processes_max",
        "file_max",
        "cpu_max",
        "allow_stray_children",
        "sandbox",
        "sandbox_read",
        "sandbox_write",
        "sandbox_hosts",
        "sandbox_addresses",
        "ok_exit_codes",
    ],
    form: KindForm::Tool,
    read: |table| boxed([DeclaredCommand::read(table)]),
};

/// The limits on a kept output, which is in memory.
const OUTPUT_BYTES: RangeInclusive<u64> = 1..=256 << 20;

/// Characters with a meaning for a shell: a text that contains one is not simply a list of words.
pub(super) const OF_A_SHELL: &[char] =
    &['|', '&', ';', '<', '>', '$', '`', '"', '\'', '\\', '*', '(', ')'];

/// A command tool as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredCommand {
    /// All but the declaration and the folders.
    spec: CommandToolSpec,
    sandbox: SandboxSection,
    /// `allow_stray_children`, if it is written.
    allow_stray_children: Option<bool>,
    /// Whether a part could not be read, which makes the use of parameters unknown.
    is_partial: bool,
}

impl DeclaredCommand {
    fn read(table: &Table<'_>) -> Self {
        let mut read = Self::read_hook(table);
        let stdin = table
            .value("stdin")
            .map(|stdin| stdin.word(&[("none", Stdin::None), ("json", Stdin::Json)]));
        read.is_partial |= matches!(stdin, Some(None));
        read.spec.stdin = stdin.flatten().map(|stdin| stdin.value).unwrap_or_default();
        if let Some(codes) = table.value("ok_exit_codes").and_then(|codes| read_codes(&codes)) {
            read.spec.ok_exit_codes = codes;
        }
        read
    }

    /// Reads the keys of a program that decides on calls; problems are recorded.
    pub fn read_hook(table: &Table<'_>) -> Self {
        let program = table.required("program", "\"wc\"").and_then(|program| program.text());
        let program = program.map(|program| program.value.to_string()).unwrap_or_default();
        let args = table.value("args").map(|args| read_args(&args));
        let has_all_args = !matches!(args, Some(None));
        let args = args.flatten().unwrap_or_default();
        let mut read = Self::read_shared(table, program);
        read.is_partial |= !has_all_args || args.iter().any(Option::is_none);
        read.spec.args = args.into_iter().map(Option::unwrap_or_default).collect();
        read
    }

    /// Reads the keys of every kind that runs a program.
    pub(crate) fn read_shared(table: &Table<'_>, program: String) -> Self {
        let blank = CommandToolSpec::new(Declaration::new("", ""), program, "");
        let allow_stray_children = table.boolean("allow_stray_children");
        Self {
            is_partial: false,
            spec: CommandToolSpec {
                env: table.value("env").map(|env| read_env(&env)).unwrap_or_default(),
                inherit_env: table
                    .value("inherit_env")
                    .and_then(|names| names.items())
                    .map(|names| names.iter().map(text).collect())
                    .unwrap_or_default(),
                working_dir: table.text("working_dir").map(|dir| PathBuf::from(&*dir.value)),
                max_output_bytes: table
                    .size("max_output_bytes", OUTPUT_BYTES)
                    .and_then(|bytes| usize::try_from(bytes).ok())
                    .unwrap_or(blank.max_output_bytes),
                limits: ProcessLimitsSection::read(table).or(blank.limits),
                ..blank
            },
            allow_stray_children,
            sandbox: SandboxSection::read(table),
        }
    }

    /// The spec as read, to complete it.
    pub(crate) fn spec_mut(&mut self) -> &mut CommandToolSpec {
        &mut self.spec
    }

    /// The program and its declared surroundings.
    pub fn access(&self) -> ProgramAccess<'_> {
        ProgramAccess {
            program: &self.spec.program,
            args: self.spec.args.iter().map(|arg| &*arg.text).collect(),
            working_dir: self.spec.working_dir.as_deref().and_then(Path::to_str),
            env: &self.spec.env,
            inherit_env: &self.spec.inherit_env,
            sandbox: &self.sandbox,
            allow_stray_children: self.allow_stray_children,
        }
    }

    /// The whole spec.
    pub(crate) fn complete(
        &self,
        mut declaration: Declaration,
        place: ProgramPlace,
    ) -> CommandToolSpec {
        declaration.source.mark_partial_if(self.is_partial);
        let ProgramPlace { base_dir, working_dir, sandbox, allow_stray_children } = place;
        CommandToolSpec {
            declaration,
            base_dir,
            working_dir: Some(working_dir),
            sandbox,
            allow_stray_children,
            ..self.spec.clone()
        }
    }
}

impl DeclaredKind for DeclaredCommand {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        vec![ExternalAccess::Program(self.access())]
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        let variables = self.spec.env.iter();
        variables.map(|(name, value)| (env_field(name).pointer(), &**value)).collect()
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        let place = ports.program(&self.access(), SandboxTier::None);
        Some(self.complete(declaration, place).build())
    }
}

/// The text; an empty one where it cannot be read.
fn text(value: &Value<'_>) -> String {
    value.text().map(|text| text.value.to_string()).unwrap_or_default()
}

/// The items; `None` for each that cannot be read.
fn read_args(value: &Value<'_>) -> Option<Vec<Option<ArgItem>>> {
    let items = match value.is_text().then(|| value.any_text()).flatten() {
        // One text is probably meant as a command line.
        Some(line) if !line.value.contains(OF_A_SHELL) => {
            value.items_or(format!("write args = [{}]", words(&line.value)))
        }
        Some(_) => value.items_or("write args = [\"…\", \"…\"], one text for each argument"),
        None => value.items(),
    };
    Some(items?.iter().map(read_arg).collect())
}

/// The words of a text, written as a list in TOML.
pub(super) fn words(text: &str) -> String {
    // A JSON string is one of TOML.
    let words = text.split_whitespace().map(|word| serde_json::Value::from(word).to_string());
    words.collect::<Vec<_>>().join(", ")
}

fn read_arg(item: &Value<'_>) -> Option<ArgItem> {
    if !item.is_table() {
        return Some(ArgItem { text: item.any_text()?.value.to_string(), ..ArgItem::default() });
    }
    item.table("this item of `args`", |table| {
        let value = table.required("value", "\"--name={name}\"");
        let when = table.value("when").map(|when| when.text());
        let allow_leading_dash = table.boolean("allow_leading_dash").unwrap_or_default();
        let text = value?.any_text()?.value.to_string();
        let when = match when {
            Some(when) => Some(when?.value.to_string()),
            None => None,
        };
        Some(ArgItem { text, when, allow_leading_dash })
    })
    .flatten()
}

fn read_env(value: &Value<'_>) -> Vec<(String, String)> {
    let variables = value.entries("`env`");
    let read = |(name, value): (toolcrib_config::Located<std::sync::Arc<str>>, Value<'_>)| {
        Some((name.value.to_string(), value.any_text()?.value.to_string()))
    };
    variables.iter().flat_map(Table::rest).filter_map(read).collect()
}

fn read_codes(value: &Value<'_>) -> Option<Vec<i32>> {
    let codes = value.items()?;
    if codes.is_empty() {
        let help = "write the exit codes that are not failures, such as [0, 1]; without the key it \
                    is 0 alone";
        value.refuse("`ok_exit_codes` is an empty list: every call would fail", help);
        return None;
    }
    let codes: Vec<_> = codes.iter().map(|code| Some(code.integer(0..=255)?.value)).collect();
    codes.into_iter().collect()
}

/// A variable of the environment.
pub(super) fn env_field(name: &str) -> Field {
    let label = format!("the environment variable `{}`", name.escape_debug());
    Field::entry(label, "env", name)
}
