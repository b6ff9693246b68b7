//! A gateway: its settings and tokens.

mod settings;
mod token_file;

use std::{path::Path, sync::Arc, time::Duration};

use toolcrib_config::{Diagnostic, Located, Problems};

pub(crate) use self::token_file::token_file;
pub use self::{
    settings::{ServeEndpoint, ServeOAuth, ServeSettings, ServeToken, TlsFiles},
    token_file::{TokenError, TokenFile},
};
use super::secrets::report_undeclared;
use crate::{
    bind::{grant::allowed_addresses, names::Names},
    file::{OAuthSection, ServeEndpointSection, ServeSection, TlsSection, TokenSection},
    user::secrets::ProjectSecrets,
};

/// The default time for requests in progress to end when a gateway is stopped: less than service
/// managers wait before they kill.
const DRAIN: Duration = Duration::from_secs(10);

/// The declared tokens. A missing secret is a warning: a gateway reports it again when it starts.
pub(crate) fn build_tokens(
    section: &ServeSection,
    secrets: &ProjectSecrets,
    names: &Names,
    problems: &Problems,
) -> Vec<ServeToken> {
    let token = |token: &TokenSection| {
        if let Some(personality) = &token.personality {
            names.is_personality(personality, problems);
        }
        let secret = token.secret.as_ref()?;
        if !names.secrets.contains(&secret.value) {
            report_undeclared(secret, names, problems);
            return None;
        }
        if let Err(error) = secrets.get(&secret.value) {
            let help = "until this is changed, `serve --http` does not start";
            problems.push(Diagnostic::warning(&secret.at, error.to_string()).help(help));
        }
        Some(ServeToken {
            secret: secret.value.clone(),
            origin: token.at.to_string().into(),
            principal: token.principal.clone(),
            tenant: token.tenant.clone(),
            reveal: token.reveal,
            personality: token.personality.as_ref().map(|name| name.value.clone()),
            unfenced: token.unfenced,
            max_name_chars: token.max_name_chars,
            calls_per_minute: token.calls_per_minute,
            max_concurrent: token.max_concurrent,
        })
    };
    report_nameless(section, names, problems);
    section.tokens.iter().filter_map(token).collect()
}

/// The settings of a gateway besides its tokens. Paths start at the project's folder.
pub(crate) fn build_serving(
    section: &ServeSection,
    root: &Path,
    names: &Names,
    problems: &Problems,
) -> ServeSettings {
    let path = |text: &Located<Arc<str>>| root.join(&*text.value);
    let tls = section.tls.as_ref().and_then(|TlsSection { certificate, key }| {
        Some(TlsFiles { certificate: path(certificate.as_ref()?), key: path(key.as_ref()?) })
    });
    ServeSettings {
        audit: section.audit.as_ref().map(path),
        audit_is_required: section.audit.is_some() && !section.continues_without_audit,
        asks_for_new_tools: !section.accepts_new_tools,
        ready_with_any: section.ready_with_any,
        drain: section.drain.unwrap_or(DRAIN),
        tls,
        oauth: section.oauth.as_ref().and_then(|oauth| build_oauth(oauth, names, problems)),
        endpoints: section
            .endpoints
            .iter()
            .filter_map(|ServeEndpointSection { name, personality }| {
                let personality = personality.as_ref()?;
                names.is_personality(personality, problems);
                let (name, personality) = (Arc::clone(name), Arc::clone(&personality.value));
                Some(ServeEndpoint { name, personality })
            })
            .collect(),
    }
}

fn build_oauth(section: &OAuthSection, names: &Names, problems: &Problems) -> Option<ServeOAuth> {
    if let Some(personality) = &section.personality {
        names.is_personality(personality, problems);
    }
    Some(ServeOAuth {
        resource: section.resource.clone()?,
        issuer: section.issuer.clone()?,
        audience: section.audience.clone(),
        jwks: section.jwks.clone(),
        algorithms: section.algorithms.clone(),
        scopes: section.scopes.clone(),
        principal: section.principal.clone(),
        tenant: section.tenant.clone(),
        personality: section.personality.as_ref().map(|name| name.value.clone()),
        allow_addresses: allowed_addresses(&section.allow_addresses, None, problems),
        reveal: section.reveal,
        unfenced: section.unfenced,
    })
}

/// Two tokens without a principal would be one identity: their bearers would share all per-identity
/// state. Sharing is declared by the same principal.
fn report_nameless(section: &ServeSection, names: &Names, problems: &Problems) {
    let is_known = |token: &TokenSection| {
        token.secret.as_ref().is_some_and(|secret| names.secrets.contains(&secret.value))
    };
    let tokens = section.tokens.iter().filter(|token| is_known(token));
    let mut nameless = tokens.filter(|token| token.principal.is_none());
    while let Some(token) = nameless.next() {
        if let Some(other) = nameless.clone().find(|other| other.tenant == token.tenant) {
            let message = format!(
                "this token and the one at {} have no principal, so their bearers would share \
                 sessions of MCP servers and artifacts",
                other.at
            );
            let help =
                "give each `[[serve.token]]` a `principal`, the same one to share on purpose";
            problems.push(Diagnostic::error(&token.at, message).help(help));
        }
    }
}
