//! Environment variables that decide which code a program runs.

use toolcrib_mcp::server::is_secret_variable;

/// Prefixes of their names.
const PREFIXES: [&str; 24] = [
    "LD_",
    "DYLD_",
    "NODE_",
    "PYTHON",
    "PERL",
    "RUBY",
    "BASH_",
    "GIT_",
    "NPM_CONFIG_",
    "PIP_",
    "UV_",
    "GO",
    "CARGO_",
    "RUSTC",
    "DENO_",
    "BUN_",
    "JAVA",
    "_JAVA",
    "JDK_",
    "DOTNET_",
    "LUA",
    "PHP",
    "GCONV_",
    "DOCKER_",
];

/// Parts of their names.
const PARTS: [&str; 8] =
    ["PATH", "PRELOAD", "OPTIONS", "OPTS", "STARTUP", "WRAPPER", "REGISTRY", "INDEX_URL"];

/// Full names of others.
const NAMES: [&str; 8] =
    ["ENV", "SHELL", "EDITOR", "PAGER", "IFS", "ZDOTDIR", "SSH_ASKPASS", "HOME"];

/// The variables that a program receives, by name; with the value if it decides which code runs,
/// and the name is not that of a secret.
pub(super) fn shown<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let shown = |(name, value): (&str, &str)| match decides(name) && !is_secret_variable(name) {
        true => format!("{name}={value}"),
        false => name.to_owned(),
    };
    pairs.into_iter().map(shown).collect()
}

fn decides(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.contains(&&*name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || PARTS.iter().any(|part| name.contains(part))
}
