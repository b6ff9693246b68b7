//! `[[tool]]`: what every tool has, and one file for each kind.

mod command;
mod http;
mod sql;

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Located, Spot, Table, Value};
use toolcrib_core::{Annotations, Spooling, ToolBuilder, ToolName};

pub(super) use self::http::read_headers;
pub(crate) use self::{
    command::{CommandSection, OF_A_SHELL, words},
    http::{HeaderSection, HttpSection},
    sql::SqlSection,
};
use super::params::Params;

/// The highest limit on characters of results.
pub(super) const MAX_CHARS: usize = 10_000_000;

/// When a result becomes an artifact.
const SPOOLING: [(&str, Spooling); 3] =
    [("when_cut", Spooling::WhenCut), ("always", Spooling::Always), ("never", Spooling::Never)];

/// A declared tool.
#[derive(Debug)]
pub(crate) struct ToolSection {
    pub(crate) at: Spot,
    pub(crate) name: Option<Located<ToolName>>,
    pub(crate) description: Option<Arc<str>>,
    pub(crate) toolset: Option<Arc<str>>,
    pub(crate) annotations: Annotations,
    pub(crate) untrusted: Option<bool>,
    pub(crate) always_include: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_chars: Option<usize>,
    pub(crate) spooling: Option<Located<Spooling>>,
    pub(crate) artifact_kind: Option<Located<Arc<str>>>,
    pub(crate) input: Input,
    pub(crate) kind: Kind,
}

/// What a tool runs.
#[derive(Debug)]
pub(crate) enum Kind {
    Sql(SqlSection),
    Command(CommandSection),
    Http(HttpSection),
    /// Not known, which is recorded. Of such a tool there is only what makes other sections that
    /// name it raise no false alarms.
    Unknown,
}

/// Where the schema of a tool's arguments stands.
#[derive(Debug)]
pub(crate) enum Input {
    /// Nowhere: it takes none.
    None,
    /// In the project file.
    Params(Params),
    /// In a file of its own.
    File(Located<Arc<str>>),
    /// Somewhere, but it is of no use; the problem is recorded.
    Broken,
}

impl Input {
    /// Where a parameter is declared.
    pub(crate) fn place_of(&self, parameter: &str, tool: &Spot) -> Spot {
        match self {
            Self::Params(params) => params.place_of(parameter).clone(),
            Self::File(file) => file.at.clone(),
            Self::None | Self::Broken => tool.clone(),
        }
    }
}

/// The word for a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Sql,
    Command,
    Http,
}

impl Word {
    const ALL: [(&'static str, Self); 3] =
        [("sql", Self::Sql), ("command", Self::Command), ("http", Self::Http)];

    /// The keys that only this kind has.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Sql => sql::KEYS,
            Self::Command => command::KEYS,
            Self::Http => http::KEYS,
        }
    }

    /// What a tool is probably meant to be that does not say it: the kind that has most of its keys.
    fn guess(table: &Table<'_>) -> Option<(&'static str, Self)> {
        let found = |kind: Self| kind.keys().iter().filter(|key| table.has(key)).count();
        let kinds = Self::ALL.into_iter().filter(|(_, kind)| found(*kind) > 0);
        kinds.max_by_key(|(_, kind)| found(*kind))
    }

    fn read(table: &Table<'_>) -> Option<Self> {
        let guess = Self::guess(table);
        let example = match guess {
            Some((word, _)) => format!("\"{word}\""),
            None => "\"sql\", \"command\" or \"http\"".to_owned(),
        };
        let kind = match table.required("kind", &example) {
            Some(kind) => kind.word(&Self::ALL)?.value,
            None => guess?.1,
        };
        for (word, other) in Self::ALL.into_iter().filter(|(_, other)| *other != kind) {
            for key in other.keys() {
                table.explain(key, format!("only a tool of the kind `{word}` has it"));
            }
        }
        Some(kind)
    }
}

impl ToolSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let word = Word::read(table);
        let mut tool = Self {
            at: table.at().clone(),
            name: table.required("name", "\"list_charges\"").and_then(|name| tool_name(&name)),
            description: None,
            toolset: table.text("toolset").map(|toolset| toolset.value),
            annotations: Annotations::default(),
            untrusted: None,
            always_include: None,
            timeout: None,
            max_result_chars: None,
            spooling: None,
            artifact_kind: None,
            input: Input::Broken,
            kind: Kind::Unknown,
        };
        match word {
            Some(word) => tool.read_rest(word, table),
            None => table.ignore_the_rest(),
        }
        tool
    }

    fn read_rest(&mut self, word: Word, table: &Table<'_>) {
        self.description = table
            .required("description", "\"What it does, and when to use it.\"")
            .and_then(|description| description.text())
            .map(|description| description.value);
        let read_only = table.boolean("read_only");
        self.annotations = Annotations {
            destructive: table.boolean("destructive").unwrap_or_default(),
            idempotent: table.boolean("idempotent").unwrap_or_default(),
            ..Annotations::default()
        };
        self.untrusted = table.boolean("untrusted");
        self.always_include = table.boolean("always_include");
        self.timeout = table.duration("timeout");
        self.max_result_chars =
            table.integer("max_result_chars", ToolBuilder::MIN_RESULT_CHARS..=MAX_CHARS);
        self.spooling = table.value("spooling").and_then(|spooling| spooling.word(&SPOOLING));
        self.artifact_kind = table.text("artifact_kind");
        self.input = read_input(table);
        self.kind = match word {
            Word::Sql => Kind::Sql(SqlSection::read(table)),
            Word::Command => Kind::Command(CommandSection::read(table)),
            Word::Http => Kind::Http(HttpSection::read(table)),
        };
        self.annotations.read_only = read_only.unwrap_or_else(|| self.kind.only_reads());
    }
}

impl Kind {
    /// Whether a tool that does not say so changes nothing.
    fn only_reads(&self) -> bool {
        matches!(self, Self::Http(http) if http.only_reads())
    }
}

fn tool_name(value: &Value<'_>) -> Option<Located<ToolName>> {
    let text = value.text()?;
    match ToolName::new(text.value) {
        Ok(value) => Some(Located { value, at: text.at }),
        Err(error) => {
            value.refuse(error.to_string(), None);
            None
        }
    }
}

fn read_input(table: &Table<'_>) -> Input {
    let (params, file) = (table.value("params"), table.value("schema_file"));
    match (params, file) {
        (None, None) => Input::None,
        (Some(params), None) => Params::read(&params).map_or(Input::Broken, Input::Params),
        (None, Some(file)) => file.text().map_or(Input::Broken, Input::File),
        (Some(_), Some(file)) => {
            let message = "`params` and `schema_file` both describe the arguments";
            file.refuse(message, "keep one of them");
            Input::Broken
        }
    }
}
