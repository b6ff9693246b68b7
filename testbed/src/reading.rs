//! Reading JSON strictly: every value knows where it stands, and what is not expected is a fault.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Where a value stands in a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Index(usize),
}

impl Place {
    fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// `messages.0.content`, as Anthropic writes it.
    pub(crate) fn dotted(&self) -> String {
        let steps = self.0.iter().map(|step| match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => index.to_string(),
        });
        steps.collect::<Vec<_>>().join(".")
    }

    /// `messages[0].content`, as OpenAI and Google write it.
    pub(crate) fn bracketed(&self) -> String {
        let mut written = String::new();
        for step in &self.0 {
            let _ = match step {
                Step::Key(key) if written.is_empty() => write!(written, "{key}"),
                Step::Key(key) => write!(written, ".{key}"),
                Step::Index(index) => write!(written, "[{index}]"),
            };
        }
        written
    }
}

/// What a vendor would not take in a request.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) kind: FaultKind,
}

#[derive(Debug)]
pub(crate) enum FaultKind {
    /// Something that must be there is not.
    Missing,
    /// Something is there that nobody reads.
    Unknown,
    /// It is of another type; the one that was expected.
    Type(&'static str),
    /// It is of the right type and still wrong; a sentence, and the vendor's code where it has one.
    Value(String, Option<&'static str>),
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    pub(crate) place: Place,
}

impl<'a> Node<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, place: Place::default() }
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        Fault { place: self.place.clone(), kind }
    }

    /// A fault of a value that is of the right type.
    pub(crate) fn wrong(&self, sentence: impl Into<String>) -> Fault {
        self.fault(FaultKind::Value(sentence.into(), None))
    }

    /// The same with the vendor's code for it.
    pub(crate) fn wrong_as(&self, code: &'static str, sentence: impl Into<String>) -> Fault {
        self.fault(FaultKind::Value(sentence.into(), Some(code)))
    }

    pub(crate) fn not_a(&self, expected: &'static str) -> Fault {
        self.fault(FaultKind::Type(expected))
    }

    /// A fault of a value that nobody reads.
    pub(crate) fn unknown(&self) -> Fault {
        self.fault(FaultKind::Unknown)
    }

    /// An object with no other keys than these.
    pub(crate) fn object(&self, known: &[&str]) -> Result<Object<'a>, Fault> {
        let object = self.open_object()?;
        match object.map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(object),
            Some(key) => Err(Fault { place: self.place.key(key), kind: FaultKind::Unknown }),
        }
    }

    /// An object with whatever keys.
    pub(crate) fn open_object(&self) -> Result<Object<'a>, Fault> {
        let map = self.value.as_object().ok_or_else(|| self.not_a("object"))?;
        Ok(Object { map, place: self.place.clone() })
    }

    pub(crate) fn list(&self) -> Result<Vec<Self>, Fault> {
        let items = self.value.as_array().ok_or_else(|| self.not_a("array"))?;
        let nodes = items.iter().enumerate();
        Ok(nodes.map(|(i, value)| Self { value, place: self.place.index(i) }).collect())
    }

    pub(crate) fn text(&self) -> Result<&'a str, Fault> {
        self.value.as_str().ok_or_else(|| self.not_a("string"))
    }

    pub(crate) fn flag(&self) -> Result<bool, Fault> {
        self.value.as_bool().ok_or_else(|| self.not_a("boolean"))
    }

    pub(crate) fn count(&self) -> Result<u64, Fault> {
        self.value.as_u64().ok_or_else(|| self.not_a("integer"))
    }
}

/// An object whose fields are read by name. A field that is `null` is absent.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    map: &'a Map<String, Value>,
    place: Place,
}

impl<'a> Object<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.map.get(key).filter(|value| !value.is_null())?;
        Some(Node { value, place: self.place.key(key) })
    }

    pub(crate) fn need(&self, key: &str) -> Result<Node<'a>, Fault> {
        let missing = || Fault { place: self.place.key(key), kind: FaultKind::Missing };
        self.get(key).ok_or_else(missing)
    }

    /// A text that must be there.
    pub(crate) fn text(&self, key: &str) -> Result<&'a str, Fault> {
        self.need(key)?.text()
    }

    pub(crate) fn list(&self, key: &str) -> Result<Vec<Node<'a>>, Fault> {
        self.get(key).map_or_else(|| Ok(Vec::new()), |node| node.list())
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Fault> {
        self.get(key).map(|node| node.flag()).transpose()
    }

    pub(crate) fn count(&self, key: &str) -> Result<Option<u64>, Fault> {
        self.get(key).map(|node| node.count()).transpose()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let entries = self.map.iter();
        entries.map(|(key, value)| (key.as_str(), Node { value, place: self.place.key(key) }))
    }
}
