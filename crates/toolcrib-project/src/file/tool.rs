//! `[[tool]]`: the keys of every tool, and the choice of its kind. The keys of a kind are read in
//! `toolcrib-tools`.

use std::sync::Arc;

use serde_json::Value as Json;
use toolcrib_config::{Diagnostic, Located, Problems, Spot, Table, Value};
use toolcrib_core::{Annotations, ArtifactPolicy, ToolBuilder, ToolName};
use toolcrib_tools::{
    Declaration, DeclaredKind, ExpandedTool, KINDS, KindForm, KindReader, MAX_RESULT_CHARS, Source,
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
    /// `None` if it is not known, which is recorded. Of such a tool there is only what makes other
    /// sections that name it raise no false alarms.
    pub(crate) kind: Option<Box<dyn DeclaredKind>>,
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

/// The reader of a table's kind; `None` where it is not known, which is recorded.
fn kind_of(table: &Table<'_>) -> Option<&'static KindReader> {
    // The probable kind of a tool that declares none: the kind with most of its keys.
    let found = |kind: &&KindReader| kind.keys.iter().filter(|key| table.has(key)).count();
    let guess = KINDS.iter().filter(|kind| found(kind) > 0).max_by_key(found);
    let example = guess.map_or_else(all_kinds, |kind| format!("\"{}\"", kind.word));
    let kind = match table.required("kind", &example) {
        Some(kind) => {
            let words: Vec<_> = KINDS.iter().map(|kind| (kind.word, kind)).collect();
            kind.word(&words)?.value
        }
        None => guess?,
    };
    for other in KINDS.iter().filter(|other| other.word != kind.word) {
        for key in other.keys {
            table.explain(key, format!("only a tool of the kind `{}` has it", other.word));
        }
    }
    Some(kind)
}

/// The words of all kinds, as a choice.
fn all_kinds() -> String {
    let words: Vec<_> = KINDS.iter().map(|kind| format!("\"{}\"", kind.word)).collect();
    match words.as_slice() {
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
        [] => String::new(),
    }
}

impl ToolSection {
    /// The tools of one table: a toolset for some kinds, else one.
    pub(crate) fn read(table: &Table<'_>) -> Vec<Self> {
        let kind = kind_of(table);
        let name = match kind.is_none_or(|kind| kind.form.needs_name()) {
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
        let mut tool = Self {
            at: table.at().clone(),
            name,
            is_complete: false,
            declaration,
            input: Input::Broken,
            kind: None,
        };
        let Some(kind) = kind else {
            table.ignore_the_rest();
            return vec![tool];
        };
        match kind.form {
            KindForm::Tool => tool.read_one(table, kind),
            KindForm::Toolset { has_untrusted, .. } => {
                let about = table.text("description").map(|about| about.value.to_string());
                tool.declaration.description = about.unwrap_or_default();
                tool.read_common(table, has_untrusted);
                tool.toolset(table, has_name, (kind.read)(table))
            }
            KindForm::Document => {
                tool.read_common(table, true);
                tool.kind = (kind.read)(table).pop();
                vec![tool]
            }
        }
    }

    /// The tools of its document, each with its name.
    pub(crate) fn expanded(&self, tools: Vec<ExpandedTool>) -> impl Iterator<Item = Self> {
        tools.into_iter().map(|(name, declaration, kind)| Self {
            at: self.at.clone(),
            name: Some(Located { value: name, at: self.at.clone() }),
            is_complete: true,
            declaration,
            input: Input::OfKind,
            kind: Some(kind),
        })
    }

    /// The tools of a toolset. The name of the table, which some toolsets need not have, is their
    /// prefix; without one, they have their usual names.
    fn toolset(
        &self,
        table: &Table<'_>,
        has_name: bool,
        kinds: Vec<Box<dyn DeclaredKind>>,
    ) -> Vec<Self> {
        let prefix = match &self.name {
            Some(Located { value, at }) => Some((Some(value.as_str()), at)),
            None => (!has_name).then_some((None, &self.at)),
        };
        let one = |kind: Box<dyn DeclaredKind>| {
            let (name, declaration) = match prefix {
                Some((prefix, at)) => {
                    let declaration = kind.declaration(&self.declaration, prefix);
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
                kind: Some(kind),
            }
        };
        kinds.into_iter().map(one).collect()
    }

    /// A table that declares one tool.
    fn read_one(mut self, table: &Table<'_>, kind: &KindReader) -> Vec<Self> {
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
        self.kind = (kind.read)(table).pop();
        let kind = self.kind.as_deref();
        let read_only = read_only.unwrap_or_else(|| kind.is_some_and(DeclaredKind::is_read_only));
        self.declaration.annotations.read_only = read_only;
        let is_bounded = read_only && kind.is_some_and(DeclaredKind::is_bounded);
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
    fn read_common(&mut self, table: &Table<'_>, has_untrusted: bool) {
        let declaration = &mut self.declaration;
        if has_untrusted {
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
