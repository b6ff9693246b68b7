//! `[[tool]]` of the kind `http`, and `call` of a hub.

use std::{ops::RangeInclusive, sync::Arc};

use toolcrib_capabilities::http::{DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_REDIRECTS};
use toolcrib_config::{Located, Table, Value};

use super::{HttpToolSpec, Method, check::header_field};
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::boxed,
};

pub(crate) const KIND: KindReader = KindReader {
    word: "http",
    keys: &[
        "method",
        "url",
        "headers",
        "idempotency_header",
        "body",
        "pointer",
        "max_body_bytes",
        "max_redirects",
        "allow_addresses",
    ],
    form: KindForm::Tool,
    read: |table| boxed([DeclaredHttp::read(table)]),
};

const METHODS: [(&str, &Method); 6] = [
    ("GET", &Method::GET),
    ("HEAD", &Method::HEAD),
    ("POST", &Method::POST),
    ("PUT", &Method::PUT),
    ("PATCH", &Method::PATCH),
    ("DELETE", &Method::DELETE),
];

/// The limits on a response body, which is in memory.
pub(crate) const BODY_BYTES: RangeInclusive<u64> = 1..=256 << 20;

/// An HTTP tool as read from a table.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredHttp {
    /// All but the declaration.
    pub(crate) spec: HttpToolSpec,
    pub(crate) allow_addresses: Vec<Located<Arc<str>>>,
    /// Whether a part could not be read, which makes the use of parameters unknown.
    is_partial: bool,
}

impl DeclaredHttp {
    /// Reads the keys of this kind; problems are recorded.
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let method = table.value("method").and_then(|method| method.word(&METHODS));
        let method = method.map_or(Method::GET, |method| method.value.clone());
        let url = table
            .required("url", "\"https://api.example.com/v1/{city}?days={days}\"")
            .map(|url| url.text());
        let has_url = matches!(url, Some(Some(_)));
        let url = url.flatten().map(|url| url.value.to_string()).unwrap_or_default();
        let blank = HttpToolSpec::new(Declaration::new("", ""), method, url);
        let headers = table.value("headers").map(|headers| read_headers(&headers));
        let (headers, has_all_headers) = headers.unwrap_or((Vec::new(), true));
        let body = table.value("body").map(|body| body.json());
        Self {
            is_partial: !has_url || !has_all_headers || matches!(body, Some(None)),
            spec: HttpToolSpec {
                headers,
                idempotency_header: read_text(table, "idempotency_header"),
                body: body.flatten(),
                pointer: read_text(table, "pointer"),
                max_body_bytes: read_bytes(table, BODY_BYTES, DEFAULT_MAX_BODY_BYTES),
                max_redirects: read_redirects(table),
                ..blank
            },
            allow_addresses: read_addresses(table, "allow_addresses"),
        }
    }
}

impl DeclaredKind for DeclaredHttp {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        let Self { spec, allow_addresses, .. } = self;
        vec![ExternalAccess::Host {
            url: &spec.url,
            url_field: "/url",
            allow_addresses,
            addresses_key: "allow_addresses",
        }]
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        let headers = self.spec.headers.iter();
        headers.map(|(name, value)| (header_field(name).pointer(), &**value)).collect()
    }

    fn is_read_only(&self) -> bool {
        matches!(self.spec.method, Method::GET | Method::HEAD)
    }

    fn build(&self, mut declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        declaration.source.mark_partial_if(self.is_partial);
        let client = ports.http_client(&self.allow_addresses);
        Some(HttpToolSpec { declaration, ..self.spec.clone() }.build(&client))
    }
}

/// A text, which may be empty.
pub(crate) fn read_text(table: &Table<'_>, key: &'static str) -> Option<String> {
    table.value(key)?.any_text().map(|text| text.value.to_string())
}

/// The most bytes of a response body.
pub(crate) fn read_bytes(table: &Table<'_>, range: RangeInclusive<u64>, default: usize) -> usize {
    let bytes = table.size("max_body_bytes", range);
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(default)
}

/// The most redirects that are followed.
pub(crate) fn read_redirects(table: &Table<'_>) -> usize {
    table.integer("max_redirects", 0..=20).unwrap_or(DEFAULT_MAX_REDIRECTS)
}

pub(crate) fn read_addresses(table: &Table<'_>, key: &'static str) -> Vec<Located<Arc<str>>> {
    let addresses = table.value(key).and_then(|addresses| addresses.items());
    addresses.iter().flatten().filter_map(Value::text).collect()
}

/// The readable headers, and whether all are readable.
pub(crate) fn read_headers(value: &Value<'_>) -> (Vec<(String, String)>, bool) {
    let Some(headers) = value.entries("`headers`") else {
        return (Vec::new(), false);
    };
    let all: Vec<_> = headers
        .rest()
        .map(|(name, value)| Some((name.value.to_string(), value.any_text()?.value.to_string())))
        .collect();
    let has_all = all.iter().all(Option::is_some);
    (all.into_iter().flatten().collect(), has_all)
}
