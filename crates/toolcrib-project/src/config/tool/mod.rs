//! `[[tool]]`: the keys of every tool, and the choice of its kind. The keys of a kind are read in
//! `toolcrib-tools`.

use std::sync::Arc;

use serde_json::Value as Json;
use toolcrib_config::{Diagnostic, Located, Problems, Spot, Table, Value};
use toolcrib_core::{Annotations, ArtifactPolicy, ToolBuilder, ToolName};
use toolcrib_tools::{
    Declaration, DeclaredKind, MAX_RESULT_CHARS, Source,
    clarify::{self, DeclaredClarify},
    code::{self, DeclaredCode},
    command::{self, DeclaredCommand},
    files::{self, DeclaredFiles},
    http::{self, DeclaredHttp},
    memory::{self, DeclaredMemory},
    openapi::{self, DeclaredOpenApi, DeclaredOperation},
    sql::{self, DeclaredSql},
    sql_explore::DeclaredExplore,
    task::{self, DeclaredTask},
    terminal::{self, DeclaredTerminal},
    todo::DeclaredTodo,
    web::{self, DeclaredWeb},
};

use super::params;

/// When a result becomes an artifact.
const ARTIFACT_POLICIES: [(&str, ArtifactPolicy); 3] = [
    ("when_cut", ArtifactPolicy::WhenCut),
    ("always", ArtifactPolicy::Always),
    ("never", ArtifactPolicy::Never),
];

/// A declared tool.
#[derive(Debug)]
pub(crate) struct ToolSection {
    pub(crate) at: Spot,
    pub(crate) name: Option<Located<ToolName>>,
    /// Whether it has a name and a description.
    pub(crate) is_complete: bool,
    /// Everything that all kinds have, but for the input schema.
    pub(crate) declaration: Declaration,
    pub(crate) input: Input,
    pub(crate) kind: Kind,
}

/// The kind of a tool.
#[derive(Debug)]
pub(crate) enum Kind {
    Sql(DeclaredSql),
    SqlExplore(DeclaredExplore),
    Command(DeclaredCommand),
    Files(DeclaredFiles),
    Http(DeclaredHttp),
    /// A document, before its operations are read from the file.
    OpenApi(Box<DeclaredOpenApi>),
    /// An operation of a document.
    Operation(Box<DeclaredOperation>),
    Terminal(Box<DeclaredTerminal>),
    Code(Box<DeclaredCode>),
    Todo(DeclaredTodo),
    Memory(DeclaredMemory),
    Clarify(DeclaredClarify),
    Task(Box<DeclaredTask>),
    Web(DeclaredWeb),
    /// Not known, which is recorded. Of such a tool there is only what makes other sections that
    /// name it raise no false alarms.
    Unknown,
}

/// The source of a tool's argument schema.
#[derive(Debug)]
pub(crate) enum Input {
    /// Nowhere: it takes none.
    None,
    /// In the declaration, from its kind.
    OfKind,
    /// In the project file.
    Params(Json),
    /// In a separate file.
    File(Located<Arc<str>>),
    /// Somewhere, but it is of no use; the problem is recorded.
    Broken,
}

/// The word for a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Sql,
    SqlExplore,
    Command,
    Files,
    Http,
    OpenApi,
    Terminal,
    Code,
    Todo,
    Memory,
    Clarify,
    Task,
    Web,
}

impl Word {
    const ALL: [(&'static str, Self); 13] = [
        ("sql_explore", Self::SqlExplore),
        ("sql", Self::Sql),
        ("command", Self::Command),
        ("files", Self::Files),
        ("http", Self::Http),
        ("openapi", Self::OpenApi),
        ("terminal", Self::Terminal),
        ("code", Self::Code),
        ("todo", Self::Todo),
        ("memory", Self::Memory),
        ("clarify", Self::Clarify),
        ("task", Self::Task),
        ("web", Self::Web),
    ];

    /// The keys that only this kind has.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Sql => sql::KEYS,
            // Some have none, or some of those of `sql`.
            Self::SqlExplore | Self::Todo | Self::Clarify => &[],
            Self::Command => command::KEYS,
            Self::Files => files::KEYS,
            Self::Http => http::KEYS,
            Self::OpenApi => openapi::KEYS,
            Self::Terminal => terminal::KEYS,
            Self::Code => code::KEYS,
            Self::Memory => memory::KEYS,
            Self::Task => task::KEYS,
            Self::Web => web::KEYS,
        }
    }

    /// The probable kind of a tool that declares none: the kind with most of its keys.
    fn guess(table: &Table<'_>) -> Option<(&'static str, Self)> {
        let found = |kind: Self| kind.keys().iter().filter(|key| table.has(key)).count();
        let kinds = Self::ALL.into_iter().filter(|(_, kind)| found(*kind) > 0);
        kinds.max_by_key(|(_, kind)| found(*kind))
    }

    fn read(table: &Table<'_>) -> Option<Self> {
        let guess = Self::guess(table);
        let example = match guess {
            Some((word, _)) => format!("\"{word}\""),
            None => {
                let words = Self::ALL.map(|(word, _)| format!("\"{word}\""));
                let [others @ .., last] = &words;
                format!("{} or {last}", others.join(", "))
            }
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
    /// The tools of one table: a toolset for some kinds, else one.
    pub(super) fn read(table: &Table<'_>) -> Vec<Self> {
        let word = Word::read(table);
        // A toolset with usual names needs no prefix.
        let name = match word {
            Some(
                Word::Files
                | Word::OpenApi
                | Word::Terminal
                | Word::Code
                | Word::Todo
                | Word::Memory
                | Word::Clarify
                | Word::Task
                | Word::Web,
            ) => table.value("name"),
            _ => table.required("name", "\"list_charges\""),
        };
        let has_name = name.is_some();
        let name = name.and_then(|name| tool_name(&name));
        let mut declaration =
            Declaration::new(name.as_ref().map_or("", |name| name.value.as_str()), "");
        declaration.toolset = table.text("toolset").map(|toolset| toolset.value);
        declaration.origin = Some(table.at().to_string().into());
        declaration.source = Source::of(table);
        let tool = Self {
            at: table.at().clone(),
            name,
            is_complete: false,
            declaration,
            input: Input::Broken,
            kind: Kind::Unknown,
        };
        match word {
            Some(kind) => tool.read_kind(kind, table, has_name),
            None => {
                table.ignore_the_rest();
                vec![tool]
            }
        }
    }

    /// Reads the keys of the kind and those common to all.
    fn read_kind(mut self, kind: Word, table: &Table<'_>, has_name: bool) -> Vec<Self> {
        match kind {
            Word::Sql => self.read_one(table, |table| Kind::Sql(DeclaredSql::read(table))),
            Word::Command => {
                self.read_one(table, |table| Kind::Command(DeclaredCommand::read(table)))
            }
            Word::Http => self.read_one(table, |table| Kind::Http(DeclaredHttp::read(table))),
            Word::OpenApi => vec![self.read_openapi(table)],
            Word::SqlExplore => {
                table.explain("read_only", "a tool of the kind `sql_explore` always is");
                self.read_of_toolset(table);
                let all = DeclaredExplore::read_all(table);
                let declare = |kind: &DeclaredExplore, base: &_, prefix: Option<&str>| {
                    kind.tool().declaration(base, prefix.unwrap_or_default())
                };
                self.toolset(table, true, all, declare, Kind::SqlExplore)
            }
            Word::Files => {
                self.read_of_toolset(table);
                let all = DeclaredFiles::read_all(table);
                self.toolset(table, has_name, all, DeclaredFiles::declaration, Kind::Files)
            }
            Word::Terminal => {
                self.read_of_toolset(table);
                let all = DeclaredTerminal::read_all(table);
                let kind = |kind| Kind::Terminal(Box::new(kind));
                self.toolset(table, has_name, all, DeclaredTerminal::declaration, kind)
            }
            Word::Code => {
                self.read_of_toolset(table);
                let all = DeclaredCode::read_all(table);
                let kind = |kind| Kind::Code(Box::new(kind));
                self.toolset(table, has_name, all, DeclaredCode::declaration, kind)
            }
            Word::Todo => {
                self.read_of_agent(table);
                let all = DeclaredTodo::all();
                self.toolset(table, has_name, all, DeclaredTodo::declaration, Kind::Todo)
            }
            Word::Memory => {
                self.read_of_agent(table);
                let all = DeclaredMemory::read_all(table);
                self.toolset(table, has_name, all, DeclaredMemory::declaration, Kind::Memory)
            }
            Word::Clarify => {
                self.read_of_agent(table);
                let declare =
                    |_: &_, base: &_, prefix: Option<&_>| clarify::declaration(base, prefix);
                self.toolset(table, has_name, [DeclaredClarify], declare, Kind::Clarify)
            }
            Word::Task => {
                self.read_of_agent(table);
                let all = [DeclaredTask::read(table)];
                let kind = |kind| Kind::Task(Box::new(kind));
                self.toolset(table, has_name, all, DeclaredTask::declaration, kind)
            }
            Word::Web => {
                table.explain(
                    "untrusted",
                    "the results of this kind always are: others write pages",
                );
                table.explain("read_only", "a tool of the kind `web` always is");
                self.read_of_toolset_with(table, false);
                let all = DeclaredWeb::read_all(table);
                self.toolset(table, has_name, all, DeclaredWeb::declaration, Kind::Web)
            }
        }
    }

    /// The document whose operations become tools. A name is their prefix.
    fn read_openapi(mut self, table: &Table<'_>) -> Self {
        self.read_common(table, true);
        self.kind = Kind::OpenApi(Box::new(DeclaredOpenApi::read(table)));
        self
    }

    /// The tools of a document, each with its name.
    pub(crate) fn operations(
        &self,
        operations: Vec<(ToolName, Declaration, DeclaredOperation)>,
    ) -> impl Iterator<Item = Self> {
        operations.into_iter().map(|(name, declaration, operation)| Self {
            at: self.at.clone(),
            name: Some(Located { value: name, at: self.at.clone() }),
            is_complete: true,
            declaration,
            input: Input::OfKind,
            kind: Kind::Operation(Box::new(operation)),
        })
    }

    /// The keys of a toolset for the agent itself, whose results have known authors.
    fn read_of_agent(&mut self, table: &Table<'_>) {
        table.explain("untrusted", "this kind marks the results that others may have written");
        table.explain("read_only", "this kind declares it for each of its tools");
        self.read_of_toolset_with(table, false);
    }

    /// The keys of a table that declares a toolset.
    fn read_of_toolset(&mut self, table: &Table<'_>) {
        self.read_of_toolset_with(table, true);
    }

    fn read_of_toolset_with(&mut self, table: &Table<'_>, has_trust: bool) {
        let about = table.text("description").map(|about| about.value.to_string());
        self.declaration.description = about.unwrap_or_default();
        self.read_common(table, has_trust);
    }

    /// The tools of these kinds. The name of the table, which some toolsets need not have, is their
    /// prefix; without one, they have their usual names.
    fn toolset<K>(
        &self,
        table: &Table<'_>,
        has_name: bool,
        kinds: impl IntoIterator<Item = K>,
        declare: impl Fn(&K, &Declaration, Option<&str>) -> Declaration,
        known: impl Fn(K) -> Kind,
    ) -> Vec<Self> {
        let prefix = match &self.name {
            Some(Located { value, at }) => Some((Some(value.as_str()), at)),
            None => (!has_name).then_some((None, &self.at)),
        };
        let one = |kind: K| {
            let (name, declaration) = match prefix {
                Some((prefix, at)) => {
                    let declaration = declare(&kind, &self.declaration, prefix);
                    (named(&declaration.name, at, table.problems()), declaration)
                }
                None => (None, self.declaration.clone()),
            };
            Self {
                at: self.at.clone(),
                is_complete: name.is_some(),
                name,
                declaration,
                input: Input::OfKind,
                kind: known(kind),
            }
        };
        kinds.into_iter().map(one).collect()
    }

    /// A table that declares one tool.
    fn read_one(mut self, table: &Table<'_>, kind: impl FnOnce(&Table<'_>) -> Kind) -> Vec<Self> {
        let description = table
            .required("description", "\"What it does, and when to use it.\"")
            .and_then(|description| description.text());
        self.is_complete = self.name.is_some() && description.is_some();
        let declaration = &mut self.declaration;
        declaration.description =
            description.map(|text| text.value.to_string()).unwrap_or_default();
        let read_only = table.boolean("read_only");
        let dry_run = table.boolean("dry_run");
        declaration.annotations = Annotations {
            destructive: table.boolean("destructive").unwrap_or_default(),
            idempotent: table.boolean("idempotent").unwrap_or_default(),
            ..Annotations::default()
        };
        self.read_common(table, true);
        self.input = read_input(table);
        self.kind = kind(table);
        let read_only = read_only
            .unwrap_or_else(|| self.kind.declared().is_some_and(DeclaredKind::is_read_only));
        self.declaration.annotations.read_only = read_only;
        // The handle of a read-only SQL tool cannot write.
        let is_bounded = read_only && matches!(self.kind, Kind::Sql(_));
        if dry_run == Some(true)
            && !read_only
            && let Some(value) = table.value("dry_run")
        {
            table.refuse_at(
                &value.at(),
                "`dry_run` is for a tool that changes nothing",
                "add `read_only = true`, or leave out `dry_run`: a dry run then plans its calls",
            );
        }
        self.declaration.dry_run = dry_run.unwrap_or(is_bounded);
        vec![self]
    }

    /// The optional keys of all kinds.
    fn read_common(&mut self, table: &Table<'_>, has_trust: bool) {
        let declaration = &mut self.declaration;
        if has_trust {
            declaration.untrusted = table.boolean("untrusted").unwrap_or(true);
        }
        declaration.always_include = table.boolean("always_include").unwrap_or_default();
        declaration.deferred = table.boolean("defer");
        declaration.timeout = table.duration("timeout");
        declaration.max_result_chars =
            table.integer("max_result_chars", ToolBuilder::MIN_RESULT_CHARS..=MAX_RESULT_CHARS);
        table.explain("spooling", "it is now called `artifact_policy`");
        declaration.artifact_policy = table
            .value("artifact_policy")
            .and_then(|artifact_policy| artifact_policy.word(&ARTIFACT_POLICIES))
            .map(|policy| policy.value)
            .unwrap_or_default();
        declaration.artifact_kind = table.text("artifact_kind").map(|kind| kind.value);
    }
}

impl Kind {
    /// The kind, where it is known.
    pub(crate) fn declared(&self) -> Option<&dyn DeclaredKind> {
        match self {
            Self::Sql(sql) => Some(sql),
            Self::SqlExplore(explore) => Some(explore),
            Self::Command(command) => Some(command),
            Self::Files(files) => Some(files),
            Self::Http(http) => Some(http),
            Self::Terminal(terminal) => Some(&**terminal),
            Self::Code(code) => Some(&**code),
            Self::Todo(todo) => Some(todo),
            Self::Memory(memory) => Some(memory),
            Self::Clarify(clarify) => Some(clarify),
            Self::Task(task) => Some(&**task),
            Self::Web(web) => Some(web),
            Self::Operation(operation) => Some(&**operation),
            Self::OpenApi(_) | Self::Unknown => None,
        }
    }
}

fn tool_name(value: &Value<'_>) -> Option<Located<ToolName>> {
    let text = value.text()?;
    named(&text.value, &text.at, value.problems())
}

/// An invalid name is recorded.
fn named(name: &str, at: &Spot, problems: &Problems) -> Option<Located<ToolName>> {
    match ToolName::new(name) {
        Ok(value) => Some(Located { value, at: at.clone() }),
        Err(error) => {
            problems.push(Diagnostic::error(at, error.to_string()));
            None
        }
    }
}

fn read_input(table: &Table<'_>) -> Input {
    let (params, file) = (table.value("params"), table.value("schema_file"));
    match (params, file) {
        (None, None) => Input::None,
        (Some(params), None) => params::read(&params).map_or(Input::Broken, Input::Params),
        (None, Some(file)) => file.text().map_or(Input::Broken, Input::File),
        (Some(_), Some(file)) => {
            let message = "`params` and `schema_file` both describe the arguments";
            file.refuse(message, "keep one of them");
            Input::Broken
        }
    }
}
