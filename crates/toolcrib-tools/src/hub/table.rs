//! `[hub.NAME]`, without the keys on sources that a project reads.

use std::{sync::Arc, time::Duration};

use toolcrib_capabilities::http::HttpClient;
use toolcrib_config::{Located, Table};
use toolcrib_core::{
    CacheOptions, DefinitionCheck, IntoAvailability, KeyField, ListOrder, Secrets, ToolBuilder, Ttl,
};

use super::{HttpHub, HubPointers, HubSpec};
use crate::{
    DeclaredKind, ExternalAccess, FieldError, MAX_RESULT_CHARS, Source,
    findings::{Field, Findings},
    http::{
        DeclaredHttp,
        check::header_field,
        table::{read_addresses, read_headers, read_text},
    },
};

/// The word for a catalog that is never fetched again.
const FOREVER: &str = "forever";

const KEYS: [(&str, KeyField); 6] = [
    ("tenant", KeyField::Tenant),
    ("principal", KeyField::Principal),
    ("conversation", KeyField::Conversation),
    ("active_skill", KeyField::ActiveSkill),
    ("active_skills", KeyField::ActiveSkills),
    ("iteration", KeyField::Iteration),
];

/// A hub as read from a table.
#[derive(Debug, Clone)]
pub struct HubTable {
    spec: HubSpec,
    allow_addresses: Vec<Located<Arc<str>>>,
    call: Option<DeclaredHttp>,
    cache: CacheTable,
}

/// The cache key and TTL. `None` for a key or TTL that is missing or
/// unreadable, which is recorded.
#[derive(Debug, Clone)]
struct CacheTable {
    key: Option<Vec<KeyField>>,
    ttl: Option<Ttl>,
    stale_for: Option<Duration>,
    stale_on_error: Option<Duration>,
}

/// The order in which a source's tools are offered.
pub fn read_order(table: &Table<'_>) -> ListOrder {
    let words = [("by_name", ListOrder::ByName), ("as_given", ListOrder::AsGiven)];
    let word = table.value("order").and_then(|value| value.word(&words));
    word.map(|word| word.value).unwrap_or_default()
}

impl HubTable {
    /// Reads the keys of a hub; problems are recorded. `others` reads the keys of the project, at
    /// their position in help texts.
    pub fn read<T>(
        name: &str,
        table: &Table<'_>,
        others: impl FnOnce(&Table<'_>) -> T,
    ) -> (Self, T) {
        let headers = table.value("headers").map(|headers| read_headers(&headers).0);
        let url = table
            .required("url", "\"https://registry.example/tools\"")
            .and_then(|url| url.text())
            .map(|url| url.value.to_string());
        let pointer = |key, default| read_text(table, key).unwrap_or(default);
        let default = HubPointers::default();
        let pointers = HubPointers {
            list: pointer("list", default.list),
            name: pointer("name", default.name),
            description: pointer("description", default.description),
            schema: pointer("schema", default.schema),
            next: read_text(table, "next"),
        };
        let prefix = table.text("prefix").map(|prefix| prefix.value.to_string());
        let order = read_order(table);
        let cache = CacheTable::read(table);
        let timeout = table.duration("timeout");
        let others = others(table);
        let allow_addresses = read_addresses(table, "allow_addresses");
        let call = table.required(
            "call",
            "{ method = \"POST\", url = \"https://registry.example/run/{tool}\", body = \
             \"{arguments}\" }",
        );
        let call = call.and_then(|call| call.table("`call`", read_call));
        let method = call.as_ref().map(|call| call.spec.method.clone()).unwrap_or_default();
        let blank = HubSpec::new(name, url.unwrap_or_default(), method, "");
        let spec = HubSpec {
            headers: headers.unwrap_or_default(),
            pointers,
            call: call.as_ref().map_or(blank.call, |call| call.spec.clone()),
            prefix: prefix.unwrap_or_else(|| format!("{name}_")),
            order,
            timeout: timeout.unwrap_or(blank.timeout),
            source: Source::of(table),
            ..blank
        };
        (Self { spec, allow_addresses, call, cache }, others)
    }

    /// The hub as declared.
    pub fn spec(&self) -> &HubSpec {
        &self.spec
    }

    /// How long a catalog is fresh; `None` where that is unreadable.
    pub fn ttl(&self) -> Option<Ttl> {
        self.cache.ttl
    }

    /// The URL of calls; `None` where it is missing or unreadable.
    pub fn call_url(&self) -> Option<&str> {
        Some(&*self.call.as_ref()?.spec.url).filter(|url| !url.is_empty())
    }

    /// As [`HubSpec::build_checked`], with the options of the cache. `known` are the names of
    /// declared secrets.
    ///
    /// # Errors
    /// All errors in it that were not recorded when it was read.
    pub fn build<A: IntoAvailability>(
        &self,
        client: &HttpClient,
        known: &[Arc<str>],
        secrets: Arc<dyn Secrets>,
        definition_check: Option<DefinitionCheck>,
        check: impl Fn() -> A + Send + Sync + 'static,
    ) -> Result<(HttpHub, CacheOptions), Vec<FieldError>> {
        let (options, mut errors) = self.cache_options();
        if self.spec.url.is_empty() || self.call_url().is_none() {
            return Err(errors);
        }
        let mut spec = self.spec.clone();
        spec.source = spec.source.with_secrets(known);
        let source = &mut spec.call.declaration.source;
        *source = source.clone().with_secrets(known);
        match (spec.build_checked(client, Some(secrets), definition_check, check), options) {
            (Ok(hub), Some(options)) if errors.is_empty() => return Ok((hub, options)),
            (Ok(_), _) => {}
            (Err(found), _) => errors.extend(found.errors),
        }
        Err(errors)
    }

    /// Everything outside the process that it can reach, as of a
    /// [`DeclaredKind`](crate::DeclaredKind).
    pub fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        let Self { spec, allow_addresses, call, .. } = self;
        let calls = call.iter().flat_map(DeclaredKind::external_access);
        let catalog = ExternalAccess::Host {
            url: &spec.url,
            url_field: "/url",
            allow_addresses,
            addresses_key: "allow_addresses",
        };
        std::iter::once(catalog).chain(calls).collect()
    }

    /// The texts that may refer to secrets, each with its field as a JSON pointer into the table.
    pub fn secret_texts(&self) -> Vec<(String, &str)> {
        let headers = self.spec.headers.iter();
        let of_catalog =
            headers.map(|(name, value)| (header_field(name).pointer(), value.as_str()));
        let of_calls = self.call.iter().flat_map(DeclaredKind::secret_texts);
        of_catalog.chain(of_calls.map(|(field, text)| (format!("/call{field}"), text))).collect()
    }

    /// The cache's options, and the errors in them: a field that the request names has to be in the
    /// key, since the request does not know it otherwise.
    fn cache_options(&self) -> (Option<CacheOptions>, Vec<FieldError>) {
        let CacheTable { key: Some(key), ttl: Some(ttl), stale_for, stale_on_error } = &self.cache
        else {
            return (None, Vec::new());
        };
        let schema = serde_json::Value::Null;
        let mut found = Findings::new(&self.spec.source, &schema);
        let headers = self.spec.headers.iter().map(|(name, value)| (header_field(name), value));
        let texts: Vec<_> =
            std::iter::once((Field::new("", "/url"), &self.spec.url)).chain(headers).collect();
        for (field, word) in [(KeyField::Tenant, "tenant"), (KeyField::Principal, "principal")] {
            let place = format!("{{{word}}}");
            let used = texts.iter().find_map(|(field, text)| Some((field, text.find(&place)?)));
            if let Some((text, at)) = used.filter(|_| !key.contains(&field)) {
                let message = format!(
                    "`{place}` is in the request, and `key` does not declare it, so it is \
                     never known"
                );
                let help = format!("add \"{word}\" to `key`");
                found.wrong_with(&text.unlabeled(), Some(at + 1), message, Some(help));
            }
        }
        let mut options = CacheOptions::new(key.iter().copied(), *ttl);
        if let Some(stale_for) = stale_for {
            options = options.stale_for(*stale_for);
        }
        if let Some(stale_on_error) = stale_on_error {
            options = options.stale_on_error(*stale_on_error);
        }
        (Some(options), found.finish().errors)
    }
}

impl CacheTable {
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

fn read_call(table: &Table<'_>) -> DeclaredHttp {
    let mut call = DeclaredHttp::read(table);
    let read_only = table.boolean("read_only").unwrap_or_else(|| call.is_read_only());
    let destructive = table.boolean("destructive").unwrap_or(!read_only);
    let declaration = &mut call.spec.declaration;
    declaration.annotations.read_only = read_only;
    declaration.annotations.destructive = destructive;
    declaration.timeout = table.duration("timeout");
    declaration.max_result_chars =
        table.integer("max_result_chars", ToolBuilder::MIN_RESULT_CHARS..=MAX_RESULT_CHARS);
    declaration.source = Source::of(table);
    call
}
