//! Hubs: from sections to providers. Nobody is asked.

use std::{collections::HashSet, sync::Arc};

use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_core::{CacheOptions, Cached, KeyField, ToolProvider, Ttl, cached};
use toolcrib_engine::OnFailure;
use toolcrib_scope::http::{DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_REDIRECTS, HttpClient};
use toolcrib_tools::{
    http::{HttpToolPart, HttpToolProblem},
    hub::{HubError, HubPart, HubPointers, HubProblem, HubSpec},
};

use super::{
    Names, Remote,
    lint::definition_check,
    names::values,
    secrets::{references, report_undeclared},
    tools::allowed_addresses,
};
use crate::{
    config::{CallSection, HeaderSection, HubSection, Text},
    mcp::Unusable,
    secrets::EnvironmentSecrets,
};

/// What hubs are built with.
pub(crate) struct HubSources<'a> {
    pub(crate) sections: &'a [HubSection],
    pub(crate) secrets: &'a EnvironmentSecrets,
    pub(crate) names: &'a Names,
    pub(crate) problems: &'a Problems,
}

/// A hub of a project, with its cache, which all engines of the project share.
#[derive(Debug, Clone)]
pub struct DeclaredHub {
    name: Arc<str>,
    plugin: Option<Arc<str>>,
    origin: Arc<str>,
    url: Arc<str>,
    ttl: Ttl,
    provider: Arc<Cached>,
    on_failure: OnFailure,
    alternatives: Vec<Arc<str>>,
}

impl DeclaredHub {
    /// What it is called here.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The plugin that it is of.
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// Where it is declared: `toolcrib.toml:12`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Where its catalogue is, with places as they are declared. Without its query, in which a key may
    /// stand.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How long a catalogue of it is fresh.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// What happens to an iteration when it cannot be listed.
    pub fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    /// Its provider, which all engines of the project share. Tools of a plugin's hub carry its id
    /// only in an engine.
    pub fn provider(&self) -> &Arc<Cached> {
        &self.provider
    }

    /// Keeps it from being asked, for a reason that ends a sentence about it. An iteration goes on
    /// without it.
    pub(crate) fn hold(&mut self, reason: &Arc<str>) {
        let unusable = Unusable {
            id: self.provider.id().to_owned(),
            covers: self.provider.covers().map(str::to_owned),
            message: format!("hub `{}` cannot be used: {reason}", self.name),
        };
        self.provider = cached(Arc::new(unusable), CacheOptions::new([], Ttl::forever()));
        self.on_failure = OnFailure::Omit;
    }
}

impl Remote for DeclaredHub {
    fn name(&self) -> &str {
        &self.name
    }

    fn alternatives(&self) -> &[Arc<str>] {
        &self.alternatives
    }

    fn provider(&self) -> Arc<dyn ToolProvider> {
        Arc::clone(&self.provider) as _
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }
}

impl HubSources<'_> {
    /// The hubs, in the order of the file; those that are of no use are recorded and left out.
    pub(crate) fn build(&self) -> Vec<DeclaredHub> {
        self.sections.iter().filter_map(|section| self.hub(section)).collect()
    }

    fn hub(&self, section: &HubSection) -> Option<DeclaredHub> {
        self.report_secrets(section);
        let hub = self.spec(section).map(|(spec, client)| {
            let lint = definition_check(&section.lint_allow, self.problems);
            let (needed, secrets) = (spec.call.secrets(), self.secrets.clone());
            let check = move || needed.iter().try_for_each(|(_, name)| secrets.check(name));
            let built =
                spec.build_checked(&client, Some(Arc::new(self.secrets.clone())), lint, check);
            built.map_err(|errors| {
                for error in errors.errors {
                    self.report(section, &error);
                }
            })
        });
        let options = self.cache_options(section);
        let (Some(Ok(hub)), Some(options)) = (hub, options) else { return None };
        Some(DeclaredHub {
            name: Arc::clone(&section.name.value),
            plugin: self.names.grant.as_ref().map(|grant| Arc::clone(&grant.plugin)),
            origin: section.name.at.to_string().into(),
            url: section.url.as_ref()?.value.split('?').next()?.into(),
            ttl: section.cache.ttl?,
            provider: cached(hub.provider(), options),
            on_failure: section.on_failure,
            alternatives: values(&section.alternatives),
        })
    }

    /// Records secrets that are not declared, and those that cannot be had now, each once.
    fn report_secrets(&self, section: &HubSection) {
        let hub = &section.name.value;
        let of_catalogue = section.headers.iter().map(|header| {
            (header, format!("until that is changed, the hub `{hub}` cannot be listed"))
        });
        let calls = section.call.iter().flat_map(|call| &call.http.headers);
        let of_calls = calls.map(|header| {
            (header, format!("until that is changed, tools of the hub `{hub}` are not offered"))
        });
        let mut told = HashSet::new();
        for (header, help) in of_catalogue.chain(of_calls) {
            for reference in references(&header.value) {
                let name = &reference.value;
                if !self.names.secrets.contains(name) {
                    report_undeclared(&reference, self.names, self.problems);
                } else if let Err(reason) = self.secrets.check(name)
                    && told.insert(Arc::clone(name))
                {
                    let warning = Diagnostic::warning(&reference.at, reason);
                    self.problems.push(warning.help(help.clone()));
                }
            }
        }
    }

    /// `None` where something of it could not be read, which is recorded.
    fn spec(&self, section: &HubSection) -> Option<(HubSpec, HttpClient)> {
        let mut addresses = allowed_addresses(&section.allow_addresses, self.names, self.problems);
        let (url, call) = (section.url.as_ref()?, section.call.as_ref()?);
        let CallSection { http, read_only, destructive, timeout, max_result_chars } = call;
        addresses.extend(allowed_addresses(&http.allow_addresses, self.names, self.problems));
        let call_url = http.url.as_ref()?;
        let mut spec =
            HubSpec::new(&*section.name.value, &*url.value, http.method.clone(), &*call_url.value);
        spec.headers = pairs(&section.headers);
        spec.prefix = section.prefix().to_string();
        spec.order = section.order;
        let pointer = |text: &Option<Text>, default: String| {
            text.as_ref().map_or(default, |text| text.value.to_string())
        };
        let HubPointers { list, name, description, schema, next: _ } = HubPointers::default();
        spec.pointers = HubPointers {
            list: pointer(&section.pointers.list, list),
            name: pointer(&section.pointers.name, name),
            description: pointer(&section.pointers.description, description),
            schema: pointer(&section.pointers.schema, schema),
            next: section.pointers.next.as_ref().map(|text| text.value.to_string()),
        };
        spec.timeout = section.timeout.unwrap_or(spec.timeout);
        let declared = &mut spec.call.declaration;
        declared.timeout = *timeout;
        declared.max_result_chars = *max_result_chars;
        declared.annotations.read_only = read_only.unwrap_or(declared.annotations.read_only);
        declared.annotations.destructive = destructive.unwrap_or(!declared.annotations.read_only);
        spec.call.headers = pairs(&http.headers);
        spec.call.body = http.body.as_ref().map(|body| body.json.clone());
        spec.call.pointer = http.pointer.as_ref().map(|pointer| pointer.value.to_string());
        spec.call.max_body_bytes = http.max_body_bytes.unwrap_or(DEFAULT_MAX_BODY_BYTES);
        spec.call.max_redirects = http.max_redirects.unwrap_or(DEFAULT_MAX_REDIRECTS);
        Some((spec, HttpClient::builder().allow_addresses(addresses).build()))
    }

    /// What the request names has to be in the key: it would not be there to be named.
    fn cache_options(&self, section: &HubSection) -> Option<CacheOptions> {
        let (key, ttl) = (section.cache.key.as_ref()?, section.cache.ttl?);
        let texts = section.url.iter().chain(section.headers.iter().map(|header| &header.value));
        for (field, word) in [(KeyField::Tenant, "tenant"), (KeyField::Principal, "principal")] {
            let place = format!("{{{word}}}");
            let used = texts.clone().find_map(|text| Some((text, text.value.find(&place)?)));
            if let Some((text, at)) = used.filter(|_| !key.contains(&field)) {
                let message = format!(
                    "`{place}` stands in the request, and `key` does not declare it, so it is never \
                     known"
                );
                let help = format!("add \"{word}\" to `key`");
                let at = text.place(Some(at + 1));
                self.problems.push(Diagnostic::error(&at, message).help(help));
            }
        }
        let mut options = CacheOptions::new(key.iter().copied(), ttl);
        if let Some(stale_for) = section.cache.stale_for {
            options = options.stale_for(stale_for);
        }
        if let Some(stale_on_error) = section.cache.stale_on_error {
            options = options.stale_on_error(stale_on_error);
        }
        Some(options)
    }

    fn report(&self, section: &HubSection, error: &HubError) {
        // The name of a secret without `secret:` before it is a slip.
        let help = match &error.problem {
            HubProblem::UnknownPlace { place, .. }
                if self.names.secrets.iter().any(|name| **name == **place) =>
            {
                Some(format!("write `{{secret:{place}}}`, in a header"))
            }
            _ => None,
        };
        let mut problem = Diagnostic::error(&place(section, error), error.to_string());
        if let Some(help) = help {
            problem = problem.help(help);
        }
        self.problems.push(problem);
    }
}

fn pairs(headers: &[HeaderSection]) -> Vec<(String, String)> {
    let pair =
        |header: &HeaderSection| (header.name.value.to_string(), header.value.value.to_string());
    headers.iter().map(pair).collect()
}

/// Where it is wrong: at the very character if that can be told.
fn place(section: &HubSection, error: &HubError) -> Spot {
    let in_text = |text: Option<&Text>| text.map(|text| text.place(error.offset));
    let in_header = |headers: &[HeaderSection], position: usize| {
        let header = headers.get(position)?;
        Some(match error.problem {
            HubProblem::Http(
                HttpToolProblem::HeaderName
                | HttpToolProblem::HeaderOfClient
                | HttpToolProblem::HeaderTwice,
            ) => header.name.at.clone(),
            _ => header.value.place(error.offset),
        })
    };
    let http = section.call.as_ref().map(|call| &call.http);
    let found = match &error.part {
        HubPart::Catalogue(HttpToolPart::Header { position, .. }) => {
            in_header(&section.headers, *position)
        }
        HubPart::Catalogue(_) => in_text(section.url.as_ref()),
        HubPart::Call(HttpToolPart::Header { position, .. }) => {
            http.and_then(|http| in_header(&http.headers, *position))
        }
        HubPart::Call(HttpToolPart::Body(pointer)) => {
            http.and_then(|http| http.body.as_ref()).map(|body| body.place(pointer, error.offset))
        }
        HubPart::Call(HttpToolPart::Pointer) => {
            in_text(http.and_then(|http| http.pointer.as_ref()))
        }
        HubPart::Call(_) => in_text(http.and_then(|http| http.url.as_ref())),
        HubPart::Pointer(which) => in_text(match *which {
            "list" => section.pointers.list.as_ref(),
            "name" => section.pointers.name.as_ref(),
            "description" => section.pointers.description.as_ref(),
            "schema" => section.pointers.schema.as_ref(),
            _ => section.pointers.next.as_ref(),
        }),
        HubPart::Prefix => section.prefix_place().cloned(),
        _ => None,
    };
    found.unwrap_or_else(|| section.name.at.clone())
}
