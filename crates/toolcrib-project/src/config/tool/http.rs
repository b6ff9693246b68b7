//! `[[tool]]` of the kind `http`.

use std::{collections::HashMap, ops::RangeInclusive, sync::Arc};

use serde_json::Value as Json;
use toolcrib_config::{Located, Spot, Table, Value};
use toolcrib_scope::http::Method;

use crate::config::{params::escape, text::Text};

/// The keys that only this kind has.
pub(super) const KEYS: &[&str] = &[
    "method",
    "url",
    "headers",
    "body",
    "pointer",
    "max_body_bytes",
    "max_redirects",
    "allow_addresses",
];

const METHODS: [(&str, &Method); 6] = [
    ("GET", &Method::GET),
    ("HEAD", &Method::HEAD),
    ("POST", &Method::POST),
    ("PUT", &Method::PUT),
    ("PATCH", &Method::PATCH),
    ("DELETE", &Method::DELETE),
];

/// How much of an answer may be kept: it is held in memory.
const BODY_BYTES: RangeInclusive<u64> = 1..=256 << 20;
/// The most redirects that are followed.
const REDIRECTS: RangeInclusive<usize> = 0..=20;

/// What an HTTP tool asks.
#[derive(Debug)]
pub(crate) struct HttpSection {
    pub(crate) method: &'static Method,
    pub(crate) url: Option<Text>,
    pub(crate) headers: Vec<HeaderSection>,
    pub(crate) body: Option<BodySection>,
    pub(crate) pointer: Option<Text>,
    pub(crate) max_body_bytes: Option<usize>,
    pub(crate) max_redirects: Option<usize>,
    pub(crate) allow_addresses: Vec<Located<Arc<str>>>,
    /// Whether a part of it could not be read, so that what uses which parameter is not known.
    pub(crate) is_broken: bool,
}

/// One header.
#[derive(Debug)]
pub(crate) struct HeaderSection {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) value: Text,
}

/// The template of a body.
#[derive(Debug)]
pub(crate) struct BodySection {
    pub(crate) json: Json,
    /// All parts of it, by JSON pointer.
    parts: HashMap<String, BodyPart>,
    at: Spot,
}

/// A part of a body.
#[derive(Debug)]
enum BodyPart {
    Text(Text),
    Other(Spot),
}

impl HttpSection {
    pub(in crate::config) fn read(table: &Table<'_>) -> Self {
        let method = table.value("method").map(|method| method.word(&METHODS));
        let url = table
            .required("url", "\"https://api.example.com/v1/{city}?days={days}\"")
            .map(|url| Text::read(&url));
        let headers = table.value("headers").map(|headers| read_headers(&headers));
        let (headers, has_all_headers) = headers.unwrap_or((Vec::new(), true));
        let body = table.value("body").map(|body| BodySection::read(&body));
        Self {
            is_broken: !matches!(url, Some(Some(_)))
                || !has_all_headers
                || matches!(body, Some(None)),
            method: method.flatten().map_or(&Method::GET, |method| method.value),
            url: url.flatten(),
            headers,
            body: body.flatten(),
            pointer: table.value("pointer").and_then(|pointer| Text::read_any(&pointer)),
            max_body_bytes: table
                .size("max_body_bytes", BODY_BYTES)
                .and_then(|bytes| usize::try_from(bytes).ok()),
            max_redirects: table.integer("max_redirects", REDIRECTS),
            allow_addresses: table
                .value("allow_addresses")
                .and_then(|addresses| addresses.items())
                .map(|addresses| addresses.iter().filter_map(Value::text).collect())
                .unwrap_or_default(),
        }
    }

    /// Whether the method by itself promises to change nothing.
    pub(super) fn only_reads(&self) -> bool {
        matches!(*self.method, Method::GET | Method::HEAD)
    }
}

/// The headers that are of use, and whether all are.
pub(in crate::config) fn read_headers(value: &Value<'_>) -> (Vec<HeaderSection>, bool) {
    let Some(headers) = value.entries("`headers`") else {
        return (Vec::new(), false);
    };
    let all: Vec<_> = headers
        .rest()
        .map(|(name, value)| Some(HeaderSection { name, value: Text::read_any(&value)? }))
        .collect();
    let has_all = all.iter().all(Option::is_some);
    (all.into_iter().flatten().collect(), has_all)
}

impl BodySection {
    fn read(value: &Value<'_>) -> Option<Self> {
        let mut this = Self { json: Json::Null, parts: HashMap::new(), at: value.at() };
        this.json = value.json()?;
        this.note(value, String::new());
        Some(this)
    }

    /// Notes where everything stands.
    fn note(&mut self, value: &Value<'_>, pointer: String) {
        if value.is_list() {
            for (position, item) in value.items().iter().flatten().enumerate() {
                self.note(item, format!("{pointer}/{position}"));
            }
        } else if value.is_table() {
            for (key, item) in value.entries("`body`").iter().flat_map(Table::rest) {
                self.note(&item, format!("{pointer}/{}", escape(&key.value)));
            }
        }
        let text = if value.is_text() { Text::read_any(value) } else { None };
        let part = text.map_or_else(|| BodyPart::Other(value.at()), BodyPart::Text);
        self.parts.insert(pointer, part);
    }

    /// Where a byte of the part at a pointer stands, or at least the part.
    pub(crate) fn place(&self, pointer: &str, offset: Option<usize>) -> Spot {
        match self.parts.get(pointer) {
            Some(BodyPart::Text(text)) => text.place(offset),
            Some(BodyPart::Other(at)) => at.clone(),
            None => self.at.clone(),
        }
    }

    /// Where the value under a key of the part at a pointer stands.
    pub(crate) fn place_under(&self, pointer: &str, key: &str) -> Spot {
        self.place(&format!("{pointer}/{}", escape(key)), None)
    }
}
