//! `[[tool]]` of the kind `web`.

use std::{ops::RangeInclusive, sync::Arc};

use toolcrib_capabilities::http::HostPattern;
use toolcrib_config::{Diagnostic, Located, Table};

use super::{DEFAULT_MAX_PAGE_BYTES, FetchLimits, WebTool};
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    http::table::{read_addresses, read_bytes, read_redirects},
    kind::boxed,
};

pub(crate) const KIND: KindReader = KindReader {
    word: "web",
    keys: &["hosts", "search_url", "search_addresses"],
    form: KindForm::Toolset { needs_name: false, has_untrusted: false },
    read: |table| boxed(DeclaredWeb::read_all(table)),
};

/// The limits on a page, which is in memory.
const PAGE_BYTES: RangeInclusive<u64> = 1024..=16 << 20;

/// A tool of the toolset as read from a table.
#[derive(Debug)]
struct DeclaredWeb {
    tool: WebTool,
    /// The only hosts that may be requested; `None` for all.
    hosts: Option<Vec<HostPattern>>,
    /// The addresses that may be dialed though they are not public.
    addresses: Vec<Located<Arc<str>>>,
}

impl DeclaredWeb {
    /// Without `search_url` there is no tool that searches.
    fn read_all(table: &Table<'_>) -> Vec<Self> {
        table.explain("untrusted", "the results of this kind always are: others write pages");
        table.explain("read_only", "a tool of the kind `web` always is");
        let limits = FetchLimits {
            max_body_bytes: read_bytes(table, PAGE_BYTES, DEFAULT_MAX_PAGE_BYTES),
            max_redirects: read_redirects(table),
        };
        let hosts = hosts(table);
        let fetch = Self {
            tool: WebTool::Fetch(limits),
            hosts: table.has("hosts").then_some(hosts),
            addresses: read_addresses(table, "allow_addresses"),
        };
        let addresses = read_addresses(table, "search_addresses");
        let search = table.text("search_url");
        if let (None, Some(first)) = (&search, addresses.first())
            && !table.has("search_url")
        {
            let message = "`search_addresses` has no effect without `search_url`";
            let help = "add `search_url`, or take this out";
            table.problems().push(Diagnostic::error(&first.at, message).help(help));
        }
        let search = search.map(|url| Self {
            tool: WebTool::Search { url: url.value },
            hosts: None,
            addresses,
        });
        [fetch].into_iter().chain(search).collect()
    }
}

/// The readable hosts; an error is recorded.
fn hosts(table: &Table<'_>) -> Vec<HostPattern> {
    let texts = table.texts("hosts");
    let read = |text: &Located<Arc<str>>| match text.value.parse() {
        Ok(host) => Some(host),
        Err(error) => {
            let error: toolcrib_capabilities::http::InvalidHostPatternError = error;
            table.problems().push(Diagnostic::error(&text.at, error.to_string()));
            None
        }
    };
    texts.iter().filter_map(read).collect()
}

impl DeclaredKind for DeclaredWeb {
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        let url = match &self.tool {
            WebTool::Search { url } => &**url,
            WebTool::Fetch(_) => "URLs that the model writes",
        };
        vec![ExternalAccess::Host {
            url,
            url_field: "/search_url",
            allow_addresses: &self.addresses,
            addresses_key: "search_addresses",
        }]
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.tool.declaration(base, prefix)
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        let client = ports.http_client(&self.addresses);
        Some(match &self.hosts {
            Some(hosts) => self.tool.build(declaration, &client.only(hosts.iter().cloned())),
            None => self.tool.build(declaration, &client),
        })
    }
}
