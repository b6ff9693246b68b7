//! Fields of vendors' events, read without a copy of the event and without a tree of its values.
//!
//! Servers differ, so a value of another type than the expected one is absent here, and no error. All
//! of it must be valid JSON nevertheless, whether it is used or not. The last of repeated fields counts.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

/// A text that is required to be one.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// The text of an optional field; empty if it is absent.
pub(super) fn text<'t>(field: &'t Option<Text<'_>>) -> &'t str {
    field.as_ref().map_or("", |Text(text)| text)
}

/// A text, if it is one.
#[derive(Debug, Default)]
pub(super) struct MaybeText<'a>(pub(super) Option<Cow<'a, str>>);

impl MaybeText<'_> {
    /// The text; empty if it is none.
    pub(super) fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

/// A whole number that is not negative, if it is one.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct MaybeNumber(pub(super) Option<u64>);

/// The elements of a list; none if it is none.
#[derive(Debug)]
pub(super) struct MaybeList<T>(pub(super) Vec<T>);

impl<T> Default for MaybeList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// An object, if it is one.
#[derive(Debug)]
pub(super) struct MaybeObject<T>(pub(super) Option<T>);

impl<T> Default for MaybeObject<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// Whether a value is neither absent nor null.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct IsSet(pub(super) bool);

/// A text or an object.
#[derive(Debug, Default)]
pub(super) enum TextOrObject<'a> {
    Text(Cow<'a, str>),
    Object(Value),
    #[default]
    Other,
}

/// A text or a list.
#[derive(Debug, Default)]
pub(super) enum TextOrList<'a, T> {
    Text(Cow<'a, str>),
    List(Vec<T>),
    #[default]
    Other,
}

/// A value that is not used.
#[derive(Default)]
struct Unused;

/// The known fields of an object.
pub(super) trait Fields<'de>: Default {
    /// Reads the value of a known field. Leaves that of any other.
    fn read<A: MapAccess<'de>>(
        &mut self,
        field: &str,
        value: &mut FieldValue<'_, A>,
    ) -> Result<(), A::Error>;
}

/// Implements [`Fields`] for a struct: the names of its fields in JSON.
macro_rules! fields {
    ($object:ident $(<$text:lifetime>)? { $($name:literal => $field:ident),+ $(,)? }) => {
        impl<'de $(: $text, $text)?> $crate::adapters::lenient::Fields<'de> for $object $(<$text>)? {
            fn read<A: serde::de::MapAccess<'de>>(
                &mut self,
                field: &str,
                value: &mut $crate::adapters::lenient::FieldValue<'_, A>,
            ) -> Result<(), A::Error> {
                match field {
                    $($name => self.$field = value.read()?,)+
                    _ => {}
                }
                Ok(())
            }
        }
    };
}
pub(super) use fields;

/// The value of a field.
pub(super) struct FieldValue<'m, A> {
    map: &'m mut A,
    is_read: bool,
}

impl<'de, A: MapAccess<'de>> FieldValue<'_, A> {
    /// Reads it.
    pub(super) fn read<T: Deserialize<'de>>(&mut self) -> Result<T, A::Error> {
        self.is_read = true;
        self.map.next_value()
    }
}

/// A value by the type that it has.
trait Typed<'de>: Default {
    fn borrowed(text: &'de str) -> Self {
        Self::copied(text)
    }

    fn copied(_text: &str) -> Self {
        Self::scalar()
    }

    fn number(_number: u64) -> Self {
        Self::scalar()
    }

    /// Of any value that is neither null nor of a type with a function.
    fn scalar() -> Self {
        Self::default()
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while let Some(Unused) = list.next_element()? {}
        Ok(Self::scalar())
    }

    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while let Some((Unused, Unused)) = map.next_entry()? {}
        Ok(Self::scalar())
    }
}

struct AnyType<T>(PhantomData<T>);

impl<'de, T: Typed<'de>> Visitor<'de> for AnyType<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::scalar())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        // Those that are not negative are `u64`.
        Ok(T::scalar())
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::scalar())
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::copied(text))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::object(map)
    }
}

fn any<'de, T: Typed<'de>, D: Deserializer<'de>>(json: D) -> Result<T, D::Error> {
    json.deserialize_any(AnyType(PhantomData))
}

impl Typed<'_> for Unused {}

impl<'de> Deserialize<'de> for Unused {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        any(json)
    }
}

impl<'de> Typed<'de> for MaybeText<'de> {
    fn borrowed(text: &'de str) -> Self {
        Self(Some(Cow::Borrowed(text)))
    }

    fn copied(text: &str) -> Self {
        Self(Some(Cow::Owned(text.to_owned())))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MaybeText<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        any::<MaybeText<'de>, D>(json)
    }
}

impl Typed<'_> for MaybeNumber {
    fn number(number: u64) -> Self {
        Self(Some(number))
    }
}

impl<'de> Deserialize<'de> for MaybeNumber {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        any(json)
    }
}

impl Typed<'_> for IsSet {
    fn scalar() -> Self {
        Self(true)
    }
}

impl<'de> Deserialize<'de> for IsSet {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        any(json)
    }
}

impl<'de, T: Deserialize<'de>> Typed<'de> for MaybeList<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        elements(&mut list).map(Self)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for MaybeList<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        any(json)
    }
}

impl<'de, T: Fields<'de>> Typed<'de> for MaybeObject<T> {
    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut object = T::default();
        while let Some(Text(field)) = map.next_key()? {
            let mut value = FieldValue { map: &mut map, is_read: false };
            object.read(&field, &mut value)?;
            if !value.is_read {
                let Unused = value.read()?;
            }
        }
        Ok(Self(Some(object)))
    }
}

impl<'de, T: Fields<'de>> Deserialize<'de> for MaybeObject<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        any(json)
    }
}

impl<'de> Typed<'de> for TextOrObject<'de> {
    fn borrowed(text: &'de str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    fn copied(text: &str) -> Self {
        Self::Text(Cow::Owned(text.to_owned()))
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Self::Object)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TextOrObject<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        any::<TextOrObject<'de>, D>(json)
    }
}

impl<'de, T: Deserialize<'de>> Typed<'de> for TextOrList<'de, T> {
    fn borrowed(text: &'de str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    fn copied(text: &str) -> Self {
        Self::Text(Cow::Owned(text.to_owned()))
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        elements(&mut list).map(Self::List)
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for TextOrList<'a, T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        any::<TextOrList<'de, T>, D>(json)
    }
}

fn elements<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(list: &mut A) -> Result<Vec<T>, A::Error> {
    let mut elements = Vec::new();
    while let Some(element) = list.next_element()? {
        elements.push(element);
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default)]
    struct Sample<'a> {
        text: MaybeText<'a>,
        number: MaybeNumber,
        list: MaybeList<MaybeObject<Sample<'a>>>,
        either: TextOrList<'a, MaybeNumber>,
        arguments: TextOrObject<'a>,
        error: IsSet,
    }

    fields!(Sample<'a> {
        "text" => text,
        "number" => number,
        "list" => list,
        "either" => either,
        "arguments" => arguments,
        "error" => error,
    });

    /// The fields by a tree of values.
    fn by_tree(value: &Value) -> Value {
        if !value.is_object() {
            return Value::Null;
        }
        let list = value["list"].as_array().map_or(&[][..], Vec::as_slice);
        json!([
            value["text"].as_str(),
            value["number"].as_u64(),
            list.iter().map(by_tree).collect::<Vec<_>>(),
            match &value["either"] {
                Value::Array(list) => list.iter().map(|number| json!(number.as_u64())).collect(),
                other => json!(other.as_str()),
            },
            match &value["arguments"] {
                Value::Object(_) => json!(value["arguments"].to_string()),
                other => json!([other.as_str()]),
            },
            !value["error"].is_null(),
        ])
    }

    fn by_fields(MaybeObject(sample): &MaybeObject<Sample<'_>>) -> Value {
        let Some(sample) = sample else { return Value::Null };
        json!([
            sample.text.0,
            sample.number.0,
            sample.list.0.iter().map(by_fields).collect::<Vec<_>>(),
            match &sample.either {
                TextOrList::List(list) => list.iter().map(|number| json!(number.0)).collect(),
                TextOrList::Text(text) => json!(text),
                TextOrList::Other => Value::Null,
            },
            match &sample.arguments {
                TextOrObject::Object(object) => json!(object.to_string()),
                TextOrObject::Text(text) => json!([text]),
                TextOrObject::Other => json!([null]),
            },
            sample.error.0,
        ])
    }

    fn check(json: &str) {
        let tree = serde_json::from_str::<Value>(json);
        let fields = serde_json::from_str::<MaybeObject<Sample<'_>>>(json);
        match (tree, fields) {
            (Ok(tree), Ok(fields)) => assert_eq!(by_fields(&fields), by_tree(&tree), "{json}"),
            (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string(), "{json}"),
            (one, other) => panic!("{json}: {one:?}, {other:?}"),
        }
    }

    fn any_json() -> impl Strategy<Value = String> {
        let scalar = prop::sample::select(vec![
            "null",
            "true",
            "0",
            "-0",
            "-1",
            "1.0",
            "1e999",
            "18446744073709551615",
            "1e2",
            "\"\"",
            "18446744073709551616",
            "\"a\\n\"",
            "\"\\ud83d\"",
            "\"\\ud83d\\udc40\"",
            "\"a\u{1}\"",
            "\"\u{e9}\"",
            "01",
            "nul",
            "\"",
            "",
        ]);
        scalar.prop_map(str::to_owned).prop_recursive(4, 24, 4, |inner| {
            let names = vec![
                "text",
                "number",
                "list",
                "either",
                "arguments",
                "error",
                "other",
                "t\\u0065xt",
                "\\ud83d",
            ];
            let name = prop::sample::select(names);
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
                vec((name, inner), 0..6).prop_map(|fields| {
                    let fields = fields.iter().map(|(name, value)| format!("\"{name}\":{value}"));
                    format!("{{{}}}", fields.collect::<Vec<_>>().join(" ,"))
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fields_and_errors_are_those_of_a_tree(json in any_json(), cut in 0..40_usize) {
            check(&json);
            check(json.get(..json.len().saturating_sub(cut)).unwrap_or_default());
        }
    }

    #[test]
    fn what_nests_deeply_is_refused_as_in_a_tree() {
        for field in ["other", "text", "list", "error"] {
            for levels in [126, 127, 128, 100_000] {
                check(&format!("{{\"{field}\":{}{}}}", "[".repeat(levels), "]".repeat(levels)));
            }
        }
    }
}
