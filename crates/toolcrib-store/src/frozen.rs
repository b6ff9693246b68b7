//! The stored form of a message: JSON from which the same message is read, to the last bit, so that
//! an adapter sends the same bytes again.
//!
//! A message's own JSON does not have that property: it writes the lengths of images, and does not
//! distinguish arguments that are a text from arguments that are a JSON string.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use toolcrib_core::{
    __internal::PlainJson, Arguments, ContentBlock, Message, SecretReference, StoredArguments,
    ToolCall, VendorContent,
};

/// The reason why a message cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrozenError {
    #[error("a message of a kind that this version cannot store")]
    UnknownMessage,
    #[error("content of a kind that this version cannot store")]
    UnknownBlock,
    #[error("a message that cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("an image, sound or file that cannot be read: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("a number that cannot be read")]
    Number,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum FrozenMessage {
    User {
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocks: Vec<FrozenBlock>,
    },
    Assistant {
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<FrozenCall>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vendor: Option<FrozenVendor>,
    },
    Tool {
        call_id: Arc<str>,
        name: Arc<str>,
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocks: Vec<FrozenBlock>,
        is_error: bool,
        untrusted: bool,
    },
}

#[derive(Serialize, Deserialize)]
struct FrozenCall {
    id: Arc<str>,
    name: Arc<str>,
    arguments: FrozenArguments,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FrozenArguments {
    Text(String),
    Json(FrozenJson),
}

#[derive(Serialize, Deserialize)]
struct FrozenVendor {
    vendor: Arc<str>,
    content: FrozenJson,
}

/// A JSON value.
#[derive(Serialize, Deserialize)]
pub(crate) struct FrozenJson {
    /// Its text. As a text it does not nest in the message, because a parser limits the depth.
    json: String,
    /// Its floats, in order: a parser of JSON may return a neighbor of the number that was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    floats: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FrozenBlock {
    Image { media_type: Arc<str>, data: String },
    Audio { media_type: Arc<str>, data: String },
    Text { uri: Arc<str>, media_type: Option<Arc<str>>, text: Arc<str> },
    Binary { uri: Arc<str>, media_type: Option<Arc<str>>, data: String },
    Link { uri: Arc<str>, name: Arc<str>, media_type: Option<Arc<str>> },
}

/// The stored form of a message.
pub(crate) fn freeze(message: &Message) -> Result<String, FrozenError> {
    let frozen = match message {
        Message::User { text, blocks } => {
            FrozenMessage::User { text: Arc::clone(text), blocks: FrozenBlock::freeze_all(blocks)? }
        }
        Message::Assistant { text, calls, vendor } => FrozenMessage::Assistant {
            text: Arc::clone(text),
            calls: calls.iter().map(FrozenCall::from).collect(),
            vendor: vendor.as_ref().map(|vendor| FrozenVendor {
                vendor: Arc::clone(&vendor.vendor),
                content: FrozenJson::from(&vendor.content),
            }),
        },
        Message::Tool { call_id, name, text, blocks, is_error, untrusted } => FrozenMessage::Tool {
            call_id: Arc::clone(call_id),
            name: Arc::clone(name),
            text: Arc::clone(text),
            blocks: FrozenBlock::freeze_all(blocks)?,
            is_error: *is_error,
            untrusted: *untrusted,
        },
        _ => return Err(FrozenError::UnknownMessage),
    };
    Ok(serde_json::to_string(&frozen)?)
}

/// The message of a stored form.
pub(crate) fn thaw(frozen: &str) -> Result<Message, FrozenError> {
    Ok(match serde_json::from_str(frozen)? {
        FrozenMessage::User { text, blocks } => {
            Message::User { text, blocks: FrozenBlock::thaw_all(blocks)? }
        }
        FrozenMessage::Assistant { text, calls, vendor } => Message::Assistant {
            text,
            calls: calls.into_iter().map(FrozenCall::thaw).collect::<Result<_, _>>()?,
            vendor: vendor.map(FrozenVendor::thaw).transpose()?,
        },
        FrozenMessage::Tool { call_id, name, text, blocks, is_error, untrusted } => Message::Tool {
            call_id,
            name,
            text,
            blocks: FrozenBlock::thaw_all(blocks)?,
            is_error,
            untrusted,
        },
    })
}

impl From<&ToolCall> for FrozenCall {
    fn from(call: &ToolCall) -> Self {
        Self {
            id: Arc::clone(&call.id),
            name: Arc::clone(&call.name),
            arguments: match &call.arguments {
                Arguments::Text(text) => FrozenArguments::Text(text.clone()),
                Arguments::Json(json) => FrozenArguments::Json(json.into()),
            },
        }
    }
}

impl FrozenCall {
    fn thaw(self) -> Result<ToolCall, FrozenError> {
        let arguments = match self.arguments {
            FrozenArguments::Text(text) => Arguments::Text(text),
            FrozenArguments::Json(json) => Arguments::Json(json.thaw()?),
        };
        Ok(ToolCall { id: self.id, name: self.name, arguments })
    }
}

impl FrozenVendor {
    fn thaw(self) -> Result<Arc<VendorContent>, FrozenError> {
        let content = self.content.thaw()?;
        Ok(Arc::new(VendorContent { vendor: self.vendor, content }))
    }
}

impl From<&Value> for FrozenJson {
    fn from(value: &Value) -> Self {
        let mut floats = Vec::new();
        collect_floats(value, &mut floats);
        Self { json: value.to_string(), floats }
    }
}

impl FrozenJson {
    pub(crate) fn thaw(self) -> Result<Value, FrozenError> {
        let mut value = PlainJson::read(self.json.as_bytes())?;
        let mut floats = self.floats.iter();
        restore_floats(&mut value, &mut floats)?;
        if floats.next().is_some() { Err(FrozenError::Number) } else { Ok(value) }
    }
}

// Both recurse no deeper than a JSON parser: deeper values are refused before they are stored.
fn collect_floats(value: &Value, floats: &mut Vec<String>) {
    match value {
        Value::Number(number) if number.is_f64() => floats.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_floats(item, floats)),
        Value::Object(map) => map.values().for_each(|item| collect_floats(item, floats)),
        _ => {}
    }
}

fn restore_floats<'a>(
    value: &mut Value,
    floats: &mut impl Iterator<Item = &'a String>,
) -> Result<(), FrozenError> {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = floats.next().and_then(|text| text.parse().ok());
            *number = exact.and_then(Number::from_f64).ok_or(FrozenError::Number)?;
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| restore_floats(item, floats)),
        Value::Object(map) => map.values_mut().try_for_each(|item| restore_floats(item, floats)),
        _ => Ok(()),
    }
}

impl FrozenBlock {
    fn freeze_all(blocks: &[ContentBlock]) -> Result<Vec<Self>, FrozenError> {
        blocks.iter().map(Self::freeze).collect()
    }

    fn thaw_all(blocks: Vec<Self>) -> Result<Arc<[ContentBlock]>, FrozenError> {
        blocks.into_iter().map(Self::thaw).collect()
    }

    fn freeze(block: &ContentBlock) -> Result<Self, FrozenError> {
        Ok(match block {
            ContentBlock::Image { media_type, data, .. } => {
                Self::Image { media_type: Arc::clone(media_type), data: STANDARD.encode(data) }
            }
            ContentBlock::Audio { media_type, data, .. } => {
                Self::Audio { media_type: Arc::clone(media_type), data: STANDARD.encode(data) }
            }
            ContentBlock::Text { uri, media_type, text, .. } => Self::Text {
                uri: Arc::clone(uri),
                media_type: media_type.clone(),
                text: Arc::clone(text),
            },
            ContentBlock::Binary { uri, media_type, data, .. } => Self::Binary {
                uri: Arc::clone(uri),
                media_type: media_type.clone(),
                data: STANDARD.encode(data),
            },
            ContentBlock::Link { uri, name, media_type, .. } => Self::Link {
                uri: Arc::clone(uri),
                name: Arc::clone(name),
                media_type: media_type.clone(),
            },
            _ => return Err(FrozenError::UnknownBlock),
        })
    }

    fn thaw(self) -> Result<ContentBlock, FrozenError> {
        let (block, media_type) = match self {
            Self::Image { media_type, data } => {
                return Ok(ContentBlock::image(media_type, STANDARD.decode(data)?));
            }
            Self::Audio { media_type, data } => {
                return Ok(ContentBlock::audio(media_type, STANDARD.decode(data)?));
            }
            Self::Text { uri, media_type, text } => (ContentBlock::text(uri, text), media_type),
            Self::Binary { uri, media_type, data } => {
                (ContentBlock::binary(uri, STANDARD.decode(data)?), media_type)
            }
            Self::Link { uri, name, media_type } => (ContentBlock::link(uri, name), media_type),
        };
        Ok(match media_type {
            Some(media_type) => block.media_type(media_type),
            None => block,
        })
    }
}

/// Arguments as stored.
#[derive(Serialize, Deserialize)]
struct FrozenStoredArguments {
    value: FrozenJson,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<(Arc<str>, usize, Arc<str>)>,
}

/// The stored form of arguments.
pub(crate) fn freeze_arguments(arguments: &StoredArguments) -> Result<String, FrozenError> {
    let secrets = arguments.secrets.iter();
    let frozen = FrozenStoredArguments {
        value: FrozenJson::from(&arguments.value),
        secrets: secrets
            .map(|one| (Arc::clone(&one.pointer), one.at, Arc::clone(&one.name)))
            .collect(),
    };
    Ok(serde_json::to_string(&frozen)?)
}

/// The arguments of a stored form.
pub(crate) fn thaw_arguments(frozen: &str) -> Result<StoredArguments, FrozenError> {
    let FrozenStoredArguments { value, secrets } = serde_json::from_str(frozen)?;
    let secrets = secrets.into_iter();
    let secrets = secrets.map(|(pointer, at, name)| SecretReference { pointer, at, name });
    Ok(StoredArguments::new(value.thaw()?, secrets.collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
    use serde_json::{Map, json};

    use super::*;

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec((".*", inner), 0..6)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    fn with(json: Value) -> Message {
        Message::Assistant {
            text: "t".into(),
            calls: vec![
                ToolCall::new("1", "a", json.clone()),
                ToolCall::unparsed("2", "b", json.to_string()),
            ],
            vendor: Some(Arc::new(VendorContent { vendor: "v".into(), content: json })),
        }
    }

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(json in json_value()) {
            let message = with(json);
            let thawed = thaw(&freeze(&message).unwrap()).unwrap();
            // The order of keys and the bits of floats count too.
            assert_eq!(format!("{thawed:?}"), format!("{message:?}"));
            assert_eq!(thawed, message);
        }
    }

    #[test]
    fn a_value_as_deep_as_a_parser_permits_is_read_again() {
        let deep = (0..126).fold(json!(1.5), |inner, _| json!([inner]));
        let message = with(deep);
        assert_eq!(thaw(&freeze(&message).unwrap()).unwrap(), message);
    }

    #[test]
    fn a_float_that_parsers_round_keeps_its_bits() {
        for text in ["1.7976931348623157e308", "0.30000000000000004", "9007199254740993.5", "-0.0"]
        {
            let float: f64 = text.parse().unwrap();
            let Message::Assistant { calls, .. } =
                thaw(&freeze(&with(json!([float]))).unwrap()).unwrap()
            else {
                panic!()
            };
            let Arguments::Json(value) = &calls[0].arguments else { panic!() };
            assert_eq!(value[0].as_f64().unwrap().to_bits(), float.to_bits(), "{text}");
        }
    }
}
