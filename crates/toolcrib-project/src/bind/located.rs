//! Texts of a file, with their positions.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, suggest};

/// Texts without positions.
pub(crate) fn values(texts: &[Located<Arc<str>>]) -> Vec<Arc<str>> {
    texts.iter().map(|text| Arc::clone(&text.value)).collect()
}

/// Whether a name is declared; if not, that is recorded. `kind` is the singular noun for the
/// message.
pub(crate) fn is_declared(
    name: &Located<Arc<str>>,
    kind: &str,
    declared: &[Arc<str>],
    problems: &Problems,
) -> bool {
    let known = declared.contains(&name.value);
    if !known {
        let help = suggest::help(&name.value, &format!("{kind}s"), declared.iter().map(|n| &**n));
        problems.push(
            Diagnostic::error(&name.at, format!("unknown {kind} `{}`", name.value)).help(help),
        );
    }
    known
}
