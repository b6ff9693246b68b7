//! The trait of a kind, and its queries.

use std::{any::Any, sync::Arc};

use serde_json::Value;
use toolcrib_core::{CancellationToken, ErrorCode, ToolError};

use crate::{
    content::{BYTE_ORDER_MARK, Content},
    page::{Answer, Page},
};

/// A kind of artifact: its detection and its queries.
///
/// Every artifact can be read and searched as text; a kind adds queries. They are available as
/// arguments of `artifact_query`, and by [`forge_tools`](crate::forge_tools) as one tool each.
/// Contents may be larger than memory and are untrusted: answers stay within their [`Page`], and a
/// query that would exceed its limits is refused with a text that suggests alternatives.
///
/// ```
/// use toolcrib_artifacts::{Answer, ArtifactKind, QueryRequest, Query, ContentHead};
/// use toolcrib_core::ToolError;
///
/// struct Log;
///
/// impl ArtifactKind for Log {
///     fn name(&self) -> &str {
///         "log"
///     }
///
///     fn detect(&self, start: &ContentHead<'_>) -> bool {
///         start.text().starts_with("[INFO]")
///     }
///
///     fn queries(&self) -> Vec<Query> {
///         vec![Query::new("last", "The last line of the log.")]
///     }
///
///     fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
///         let lines = asked.content.lines();
///         let range = asked.content.line_range(lines.saturating_sub(1)..lines)?;
///         let bytes = asked.content.read(range.start..range.end.min(range.start + 1_000))?;
///         Ok(Answer::text(String::from_utf8_lossy(&bytes)))
///     }
/// }
/// ```
pub trait ArtifactKind: Send + Sync + 'static {
    /// The kind's name in handles, metadata, and tools' declarations.
    fn name(&self) -> &str;

    /// The abbreviation in the names of forged tools: `md` in `artifact_md_headings`. Kinds with
    /// the same family have the same queries. Default: the name.
    fn family(&self) -> &str {
        self.name()
    }

    /// Whether a content is of this kind, judged by its start. Kinds are tried in order, and the
    /// first match wins. Default: false, so that the kind must be named.
    fn detect(&self, start: &ContentHead<'_>) -> bool {
        let _ = start;
        false
    }

    /// The queries. Always the same.
    fn queries(&self) -> Vec<Query>;

    /// Builds an index that makes queries fast, on the first query, and cached for a while; a
    /// [`query`](Self::query) receives it in [`QueryRequest::index`]. It must stay small for any
    /// content. Default: none.
    ///
    /// # Errors
    /// The text for the model instead of an answer.
    fn index(&self, content: &Content, cancel: &CancellationToken) -> Result<Index, ToolError> {
        let _ = (content, cancel);
        Ok(Index::default())
    }

    /// Answers a query.
    ///
    /// # Errors
    /// The text for the model.
    fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError>;
}

/// A query of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The name, such as `headings`.
    pub name: Arc<str>,
    /// The description by which the model decides when to use it.
    pub description: Arc<str>,
    /// The properties of its arguments, by name, as in a JSON Schema.
    pub properties: serde_json::Map<String, Value>,
    /// The required arguments.
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

    /// Sets the arguments: an object with a schema per name. Any other value is ignored.
    #[must_use]
    pub fn takes(mut self, properties: Value) -> Self {
        if let Value::Object(properties) = properties {
            self.properties.extend(properties);
        }
        self
    }

    /// Sets the required arguments.
    #[must_use]
    pub fn requires(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.required.extend(names);
        self
    }

    /// Declares that an answer may have a next page.
    #[must_use]
    pub fn paged(mut self) -> Self {
        self.pages = true;
        self
    }

    /// The schema of the arguments, with additional properties.
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

/// The start of a content, for the detection of its kind.
#[derive(Debug, Clone, Copy)]
pub struct ContentHead<'a> {
    bytes: &'a [u8],
    is_complete: bool,
}

/// An index of a content: a value of the kind's own type.
#[derive(Clone)]
pub struct Index(Arc<dyn Any + Send + Sync>);

impl Index {
    /// Wraps a value for later queries.
    pub fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// The value, if it has that type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new(())
    }
}

toolcrib_core::__internal::debug_fields!(Index);

/// A query of an artifact.
#[derive(Debug)]
pub struct QueryRequest<'a> {
    /// The [`Query::name`].
    pub query: &'a str,
    /// The arguments: an object, or `null` for none. Validated by `artifact_query`, or by the
    /// engine for a forged tool. See [`arguments`](crate::arguments).
    pub args: &'a Value,
    /// The content.
    pub content: &'a Content,
    /// The index built by [`ArtifactKind::index`].
    pub index: &'a Index,
    /// The requested page of the answer.
    pub page: Page,
    /// Fires when no caller waits for the answer any more. Check it in long loops.
    pub cancellation: &'a CancellationToken,
}

impl QueryRequest<'_> {
    /// The error for an unknown query.
    pub fn unknown(&self) -> ToolError {
        ToolError::input_invalid("unknown query")
    }

    /// Fails if the call was cancelled.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn check_cancelled(&self) -> Result<(), ToolError> {
        check_cancelled(self.cancellation)
    }
}

/// Fails if the work was cancelled.
pub(super) fn check_cancelled(cancellation: &CancellationToken) -> Result<(), ToolError> {
    match cancellation.is_cancelled() {
        true => {
            let message = "it was cancelled before it finished";
            Err(ToolError::new(ErrorCode::Cancelled, message))
        }
        false => Ok(()),
    }
}

impl<'a> ContentHead<'a> {
    /// The number of bytes examined.
    pub const BYTES: usize = 16 * 1024;

    pub(crate) fn new(bytes: &'a [u8], is_complete: bool) -> Self {
        Self { bytes, is_complete }
    }

    /// The first bytes of the content.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether this is the whole content.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The first bytes as text, without a byte order mark and up to the first invalid byte.
    pub fn text(&self) -> &'a str {
        let bytes = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(self.bytes);
        bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }

    /// The complete lines; all lines of a whole content.
    pub fn lines(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let text = self.text();
        let whole = if self.is_complete { text.len() } else { text.rfind('\n').unwrap_or(0) };
        text.get(..whole).unwrap_or_default().lines()
    }
}
