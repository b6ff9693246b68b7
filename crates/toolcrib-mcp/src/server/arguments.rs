//! The command line of a program, for people and logs.

use toolcrib_core::__internal::may_contain_credential;

use super::{is_secret_header, is_secret_variable};

/// Replaces a value.
const MASK: &str = "…";

/// A command line without what looks like a secret: the value of an option, variable or header with
/// the name of a secret, and an argument with what looks like a credential.
pub(crate) fn shown_command(command: &str, args: &[String]) -> String {
    let mut line = command.to_owned();
    let mut is_secret = false;
    for arg in args {
        line.push(' ');
        match is_secret && !arg.starts_with("--") {
            true => line.push_str(MASK),
            false => line.push_str(&masked(arg).unwrap_or_else(|| arg.clone())),
        }
        is_secret = arg.starts_with('-') && has_secret_name(arg);
    }
    line
}

/// An argument without its secret value; `None` if it has none.
fn masked(arg: &str) -> Option<String> {
    if let Some((name, _)) = arg.split_once(':').filter(|(name, _)| is_secret_header(name.trim())) {
        return Some(format!("{name}: {MASK}"));
    }
    let parts = arg.split_once('=');
    let inside = parts.and_then(|(name, value)| match has_secret_name(name) {
        true => Some(format!("{name}={MASK}")),
        // An option with a variable or a header, such as `--env=API_KEY=…`.
        false => masked(value).map(|value| format!("{name}={value}")),
    });
    inside.or_else(|| may_contain_credential(arg).then(|| MASK.to_owned()))
}

/// Whether the last words of an option, such as `--api-key` or `--apiKey`, or of a variable or a
/// parameter of a URL, are those of a secret.
fn has_secret_name(name: &str) -> bool {
    let mut words = String::with_capacity(name.len());
    let mut was_small = false;
    for letter in name.chars() {
        if was_small && letter.is_uppercase() {
            words.push('_');
        }
        words.push(if letter.is_alphanumeric() { letter } else { '_' });
        was_small = letter.is_lowercase();
    }
    is_secret_variable(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_look_like_secrets_are_not_shown() {
        let key = "a1B2c3D4e5F6g7H8i9J0k1L2";
        for (args, shown) in [
            (vec!["--access-token", key, "--read-only"], "--access-token … --read-only"),
            (vec!["--access-token", "-x"], "--access-token …"),
            (vec!["--use-token", "--verbose"], "--use-token --verbose"),
            (vec!["--apiKey=abc", "--apikey", "abc"], "--apiKey=… --apikey …"),
            (vec!["run", "-e", "API_KEY=abc", "-e", "TZ=UTC"], "run -e API_KEY=… -e TZ=UTC"),
            (vec!["-eGITHUB_TOKEN=a", "--env=A_SECRET=a=b"], "-eGITHUB_TOKEN=… --env=A_SECRET=…"),
            (vec!["-e", "API_KEY", "image"], "-e API_KEY image"),
            (vec!["--header", "Authorization: Bearer a="], "--header Authorization: …"),
            (vec!["--header=X-Api-Key:a"], "--header=X-Api-Key: …"),
            (vec!["https://a.example/mcp?api_key=1&b=2"], "https://a.example/mcp?api_key=…"),
            (vec!["postgres://ann:hunter2@db/shop"], "…"),
            (vec!["-y", "@a/b@1.2", "/srv/monkey=1", "a:b"], "-y @a/b@1.2 /srv/monkey=1 a:b"),
        ] {
            let args: Vec<_> = args.into_iter().map(str::to_owned).collect();
            assert_eq!(shown_command("npx", &args), format!("npx {shown}"));
        }
        for prefix in ["sbp_", "ghp_", "sk-", "hf_"] {
            assert_eq!(shown_command("x", &[format!("{prefix}{key}")]), "x …");
        }
    }
}
