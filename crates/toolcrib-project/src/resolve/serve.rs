//! The tokens of a gateway.

use toolcrib_config::{Diagnostic, Problems};

use super::{names::Names, secrets::report_undeclared};
use crate::{
    config::{ServeSection, TokenSection},
    secrets::EnvironmentSecrets,
    serve::ServeToken,
};

/// The declared tokens. A missing secret is a warning: a gateway reports it again when it starts.
pub(crate) fn build_tokens(
    section: &ServeSection,
    secrets: &EnvironmentSecrets,
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
        })
    };
    report_nameless(section, names, problems);
    section.tokens.iter().filter_map(token).collect()
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
