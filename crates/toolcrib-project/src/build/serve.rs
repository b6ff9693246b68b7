//! The tokens of a gateway.

use toolcrib_config::{Diagnostic, Problems};

use super::{names::Names, secrets::report_undeclared};
use crate::{config::ServeSection, secrets::EnvironmentSecrets, serve::ServeToken};

/// The declared tokens. A secret that is not there is a warning: a gateway says so again when it is
/// asked to serve.
pub(crate) fn build_tokens(
    section: &ServeSection,
    secrets: &EnvironmentSecrets,
    names: &Names,
    problems: &Problems,
) -> Vec<ServeToken> {
    let token = |token: &crate::config::TokenSection| {
        if let Some(personality) = &token.personality {
            names.is_personality(personality, problems);
        }
        let secret = token.secret.as_ref()?;
        if !names.secrets.contains(&secret.value) {
            report_undeclared(secret, names, problems);
            return None;
        }
        if let Err(error) = secrets.get(&secret.value) {
            let help = "until that is changed, `serve --http` does not start";
            problems.push(Diagnostic::warning(&secret.at, error.to_string()).help(help));
        }
        Some(ServeToken {
            secret: secret.value.clone(),
            origin: token.at.to_string().into(),
            principal: token.principal.clone(),
            tenant: token.tenant.clone(),
            personality: token.personality.as_ref().map(|name| name.value.clone()),
        })
    };
    section.tokens.iter().filter_map(token).collect()
}
