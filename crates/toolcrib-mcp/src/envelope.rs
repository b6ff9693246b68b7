//! The common fields of all messages.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;
use toolcrib_core::__internal::PlainJson;

/// The common fields. The rest is skipped, at any depth of nesting.
#[derive(Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    /// Absent differs from `null`.
    #[serde(default, deserialize_with = "said")]
    pub(crate) id: Option<Value>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    result: Option<IgnoredAny>,
    pub(crate) error: Option<IgnoredAny>,
}

impl Envelope<'_> {
    /// Whether it has the only known version.
    pub(crate) fn is_of_version(&self) -> bool {
        self.jsonrpc.as_deref() == Some("2.0")
    }

    /// Whether it has the fields of a response.
    pub(crate) fn is_answer(&self) -> bool {
        self.result.is_some() || self.error.is_some()
    }

    /// Whether it has a usable id.
    pub(crate) fn has_id(&self) -> bool {
        self.id.as_ref().is_some_and(|id| !id.is_null())
    }
}

fn said<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Value>, D::Error> {
    id(json).map(Some)
}

/// Reads an id or a token exactly as written: the JSON library reads some objects as a number.
pub(crate) fn id<'de, D: Deserializer<'de>>(json: D) -> Result<Value, D::Error> {
    PlainJson::deserialize(json).map(|PlainJson(id)| id)
}
