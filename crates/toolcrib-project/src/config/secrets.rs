//! `[secrets]`: what secrets are called here and where their values are. No value stands in the
//! file.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Table, Value, suggest};

/// How a reference to a secret begins.
const SECRET: &str = "secret:";

/// A declared secret.
#[derive(Debug)]
pub(crate) struct SecretSection {
    pub(crate) name: Located<Arc<str>>,
    /// The environment variable that holds the value; `None` when name or place is of no use, which is
    /// recorded.
    pub(crate) env: Option<Located<Arc<str>>>,
}

impl SecretSection {
    pub(super) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(secrets) = file.value("secrets").and_then(|value| value.entries("`[secrets]`"))
        else {
            return Vec::new();
        };
        secrets.rest().map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Self {
        let is_name = is_secret_name(&name.value);
        if !is_name {
            let message = format!("{} is not a name of a secret", suggest::quoted([&*name.value]));
            let help = "use letters without accents, digits, `_`, `-` and `.`";
            value.problems().push(Diagnostic::error(&name.at, message).help(help));
        }
        // What stands there in place of a table may be the secret itself: it is not repeated.
        if !value.is_table() {
            value.refuse(
                "this does not say where the secret is",
                "write { env = \"VARIABLE\" }; the value itself does not belong in this file",
            );
            return Self { name, env: None };
        }
        let what = format!("secret {}", suggest::quoted([&*name.value]));
        let env = value.table(&what, |table| {
            table.required("env", "\"VARIABLE\"").and_then(|env| variable(&env))
        });
        Self { name, env: env.flatten().filter(|_| is_name) }
    }
}

/// The name of an environment variable, and not the value of one, which is not repeated.
fn variable(value: &Value<'_>) -> Option<Located<Arc<str>>> {
    let name = value.text()?;
    let mut bytes = name.value.bytes();
    let sound = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !sound {
        value.refuse(
            "this is not a name of an environment variable",
            "write its name alone, of letters, digits and `_`: env = \"WEATHER_KEY\"; the value \
             itself does not belong in this file",
        );
    }
    sound.then_some(name)
}

/// As in templates, where `{secret:NAME}` refers to it.
pub(crate) fn is_secret_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// A reference to a secret, under a key, and not the secret itself, which is not repeated.
pub(super) fn secret_reference(value: &Value<'_>, key: &str) -> Option<Located<Arc<str>>> {
    let text = value.text()?;
    let name = text.value.strip_prefix(SECRET).filter(|name| is_secret_name(name));
    let Some(name) = name else {
        value.refuse(
            "this is no reference to a secret",
            format!(
                "write {key} = \"secret:NAME\", and below a [secrets]: NAME = {{ env = \"VARIABLE\" \
                 }}; the {key} itself does not belong in this file"
            ),
        );
        return None;
    };
    Some(Located { value: name.into(), at: text.at })
}
