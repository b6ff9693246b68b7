//! What there is to a message, whoever it is for.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;
use toolcrib_core::PlainJson;

/// What a message says of itself. The rest is passed over, however deep it nests.
#[derive(Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    /// Absent is another thing than `null`.
    #[serde(default, deserialize_with = "said")]
    pub(crate) id: Option<Value>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    result: Option<IgnoredAny>,
    pub(crate) error: Option<IgnoredAny>,
}

impl Envelope<'_> {
    /// Whether it is of the one version that there is.
    pub(crate) fn is_of_version(&self) -> bool {
        self.jsonrpc.as_deref() == Some("2.0")
    }

    /// Whether it holds what an answer does.
    pub(crate) fn is_answer(&self) -> bool {
        self.result.is_some() || self.error.is_some()
    }

    /// Whether it has an id that names something.
    pub(crate) fn has_id(&self) -> bool {
        self.id.as_ref().is_some_and(|id| !id.is_null())
    }
}

fn said<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Value>, D::Error> {
    id(json).map(Some)
}

/// Reads an id or a token exactly as it is written: the JSON library reads some objects as a number.
pub(crate) fn id<'de, D: Deserializer<'de>>(json: D) -> Result<Value, D::Error> {
    PlainJson::deserialize(json).map(|PlainJson(id)| id)
}
