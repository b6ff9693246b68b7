//! `${VAR}` in declarations of a server.

/// A text with its variables expanded.
#[derive(Clone, PartialEq, Eq)]
pub struct ExpandedText {
    /// The text with values in place of variables.
    pub text: String,
    /// The values of variables with names of secrets (see [`is_secret_variable`]).
    pub secrets: Vec<String>,
}

/// A variable that cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct InvalidVariableError {
    /// Its offset in the text, in bytes.
    pub offset: usize,
    /// The problem.
    pub problem: VariableErrorKind,
}

/// The problem of a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariableErrorKind {
    /// It is not in the environment and has no default.
    #[error(
        "the environment variable `{name}` is not set; set it, or write `${{{name}:-DEFAULT}}`"
    )]
    NotSet {
        /// The variable.
        name: String,
    },
    /// Its `}` is missing.
    #[error("`${{` is not closed; write `${{VAR}}`, or `$${{` for a literal `${{`")]
    NotClosed,
    /// The name in the braces is a variable of an editor, which only that editor knows.
    #[error(
        "`${{{name}}}` is known to an editor only; write its value, or `${{VAR}}` with an \
         environment variable"
    )]
    OfAnEditor {
        /// The name in the braces.
        name: String,
    },
    /// The text in the braces is not a valid name of a variable.
    #[error(
        "{name:?} in `${{…}}` is not a valid name of an environment variable; write `${{VAR}}`, \
         or `$${{` for a literal `${{`"
    )]
    NoName {
        /// The text in the braces.
        name: String,
    },
}

/// The minimum length of a value that counts as a secret because of its name, in characters.
const SHORTEST: usize = 8;

/// Variables that editors define, in addition to all with a colon: they have a value only if
/// `variables` knows them.
const OF_EDITORS: [&str; 6] = [
    "workspaceFolder",
    "workspaceFolderBasename",
    "workspaceRoot",
    "userHome",
    "cwd",
    "pathSeparator",
];

/// Expands `${VAR}`, `${env:VAR}` and `${VAR:-default}` to the values of environment variables. The
/// default is used if the variable is not set or empty.
///
/// Nothing else is expanded: values are not expanded again, no shell is involved, a `$` without a
/// brace is a `$`, and `$${` is `${`.
///
/// # Errors
/// [`InvalidVariableError`] for the first variable that cannot be expanded.
pub fn expand(
    text: &str,
    variables: impl Fn(&str) -> Option<String>,
) -> Result<ExpandedText, InvalidVariableError> {
    let mut expanded =
        ExpandedText { text: String::with_capacity(text.len()), secrets: Vec::new() };
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let offset = text.len() - rest.len() + before.len();
        if let Some(before) = before.strip_suffix('$') {
            expanded.text.push_str(before);
            expanded.text.push_str("${");
            rest = after;
            continue;
        }
        expanded.text.push_str(before);
        let invalid = |problem| InvalidVariableError { offset, problem };
        let (inside, after) =
            after.split_once('}').ok_or_else(|| invalid(VariableErrorKind::NotClosed))?;
        let (name, value) = value(inside, &variables).map_err(invalid)?;
        if is_secret_variable(name) {
            expanded.secrets.extend(secrets_in(&value));
        }
        expanded.text.push_str(&value);
        rest = after;
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

/// The variable named in braces, and its value.
fn value<'a>(
    inside: &'a str,
    variables: &impl Fn(&str) -> Option<String>,
) -> Result<(&'a str, String), VariableErrorKind> {
    let (written, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = written.strip_prefix("env:").unwrap_or(written);
    if OF_EDITORS.contains(&name) {
        let value = variables(name);
        let unknown = || VariableErrorKind::OfAnEditor { name: name.to_owned() };
        return value.map(|value| (name, value)).ok_or_else(unknown);
    }
    if name.contains(':') && is_name(name.split(':').next()) {
        return Err(VariableErrorKind::OfAnEditor { name: name.to_owned() });
    }
    if !is_name(Some(name)) {
        return Err(VariableErrorKind::NoName { name: name.to_owned() });
    }
    let value = variables(name).filter(|value| default.is_none() || !value.is_empty());
    match value.or_else(|| default.map(str::to_owned)) {
        Some(value) => Ok((name, value)),
        None => Err(VariableErrorKind::NotSet { name: name.to_owned() }),
    }
}

fn is_name(name: Option<&str>) -> bool {
    let mut bytes = name.unwrap_or_default().bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether an environment variable has the name of a secret: it ends in `_KEY`, `_APIKEY`, `_TOKEN`,
/// `_SECRET` or `_PASSWORD`, or is such a word alone, ignoring case.
pub fn is_secret_variable(name: &str) -> bool {
    is_secret(name, '_')
}

/// Whether a header has the name of a secret: `Authorization`, `Proxy-Authorization`, `Cookie`, or
/// one that ends in `-Key`, `-Apikey`, `-Token`, `-Secret` or `-Password`, or is such a word alone,
/// ignoring case.
pub fn is_secret_header(name: &str) -> bool {
    let known = ["authorization", "proxy-authorization", "cookie"];
    known.iter().any(|known| name.eq_ignore_ascii_case(known)) || is_secret(name, '-')
}

fn is_secret(name: &str, between: char) -> bool {
    let last = name.rsplit(between).next().unwrap_or_default();
    ["key", "apikey", "token", "secret", "password"]
        .iter()
        .any(|word| last.eq_ignore_ascii_case(word))
}

/// The secret parts of a value with the name of a secret: all of it, and the part after a scheme
/// such as `Bearer`, each if it has 8 characters or more. A shorter one, such as `none`, occurs in
/// too many other texts.
pub fn secrets_in(value: &str) -> Vec<String> {
    let credentials = value.trim().split_once(' ').map(|(_, credentials)| credentials.trim());
    let parts = [Some(value), credentials].into_iter().flatten();
    parts.filter(|part| part.trim().chars().count() >= SHORTEST).map(str::to_owned).collect()
}

// Without the texts: they may contain secrets.
toolcrib_core::__internal::debug_fields!(ExpandedText);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variables(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/ü".into()),
            "EMPTY" => Some(String::new()),
            "GIT_TOKEN" => Some("${HOME}x".into()),
            "SHORT_KEY" => Some("none".into()),
            _ => None,
        }
    }

    fn expanded(text: &str) -> Result<(String, Vec<String>), (usize, VariableErrorKind)> {
        expand(text, variables)
            .map(|done| (done.text, done.secrets))
            .map_err(|error| (error.offset, error.problem))
    }

    #[test]
    fn values_and_defaults_are_put_in_once() {
        for (text, value) in [
            ("", ""),
            ("a $HOME $ {x} $$ }", "a $HOME $ {x} $$ }"),
            ("${HOME}/x:${HOME}", "/home/ü/x:/home/ü"),
            ("${env:HOME}", "/home/ü"),
            ("${NO:-a:-b}${HOME:-c}${EMPTY:-d}${EMPTY}", "a:-b/home/üd"),
            ("${NO:-}", ""),
            ("$${HOME} ${HOME}", "${HOME} /home/ü"),
            ("$$${HOME}", "$${HOME}"),
        ] {
            assert_eq!(expanded(text), Ok((value.into(), Vec::new())), "{text}");
        }
        assert_eq!(expanded("--token=${GIT_TOKEN}"), {
            Ok(("--token=${HOME}x".into(), vec!["${HOME}x".into()]))
        });
        assert_eq!(expanded("${SHORT_KEY}"), Ok(("none".into(), Vec::new())));
    }

    #[test]
    fn what_cannot_be_put_in_is_told_with_its_place() {
        let name = |name: &str| name.to_owned();
        for (text, offset, problem) in [
            ("é${NO}", 2, VariableErrorKind::NotSet { name: name("NO") }),
            ("x${HOME", 1, VariableErrorKind::NotClosed),
            (
                "${workspaceFolder}",
                0,
                VariableErrorKind::OfAnEditor { name: name("workspaceFolder") },
            ),
            ("${input:key}", 0, VariableErrorKind::OfAnEditor { name: name("input:key") }),
            ("${}", 0, VariableErrorKind::NoName { name: name("") }),
            ("${HOME}${A B}", 7, VariableErrorKind::NoName { name: name("A B") }),
        ] {
            assert_eq!(expanded(text), Err((offset, problem)), "{text}");
        }
    }

    #[test]
    fn secrets_are_told_by_their_names() {
        for name in ["GITHUB_TOKEN", "api_key", "Password", "TOKEN"] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in ["authorization", "COOKIE", "X-Api-Key", "x-token", "apikey"] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in ["MONKEY", "TOKEN_FILE", ""] {
            assert!(!is_secret_variable(name), "{name}");
        }
        assert!(!is_secret_header("Accept") && !is_secret_header("X-Keys"));
    }

    proptest! {
        #[test]
        fn any_text_is_expanded_or_refused(text in r"[$\{\}:A-Z\-é ]{0,24}") {
            match expand(&text, |_| Some("v".into())) {
                Ok(done) => {
                    let is_escaped = text.contains("$${");
                    prop_assert_eq!(done.text.contains("${") && !is_escaped, false);
                }
                Err(error) => {
                    let begins = text.get(error.offset..).is_some_and(|at| at.starts_with("${"));
                    prop_assert!(begins, "{}", error);
                }
            }
        }
    }
}
