//! `[serve]`: a gateway, its endpoints, and the identities that may use it over HTTP.

use std::{
    num::NonZeroU32,
    ops::{RangeFrom, RangeInclusive},
    sync::Arc,
    time::Duration,
};

use toolcrib_config::{Diagnostic, Located, Spot, Table, Value};
use toolcrib_engine::Reveal;

use super::{remote::read_unfenced, secrets::secret_reference};

/// The permitted limits of calls.
const CALLS: RangeFrom<u32> = 1..;

/// `[serve]`.
#[derive(Debug, Default)]
pub(crate) struct ServeSection {
    pub(crate) tokens: Vec<TokenSection>,
    /// The file of the audit log.
    pub(crate) audit: Option<Located<Arc<str>>>,
    /// Whether calls are made while it cannot be written.
    pub(crate) continues_without_audit: bool,
    /// Whether new tools of a pinned server are offered unasked.
    pub(crate) accepts_new_tools: bool,
    /// Whether one usable server is enough to be ready.
    pub(crate) ready_with_any: bool,
    pub(crate) drain: Option<Duration>,
    pub(crate) tls: Option<TlsSection>,
    pub(crate) oauth: Option<OAuthSection>,
    pub(crate) endpoints: Vec<ServeEndpointSection>,
}

/// `[serve.endpoint.NAME]`: an endpoint `/mcp/NAME` with the menu of a personality.
#[derive(Debug)]
pub(crate) struct ServeEndpointSection {
    pub(crate) name: Arc<str>,
    pub(crate) personality: Option<Located<Arc<str>>>,
}

/// The limit of characters of an endpoint's name, and the name that the paths of skills have.
const LONGEST_ENDPOINT: usize = 64;
const OF_SKILLS: &str = "skill";

/// `[serve.oauth]`: the tokens of an authorization server.
#[derive(Debug)]
pub(crate) struct OAuthSection {
    pub(crate) at: Spot,
    /// `None` if invalid, which is recorded.
    pub(crate) resource: Option<Arc<str>>,
    pub(crate) issuer: Option<Arc<str>>,
    pub(crate) audience: Option<Arc<str>>,
    pub(crate) jwks: Option<Arc<str>>,
    pub(crate) algorithms: Option<Vec<&'static str>>,
    pub(crate) scopes: Vec<Arc<str>>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) personality: Option<Located<Arc<str>>>,
    pub(crate) allow_addresses: Vec<Located<Arc<str>>>,
    pub(crate) reveal: Option<Reveal>,
    pub(crate) unfenced: bool,
}

/// The algorithms of signatures that a gateway can verify with a public key.
const ALGORITHMS: [(&str, &str); 5] = [
    ("RS256", "RS256"),
    ("PS256", "PS256"),
    ("ES256", "ES256"),
    ("ES384", "ES384"),
    ("EdDSA", "EdDSA"),
];

/// `[serve.tls]`: files with PEM.
#[derive(Debug)]
pub(crate) struct TlsSection {
    /// `None` if invalid, which is recorded.
    pub(crate) certificate: Option<Located<Arc<str>>>,
    pub(crate) key: Option<Located<Arc<str>>>,
}

/// The permitted lengths of tool names: room for a digest, and the limit of model APIs.
const NAME_CHARS: RangeInclusive<usize> = 20..=64;

/// `[[serve.token]]`.
#[derive(Debug)]
pub(crate) struct TokenSection {
    pub(crate) at: Spot,
    /// The secret that contains the token; `None` if invalid, which is recorded.
    pub(crate) secret: Option<Located<Arc<str>>>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) personality: Option<Located<Arc<str>>>,
    pub(crate) reveal: Option<Reveal>,
    pub(crate) unfenced: bool,
    pub(crate) max_name_chars: Option<usize>,
    pub(crate) calls_per_minute: Option<NonZeroU32>,
    pub(crate) max_concurrent: Option<NonZeroU32>,
}

impl ServeSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let tokens = table.value("token").map(|tokens| {
            tokens.tables("`[[serve.token]]`", |table| TokenSection {
                at: table.at().clone(),
                secret: table
                    .required("secret", "\"secret:NAME\"")
                    .and_then(|value| secret_reference(&value, "secret")),
                principal: table.text("principal").map(|text| text.value),
                tenant: table.text("tenant").map(|text| text.value),
                personality: table.text("personality"),
                reveal: super::tool_search::reveal(table),
                unfenced: read_unfenced(table),
                max_name_chars: table.integer("max_name_chars", NAME_CHARS),
                calls_per_minute: table
                    .integer("calls_per_minute", CALLS)
                    .and_then(NonZeroU32::new),
                max_concurrent: table.integer("max_concurrent", CALLS).and_then(NonZeroU32::new),
            })
        });
        let is = |key, words: &[(&'static str, bool)]| {
            let word = table.value(key).and_then(|value| value.word(words));
            word.is_some_and(|word| word.value)
        };
        let file = |table: &Table<'_>, key| {
            table.required(key, "\"FILE.pem\"").and_then(|value| value.text())
        };
        Self {
            tokens: tokens.unwrap_or_default(),
            audit: table.text("audit"),
            continues_without_audit: is("audit_on_error", &[("refuse", false), ("continue", true)]),
            accepts_new_tools: is("new_tools", &[("ask", false), ("accept", true)]),
            ready_with_any: is("ready", &[("all", false), ("any", true)]),
            drain: table.age("drain"),
            tls: table.value("tls").and_then(|value| {
                value.table("`[serve.tls]`", |table| TlsSection {
                    certificate: file(table, "certificate"),
                    key: file(table, "key"),
                })
            }),
            oauth: table
                .value("oauth")
                .and_then(|value| value.table("`[serve.oauth]`", OAuthSection::read)),
            endpoints: ServeEndpointSection::read_all(table),
        }
    }
}

impl ServeEndpointSection {
    fn read_all(table: &Table<'_>) -> Vec<Self> {
        let endpoints = table.value("endpoint");
        let endpoints = endpoints.and_then(|value| value.entries("`[serve.endpoint]`"));
        let Some(endpoints) = endpoints else { return Vec::new() };
        endpoints.rest().filter_map(|(name, value)| Self::read(&name, &value)).collect()
    }

    fn read(name: &Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_path = name.value.chars().all(is_plain) && &*name.value != OF_SKILLS;
        if !is_path || name.value.is_empty() || name.value.len() > LONGEST_ENDPOINT {
            let message =
                format!("`{}` cannot be the name of an endpoint", name.value.escape_debug());
            let help = format!(
                "use 1 to {LONGEST_ENDPOINT} of a-z A-Z 0-9 _ -; `{OF_SKILLS}` is the path of skills"
            );
            value.problems().push(Diagnostic::error(&name.at, message).help(help));
        }
        value.table(&format!("`[serve.endpoint.{}]`", name.value), |table| Self {
            name: Arc::clone(&name.value),
            personality: table.required("personality", "\"NAME\"").and_then(|name| name.text()),
        })
    }
}

impl OAuthSection {
    fn read(table: &Table<'_>) -> Self {
        let text = |key| table.text(key).map(|text| text.value);
        let required =
            |key, example| table.required(key, example).and_then(|value| Some(value.text()?.value));
        let algorithms = table.value("algorithms").and_then(|list| list.items());
        Self {
            at: table.at().clone(),
            resource: required("resource", "\"https://tools.example/mcp\""),
            issuer: required("issuer", "\"https://login.example\""),
            audience: text("audience"),
            jwks: text("jwks"),
            algorithms: algorithms.map(|list| {
                let words = list.iter().filter_map(|one| one.word(&ALGORITHMS));
                words.map(|word| word.value).collect()
            }),
            scopes: table.texts("scopes").into_iter().map(|scope| scope.value).collect(),
            principal: text("principal"),
            tenant: text("tenant"),
            personality: table.text("personality"),
            allow_addresses: table.texts("allow_addresses"),
            reveal: super::tool_search::reveal(table),
            unfenced: read_unfenced(table),
        }
    }
}
