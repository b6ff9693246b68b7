//! `[[tool]]` of the kind `command`.

use std::{ops::RangeInclusive, sync::Arc};

use serde_json::Value as Json;
use toolcrib_config::{Located, Table, Value};

use crate::config::{process_limits::ProcessLimitsSection, text::Text};

/// The keys that only this kind has.
pub(super) const KEYS: &[&str] = &[
    "program",
    "args",
    "stdin",
    "env",
    "inherit_env",
    "working_dir",
    "max_output_bytes",
    "memory_max",
    "processes_max",
    "file_max",
    "cpu_max",
    "allow_stray_children",
    "ok_exit_codes",
];

/// How much of each output may be kept: it is held in memory.
const OUTPUT_BYTES: RangeInclusive<u64> = 1..=256 << 20;

/// What means something to a shell, so that words are not simply what stands between blanks.
pub(crate) const OF_A_SHELL: &[char] =
    &['|', '&', ';', '<', '>', '$', '`', '"', '\'', '\\', '*', '(', ')'];

/// What a command tool runs.
#[derive(Debug)]
pub(crate) struct CommandSection {
    pub(crate) program: Option<Located<Arc<str>>>,
    pub(crate) args: Vec<ArgSection>,
    /// Whether the arguments are written to the program as JSON.
    pub(crate) json_on_stdin: bool,
    pub(crate) env: Vec<EnvSection>,
    pub(crate) inherit_env: Vec<Located<Arc<str>>>,
    pub(crate) working_dir: Option<Located<Arc<str>>>,
    pub(crate) max_output_bytes: Option<usize>,
    pub(crate) limits: ProcessLimitsSection,
    pub(crate) allow_stray_children: bool,
    pub(crate) ok_exit_codes: Option<Vec<i32>>,
    /// Whether a part of it could not be read, so that what uses which parameter is not known.
    pub(crate) is_broken: bool,
}

/// One item of the argument vector.
#[derive(Debug)]
pub(crate) struct ArgSection {
    pub(crate) value: Text,
    pub(crate) when: Option<Text>,
    pub(crate) allow_leading_dash: bool,
}

/// One variable of the environment.
#[derive(Debug)]
pub(crate) struct EnvSection {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) value: Text,
}

impl CommandSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let program = table.required("program", "\"wc\"").and_then(|program| program.text());
        let args = table.value("args").map(|args| read_args(&args));
        let (args, has_all_args) = args.unwrap_or((Vec::new(), true));
        let stdin =
            table.value("stdin").map(|stdin| stdin.word(&[("none", false), ("json", true)]));
        Self {
            program,
            is_broken: !has_all_args || matches!(stdin, Some(None)),
            args,
            json_on_stdin: stdin.flatten().is_some_and(|stdin| stdin.value),
            env: table.value("env").map(|env| read_env(&env)).unwrap_or_default(),
            inherit_env: table
                .value("inherit_env")
                .and_then(|names| names.items())
                .map(|names| names.iter().filter_map(Value::text).collect())
                .unwrap_or_default(),
            working_dir: table.text("working_dir"),
            max_output_bytes: table
                .size("max_output_bytes", OUTPUT_BYTES)
                .and_then(|bytes| usize::try_from(bytes).ok()),
            limits: ProcessLimitsSection::read(table),
            allow_stray_children: table.boolean("allow_stray_children").unwrap_or_default(),
            ok_exit_codes: table.value("ok_exit_codes").and_then(|codes| read_codes(&codes)),
        }
    }
}

/// The items that are of use, and whether all are.
fn read_args(value: &Value<'_>) -> (Vec<ArgSection>, bool) {
    let items = match value.is_text().then(|| value.any_text()).flatten() {
        // Who writes one text thinks of a command line.
        Some(line) if !line.value.contains(OF_A_SHELL) => {
            value.items_or(format!("write args = [{}]", words(&line.value)))
        }
        Some(_) => value.items_or("write args = [\"…\", \"…\"], one text for each argument"),
        None => value.items(),
    };
    let Some(items) = items else {
        return (Vec::new(), false);
    };
    let read: Vec<_> = items.iter().filter_map(read_arg).collect();
    let all = read.len() == items.len();
    (read, all)
}

/// The words of a text, as a list in TOML has them.
pub(crate) fn words(text: &str) -> String {
    // A JSON string is one of TOML.
    let words = text.split_whitespace().map(|word| Json::from(word).to_string());
    words.collect::<Vec<_>>().join(", ")
}

fn read_arg(item: &Value<'_>) -> Option<ArgSection> {
    if !item.is_table() {
        return Some(ArgSection {
            value: Text::read_any(item)?,
            when: None,
            allow_leading_dash: false,
        });
    }
    item.table("this item of `args`", |table| {
        let value = table.required("value", "\"--name={name}\"");
        let when = table.value("when").map(|when| Text::read(&when));
        let allow_leading_dash = table.boolean("allow_leading_dash").unwrap_or_default();
        Some(ArgSection {
            value: Text::read_any(&value?)?,
            when: match when {
                Some(when) => Some(when?),
                None => None,
            },
            allow_leading_dash,
        })
    })
    .flatten()
}

fn read_env(value: &Value<'_>) -> Vec<EnvSection> {
    let Some(variables) = value.entries("`env`") else {
        return Vec::new();
    };
    variables
        .rest()
        .filter_map(|(name, value)| Some(EnvSection { name, value: Text::read_any(&value)? }))
        .collect()
}

fn read_codes(value: &Value<'_>) -> Option<Vec<i32>> {
    let codes = value.items()?;
    if codes.is_empty() {
        let help = "write the exit codes that are no failure, such as [0, 1]; without the key it \
                    is 0 alone";
        value.refuse("`ok_exit_codes` is an empty list: every call would fail", help);
        return None;
    }
    let codes: Vec<_> = codes.iter().map(|code| Some(code.integer(0..=255)?.value)).collect();
    codes.into_iter().collect()
}
