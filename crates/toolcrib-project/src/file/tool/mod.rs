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

/// How tables of a kind are read.
#[derive(Clone, Copy)]
struct KindReader {
    word: &'static str,
    /// The keys that only this kind has. Some have none, or some of those of `sql`.
    keys: Keys,
    /// Whether a name is required. A toolset with usual names needs no prefix.
    needs_name: bool,
    /// Reads the keys of the kind and those common to all; with whether the table has a name.
    read: ReadKind,
}

type Keys = &'static [&'static str];
type ReadKind = fn(ToolSection, &Table<'_>, bool) -> Vec<ToolSection>;

const fn must_be_named(word: &'static str, keys: Keys, read: ReadKind) -> KindReader {
    KindReader { word, keys, needs_name: true, read }
}

const fn may_be_named(word: &'static str, keys: Keys, read: ReadKind) -> KindReader {
    KindReader { word, keys, needs_name: false, read }
}

const KINDS: [KindReader; 13] = [
    must_be_named("sql_explore", &[], |mut tool, table, _| {
        table.explain("read_only", "a tool of the kind `sql_explore` always is");
        tool.read_of_toolset(table);
        let all = DeclaredExplore::read_all(table);
        let declare = |kind: &DeclaredExplore, base: &_, prefix: Option<&str>| {
            kind.tool().declaration(base, prefix.unwrap_or_default())
        };
        tool.toolset(table, true, all, declare, Kind::SqlExplore)
    }),
    must_be_named("sql", sql::KEYS, |tool, table, _| {
        tool.read_one(table, |table| Kind::Sql(DeclaredSql::read(table)))
    }),
    must_be_named("command", command::KEYS, |tool, table, _| {
        tool.read_one(table, |table| Kind::Command(DeclaredCommand::read(table)))
    }),
    may_be_named("files", files::KEYS, |mut tool, table, has_name| {
        tool.read_of_toolset(table);
        let all = DeclaredFiles::read_all(table);
        tool.toolset(table, has_name, all, DeclaredFiles::declaration, Kind::Files)
    }),
    must_be_named("http", http::KEYS, |tool, table, _| {
        tool.read_one(table, |table| Kind::Http(DeclaredHttp::read(table)))
    }),
    // A document whose operations become tools. A name is their prefix.
    may_be_named("openapi", openapi::KEYS, |mut tool, table, _| {
        tool.read_common(table, true);
        tool.kind = Kind::OpenApi(Box::new(DeclaredOpenApi::read(table)));
        vec![tool]
    }),
    may_be_named("terminal", terminal::KEYS, |mut tool, table, has_name| {
        tool.read_of_toolset(table);
        let all = DeclaredTerminal::read_all(table);
        let kind = |kind| Kind::Terminal(Box::new(kind));
        tool.toolset(table, has_name, all, DeclaredTerminal::declaration, kind)
    }),
    may_be_named("code", code::KEYS, |mut tool, table, has_name| {
        tool.read_of_toolset(table);
        let all = DeclaredCode::read_all(table);
        let kind = |kind| Kind::Code(Box::new(kind));
        tool.toolset(table, has_name, all, DeclaredCode::declaration, kind)
    }),
    may_be_named("todo", &[], |mut tool, table, has_name| {
        tool.read_of_agent(table);
        tool.toolset(table, has_name, DeclaredTodo::all(), DeclaredTodo::declaration, Kind::Todo)
    }),
    may_be_named("memory", memory::KEYS, |mut tool, table, has_name| {
        tool.read_of_agent(table);
        let all = DeclaredMemory::read_all(table);
        tool.toolset(table, has_name, all, DeclaredMemory::declaration, Kind::Memory)
    }),
    may_be_named("clarify", &[], |mut tool, table, has_name| {
        tool.read_of_agent(table);
        let declare = |_: &_, base: &_, prefix: Option<&_>| clarify::declaration(base, prefix);
        tool.toolset(table, has_name, [DeclaredClarify], declare, Kind::Clarify)
    }),
    may_be_named("task", task::KEYS, |mut tool, table, has_name| {
        tool.read_of_agent(table);
        let all = [DeclaredTask::read(table)];
        let kind = |kind| Kind::Task(Box::new(kind));
        tool.toolset(table, has_name, all, DeclaredTask::declaration, kind)
    }),
    may_be_named("web", web::KEYS, |mut tool, table, has_name| {
        table.explain("untrusted", "the results of this kind always are: others write pages");
        table.explain("read_only", "a tool of the kind `web` always is");
        tool.read_of_toolset_with(table, false);
        let all = DeclaredWeb::read_all(table);
        tool.toolset(table, has_name, all, DeclaredWeb::declaration, Kind::Web)
    }),
];

impl KindReader {
    /// The reader of a table's kind; `None` where it is not known, which is recorded.
    fn of(table: &Table<'_>) -> Option<Self> {
        // The probable kind of a tool that declares none: the kind with most of its keys.
        let found = |kind: &Self| kind.keys.iter().filter(|key| table.has(key)).count();
        let guess = KINDS.into_iter().filter(|kind| found(kind) > 0).max_by_key(found);
        let example = match guess {
            Some(kind) => format!("\"{}\"", kind.word),
            None => {
                let words = KINDS.map(|kind| format!("\"{}\"", kind.word));
                let [others @ .., last] = &words;
                format!("{} or {last}", others.join(", "))
            }
        };
        let kind = match table.required("kind", &example) {
            Some(kind) => kind.word(&KINDS.map(|kind| (kind.word, kind)))?.value,
            None => guess?,
        };
        for other in KINDS.iter().filter(|other| other.word != kind.word) {
            for key in other.keys {
                table.explain(key, format!("only a tool of the kind `{}` has it", other.word));
            }
        }
        Some(kind)
    }
}

impl ToolSection {
    /// The tools of one table: a toolset for some kinds, else one.
    pub(crate) fn read(table: &Table<'_>) -> Vec<Self> {
        let kind = KindReader::of(table);
        let name = match kind.is_none_or(|kind| kind.needs_name) {
            true => table.required("name", "\"list_charges\""),
            false => table.value("name"),
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
        match kind {
            Some(kind) => (kind.read)(tool, table, has_name),
            None => {
                table.ignore_the_rest();
                vec![tool]
            }
        }
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
