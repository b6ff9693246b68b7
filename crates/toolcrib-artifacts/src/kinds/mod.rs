//! What can be asked of an artifact, by its kind.

mod arguments;
mod condition;
mod csv;
mod json;
mod markdown;
mod text;

use std::{any::Any, fmt, sync::Arc};

use serde_json::Value;
use toolcrib_core::{CancellationToken, ToolError};

pub(crate) use self::arguments::check;
pub(crate) use self::text::{Text, limit_properties};
pub use self::{arguments::arguments, csv::Csv, json::Json, markdown::Markdown};
use crate::{
    content::{BYTE_ORDER_MARK, Content},
    page::{Answer, Page},
};

/// A kind of artifact: how it is told from others, and what can be asked of it.
///
/// Every artifact can be read and searched as text; a kind adds queries. They are offered as arguments
/// of `artifact_query`, and by [`forge_tools`](crate::forge_tools) as a tool each. A content may be
/// larger than memory, and what it holds is not to be trusted: answers keep within their
/// [`Page`], and what cannot be done within bounds is refused with a text that says what can.
///
/// ```
/// use toolcrib_artifacts::{Answer, ArtifactKind, Asked, Query, Start};
/// use toolcrib_core::ToolError;
///
/// struct Log;
///
/// impl ArtifactKind for Log {
///     fn name(&self) -> &str {
///         "log"
///     }
///
///     fn detect(&self, start: &Start<'_>) -> bool {
///         start.text().starts_with("[INFO]")
///     }
///
///     fn queries(&self) -> Vec<Query> {
///         vec![Query::new("last", "The last line of the log.")]
///     }
///
///     fn query(&self, asked: &Asked<'_>) -> Result<Answer, ToolError> {
///         let lines = asked.content.lines();
///         let range = asked.content.line_range(lines.saturating_sub(1)..lines)?;
///         let bytes = asked.content.read(range.start..range.end.min(range.start + 1_000))?;
///         Ok(Answer::text(String::from_utf8_lossy(&bytes)))
///     }
/// }
/// ```
pub trait ArtifactKind: Send + Sync + 'static {
    /// What it is called where somebody names it: in handles, notes, and by tools.
    fn name(&self) -> &str;

    /// What stands for it in the names of forged tools: `md` in `artifact_md_headings`. Kinds that
    /// share it have the same queries. Default: the name.
    fn family(&self) -> &str {
        self.name()
    }

    /// Whether a content is of this kind, by its start. Kinds are asked in order, and the first that
    /// says yes has it. Default: only what is named so is.
    fn detect(&self, start: &Start<'_>) -> bool {
        let _ = start;
        false
    }

    /// What can be asked. Always the same.
    fn queries(&self) -> Vec<Query>;

    /// What makes queries fast, made with the first of them and kept for a while; a
    /// [`query`](Self::query) finds it in [`Asked::index`]. It must stay small whatever the content.
    /// Default: nothing.
    ///
    /// # Errors
    /// What the model is told instead of an answer.
    fn index(&self, content: &Content, cancel: &CancellationToken) -> Result<Index, ToolError> {
        let _ = (content, cancel);
        Ok(Index::default())
    }

    /// Answers.
    ///
    /// # Errors
    /// What the model is told.
    fn query(&self, asked: &Asked<'_>) -> Result<Answer, ToolError>;
}

/// What can be asked of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What it is called, such as `headings`.
    pub name: Arc<str>,
    /// What the model reads to decide when to ask it.
    pub description: Arc<str>,
    /// The properties of its arguments, by name, as in a JSON Schema.
    pub properties: serde_json::Map<String, Value>,
    /// Which of them must be there.
    pub required: Vec<&'static str>,
    /// Whether an answer may have a next page.
    pub pages: bool,
}

impl Query {
    /// A query without arguments whose answers are short.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            properties: serde_json::Map::new(),
            required: Vec::new(),
            pages: false,
        }
    }

    /// Says which arguments it takes: an object with a schema per name. One that is no object adds
    /// nothing.
    #[must_use]
    pub fn takes(mut self, properties: Value) -> Self {
        if let Value::Object(properties) = properties {
            self.properties.extend(properties);
        }
        self
    }

    /// Says which arguments must be there.
    #[must_use]
    pub fn requires(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.required.extend(names);
        self
    }

    /// Says that an answer may have a next page.
    #[must_use]
    pub fn paged(mut self) -> Self {
        self.pages = true;
        self
    }

    /// The schema of the arguments, with these beside them.
    pub(crate) fn schema_with(
        &self,
        beside: serde_json::Map<String, Value>,
        required: &[&'static str],
    ) -> Value {
        let mut properties = beside;
        properties.extend(self.properties.clone());
        let required: Vec<_> = required.iter().chain(&self.required).copied().collect();
        serde_json::json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

/// The start of a content, by which its kind is told.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    bytes: &'a [u8],
    is_whole: bool,
}

impl<'a> Start<'a> {
    /// How many bytes of a content are looked at.
    pub const BYTES: usize = 16 * 1024;

    pub(crate) fn new(bytes: &'a [u8], is_whole: bool) -> Self {
        Self { bytes, is_whole }
    }

    /// The first bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether these are all.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The first bytes as text, without a byte order mark and up to what is no text.
    pub fn text(&self) -> &'a str {
        let bytes = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(self.bytes);
        bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }

    /// The lines that are there in whole; of a whole content all of them.
    pub fn lines(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let text = self.text();
        let whole = if self.is_whole { text.len() } else { text.rfind('\n').unwrap_or(0) };
        text.get(..whole).unwrap_or_default().lines()
    }
}

/// What a kind keeps of a content: a value of its own type.
#[derive(Clone)]
pub struct Index(Arc<dyn Any + Send + Sync>);

impl Index {
    /// Keeps a value.
    pub fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// The value, if it is of that type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new(())
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Index(…)")
    }
}

/// What is asked of an artifact.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The [`Query::name`].
    pub query: &'a str,
    /// Its arguments: an object, or `null` for none. `artifact_query` has held them against what the
    /// query takes, and an engine those of a forged tool. See [`arguments`].
    pub args: &'a Value,
    /// What it is asked of.
    pub content: &'a Content,
    /// What [`ArtifactKind::index`] made.
    pub index: &'a Index,
    /// The part of the answer that is wanted.
    pub page: Page,
    /// Fires when nobody waits for the answer any more. Look at it where it takes long.
    pub cancellation: &'a CancellationToken,
}

impl Asked<'_> {
    /// An error that a query which does not exist is answered with.
    pub fn unknown(&self) -> ToolError {
        ToolError::input_invalid("there is no such query")
    }

    /// Fails once nobody waits for the answer any more.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn unless_cancelled(&self) -> Result<(), ToolError> {
        if self.cancellation.is_cancelled() {
            let message = "it was stopped before it was through";
            return Err(ToolError::new(toolcrib_core::ErrorCode::Cancelled, message));
        }
        Ok(())
    }
}

/// The kinds that artifacts may be of, in the order in which they are asked whose a content is.
#[derive(Clone)]
pub(crate) struct Kinds(Vec<Arc<dyn ArtifactKind>>);

impl Kinds {
    /// Those of users first, and `text` last, which all is.
    pub(crate) fn new(of_users: Vec<Arc<dyn ArtifactKind>>) -> Self {
        let built_in: [Arc<dyn ArtifactKind>; 7] = [
            Arc::new(Json::lines()),
            Arc::new(Json::document()),
            Arc::new(Markdown),
            Arc::new(Csv::commas()),
            Arc::new(Csv::tabs()),
            Arc::new(Csv::semicolons()),
            Arc::new(Text),
        ];
        Self(of_users.into_iter().chain(built_in).collect())
    }

    /// The kind of that name; `text` if there is none any more.
    pub(crate) fn named(&self, name: &str) -> Arc<dyn ArtifactKind> {
        let named = self.0.iter().find(|kind| kind.name() == name);
        named.cloned().unwrap_or_else(|| Arc::new(Text))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|kind| kind.name())
    }

    /// Whether there is a kind of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|kind| kind.name() == name)
    }

    /// The kind of a content.
    pub(crate) fn detect(&self, start: &Start<'_>) -> Arc<dyn ArtifactKind> {
        let detected = self.0.iter().find(|kind| kind.detect(start));
        detected.cloned().unwrap_or_else(|| Arc::new(Text))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
