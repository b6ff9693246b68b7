//! `[hub.NAME]`: a catalogue of tools that an HTTP server keeps.

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Located, Table, Value};
use toolcrib_core::{KeyField, ListOrder, ToolBuilder, Ttl};
use toolcrib_engine::OnFailure;

use super::{
    remote::{REMOTE_ON_FAILURE, read_on_failure, read_order},
    text::Text,
    tool::{HeaderSection, HttpSection, MAX_CHARS, read_headers},
};

/// How an answer that is never fetched again is written.
const FOREVER: &str = "forever";

const KEYS: [(&str, KeyField); 6] = [
    ("tenant", KeyField::Tenant),
    ("principal", KeyField::Principal),
    ("conversation", KeyField::Conversation),
    ("active_skill", KeyField::ActiveSkill),
    ("active_skills", KeyField::ActiveSkills),
    ("iteration", KeyField::Iteration),
];

/// A section.
#[derive(Debug)]
pub(crate) struct HubSection {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) url: Option<Text>,
    pub(crate) headers: Vec<HeaderSection>,
    pub(crate) pointers: PointerSection,
    prefix: Option<Located<Arc<str>>>,
    pub(crate) order: ListOrder,
    pub(crate) cache: CacheSection,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_failure: OnFailure,
    /// The rules of the lint whose findings withhold no tool.
    pub(crate) lint_allow: Vec<Located<Arc<str>>>,
    /// The hubs that rules may have asked instead, in order.
    pub(crate) alternatives: Vec<Located<Arc<str>>>,
    pub(crate) allow_addresses: Vec<Located<Arc<str>>>,
    pub(crate) call: Option<CallSection>,
}

/// Where in the catalogue what stands.
#[derive(Debug)]
pub(crate) struct PointerSection {
    pub(crate) list: Option<Text>,
    pub(crate) name: Option<Text>,
    pub(crate) description: Option<Text>,
    pub(crate) schema: Option<Text>,
    pub(crate) next: Option<Text>,
}

/// What is kept, by what and how long.
#[derive(Debug)]
pub(crate) struct CacheSection {
    /// `None` when it is missing or of no use, which is recorded.
    pub(crate) key: Option<Vec<KeyField>>,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) stale_for: Option<Duration>,
    pub(crate) stale_on_error: Option<Duration>,
}

/// How its tools are called.
#[derive(Debug)]
pub(crate) struct CallSection {
    pub(crate) http: HttpSection,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_chars: Option<usize>,
}

impl HubSection {
    pub(super) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(hubs) = file.value("hub").and_then(|value| value.entries("`[hub]`")) else {
            return Vec::new();
        };
        hubs.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "write `[hub.NAME]`, with a name of your choice, and below it `url`";
            value.refuse(format!("`{}` is not a hub", name.value.escape_debug()), help);
            return None;
        }
        let what = format!("`[hub.{}]`", name.value);
        value.table(&what, |table| {
            let pointer = |key| table.value(key).and_then(|pointer| Text::read_any(&pointer));
            let headers = table.value("headers").map(|headers| read_headers(&headers).0);
            Self {
                url: table
                    .required("url", "\"https://registry.example/tools\"")
                    .and_then(|url| Text::read(&url)),
                headers: headers.unwrap_or_default(),
                pointers: PointerSection {
                    list: pointer("list"),
                    name: pointer("name"),
                    description: pointer("description"),
                    schema: pointer("schema"),
                    next: pointer("next"),
                },
                prefix: table.text("prefix"),
                order: read_order(table),
                cache: CacheSection::read(table),
                timeout: table.duration("timeout"),
                on_failure: read_on_failure(table).unwrap_or(REMOTE_ON_FAILURE),
                alternatives: table.texts("alternatives"),
                lint_allow: table.texts("lint_allow"),
                allow_addresses: table
                    .value("allow_addresses")
                    .and_then(|addresses| addresses.items())
                    .map(|addresses| addresses.iter().filter_map(Value::text).collect())
                    .unwrap_or_default(),
                call: table
                    .required(
                        "call",
                        "{ method = \"POST\", url = \"https://registry.example/run/{tool}\", body = \
                         \"{arguments}\" }",
                    )
                    .and_then(|call| call.table("`call`", CallSection::read)),
                name,
            }
        })
    }

    /// What the names of its tools begin with.
    pub(crate) fn prefix(&self) -> Arc<str> {
        match &self.prefix {
            Some(prefix) => Arc::clone(&prefix.value),
            None => format!("{}_", self.name.value).into(),
        }
    }

    /// Where that is written, if it is.
    pub(crate) fn prefix_place(&self) -> Option<&toolcrib_config::Spot> {
        self.prefix.as_ref().map(|prefix| &prefix.at)
    }

    /// The texts in which secrets may stand.
    pub(crate) fn secret_texts(&self) -> impl Iterator<Item = &Text> {
        let of_calls = self.call.iter().flat_map(|call| &call.http.headers);
        self.headers.iter().chain(of_calls).map(|header| &header.value)
    }
}

impl CacheSection {
    fn read(table: &Table<'_>) -> Self {
        let key = table.required("key", "[\"tenant\"], or [] where all are given the same");
        let ttl = table.required("ttl", "\"60s\", or \"forever\"");
        Self {
            key: key.and_then(|key| {
                let words = key.items()?.into_iter().map(|field| field.word(&KEYS));
                words.map(|word| word.map(|word| word.value)).collect()
            }),
            ttl: ttl.and_then(|ttl| {
                let is_forever = ttl.is_text() && ttl.any_text()?.value.as_ref() == FOREVER;
                match is_forever {
                    true => Some(Ttl::forever()),
                    false => ttl.duration().map(|ttl| Ttl::after(ttl.value)),
                }
            }),
            stale_for: table.duration("stale_for"),
            stale_on_error: table.duration("stale_on_error"),
        }
    }
}

impl CallSection {
    fn read(table: &Table<'_>) -> Self {
        Self {
            http: HttpSection::read(table),
            read_only: table.boolean("read_only"),
            destructive: table.boolean("destructive"),
            timeout: table.duration("timeout"),
            max_result_chars: table
                .integer("max_result_chars", ToolBuilder::MIN_RESULT_CHARS..=MAX_CHARS),
        }
    }
}
