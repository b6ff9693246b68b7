//! What there is to a message, whoever it is for.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

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

/// Reads an id or a token exactly as it is written. Objects and lists, which are none, are read as
/// empty ones: the JSON library reads some objects as a number.
pub(crate) fn id<'de, D: Deserializer<'de>>(json: D) -> Result<Value, D::Error> {
    struct Id;
    impl<'de> Visitor<'de> for Id {
        type Value = Value;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an id")
        }
        fn visit_bool<E>(self, id: bool) -> Result<Value, E> {
            Ok(id.into())
        }
        fn visit_i64<E>(self, id: i64) -> Result<Value, E> {
            Ok(id.into())
        }
        fn visit_u64<E>(self, id: u64) -> Result<Value, E> {
            Ok(id.into())
        }
        fn visit_f64<E>(self, id: f64) -> Result<Value, E> {
            Ok(id.into())
        }
        fn visit_str<E>(self, id: &str) -> Result<Value, E> {
            Ok(id.into())
        }
        fn visit_unit<E>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Value::Array(Vec::new()))
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Value::Object(Map::new()))
        }
    }
    json.deserialize_any(Id)
}
