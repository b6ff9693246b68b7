//! Hubs: from sections to providers. Sends no request.

use std::{collections::HashSet, sync::Arc};

use toolcrib_capabilities::http::HttpClient;
use toolcrib_config::{Diagnostic, Problems};
use toolcrib_core::{CacheOptions, Cached, ToolProvider, Ttl, cached};
use toolcrib_engine::{OnFailure, Redactor};
use toolcrib_tools::{ExternalAccess, FieldError};

use super::{
    lint::definition_check,
    mcp::server::UnusableProvider,
    secrets::{located, report_undeclared},
};
use crate::{
    bind::{alternatives::Remote, grant::allowed_addresses, located::values, names::Names},
    file::HubSection,
    user::{lock::Lock, secrets::ProjectSecrets},
};

/// The inputs of hubs.
pub(crate) struct HubSources<'a> {
    pub(crate) sections: &'a [HubSection],
    pub(crate) secrets: &'a ProjectSecrets,
    pub(crate) names: &'a Names,
    pub(crate) lock: &'a Lock,
    pub(crate) redactor: &'a Redactor,
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
    /// Its name in the project.
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

    /// The URL of its catalog, with places as declared, without the query, which may contain a key.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How long a catalog of it is fresh.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// The effect on an iteration if it cannot be listed.
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
        let unusable = UnusableProvider {
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
        let secrets = self.check_secrets(section);
        let hub = &section.hub;
        let mut allowed = Vec::new();
        for access in hub.external_access() {
            if let ExternalAccess::Host { allow_addresses, .. } = access {
                allowed.extend(allowed_addresses(
                    allow_addresses,
                    self.names.grant.as_deref(),
                    self.problems,
                ));
            }
        }
        let client = HttpClient::builder().allow_addresses(allowed).build();
        let mut lint = definition_check(&section.lint_allow, self.problems);
        lint = Some(lint.unwrap_or_default().with_redaction(Arc::new(self.redactor.clone())));
        if section.pin {
            lint = Some(lint.unwrap_or_default().with_pins(Arc::new(self.lock.clone())));
        }
        let environment = self.secrets.clone();
        let check = move || secrets.iter().try_for_each(|name| environment.check(name));
        let own = Arc::new(self.secrets.clone());
        let record = |errors: Vec<FieldError>| {
            for FieldError { at, message, help, .. } in errors {
                let at = at.as_ref().unwrap_or(&section.name.at);
                self.problems.push(Diagnostic::error(at, message).help(help));
            }
        };
        let built = hub.build(&client, &self.names.secrets, own, lint, check);
        let (built, options) = built.map_err(record).ok()?;
        Some(DeclaredHub {
            name: Arc::clone(&section.name.value),
            plugin: self.names.grant.as_ref().map(|grant| Arc::clone(&grant.plugin)),
            origin: section.name.at.to_string().into(),
            url: hub.spec().url.split('?').next()?.into(),
            ttl: hub.ttl()?,
            provider: cached(built.provider(), options),
            on_failure: if self.lock.is_locked() { OnFailure::Fail } else { section.on_failure },
            alternatives: values(&section.alternatives),
        })
    }

    /// Records secrets that are not declared, and those that cannot be read now, each once. The
    /// secrets of calls.
    fn check_secrets(&self, section: &HubSection) -> Vec<Arc<str>> {
        let (hub, source) = (&section.name.value, &section.hub.spec().source);
        let (mut told, mut of_calls) = (HashSet::new(), Vec::new());
        for (field, text) in section.hub.secret_texts() {
            let is_call = field.starts_with("/call/");
            let help = match is_call {
                true => format!("until that is changed, tools of the hub `{hub}` are not offered"),
                false => format!("until that is changed, the hub `{hub}` cannot be listed"),
            };
            for reference in located(&field, text, source, &section.name.at) {
                let name = &reference.value;
                if !self.names.secrets.contains(name) {
                    report_undeclared(&reference, self.names, self.problems);
                } else if let Err(reason) = self.secrets.check(name)
                    && told.insert(Arc::clone(name))
                {
                    let warning = Diagnostic::warning(&reference.at, reason);
                    self.problems.push(warning.help(help.clone()));
                }
                of_calls.extend(is_call.then(|| Arc::clone(name)));
            }
        }
        of_calls
    }
}
