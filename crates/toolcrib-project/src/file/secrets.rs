//! `[secrets]`: the names of secrets and the sources of their values. The file contains no value.

use std::{fmt, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Table, Value, suggest};
pub(crate) use toolcrib_tools::__internal::{SECRET, is_secret_name};

use crate::private::vault::Vault;

/// A declared secret.
#[derive(Debug)]
pub(crate) struct SecretSection {
    pub(crate) name: Located<Arc<str>>,
    /// The source of the value; `None` if the name or source is invalid, which is recorded.
    pub(crate) from: Option<Located<SecretSource>>,
}

impl SecretSection {
    pub(crate) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(secrets) = file.value("secrets").and_then(|value| value.entries("`[secrets]`"))
        else {
            return Vec::new();
        };
        secrets.rest().map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Self {
        let is_name = is_secret_name(&name.value);
        if !is_name {
            let message =
                format!("{} is not a valid name of a secret", suggest::quoted([&*name.value]));
            let help = "use letters without accents, digits, `_`, `-` and `.`";
            value.problems().push(Diagnostic::error(&name.at, message).help(help));
        }
        // The value in place of a table may be the secret itself: it is not repeated.
        if !value.is_table() {
            value.refuse(
                "the source of the secret is missing",
                "write { env = \"VARIABLE\" }; the value itself does not belong in this file",
            );
            return Self { name, from: None };
        }
        let what = format!("secret {}", suggest::quoted([&*name.value]));
        let from = value.table(&what, |table| match (table.value("env"), table.value("vault")) {
            (Some(_), Some(entry)) => {
                entry.refuse("`env` and `vault` both give the secret", "keep one of them");
                None
            }
            (None, Some(entry)) => vault_entry(&entry),
            (_, None) => table.required("env", "\"VARIABLE\"").and_then(|env| variable(&env)),
        });
        Self { name, from: from.flatten().filter(|_| is_name) }
    }
}

/// The name of an environment variable. It may be the value by mistake, so it is not repeated.
fn variable(value: &Value<'_>) -> Option<Located<SecretSource>> {
    let name = value.text()?;
    let mut bytes = name.value.bytes();
    let sound = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !sound {
        value.refuse(
            "this is not a valid name of an environment variable",
            "write only its name, of letters, digits and `_`: env = \"WEATHER_KEY\"; the value \
             itself does not belong in this file",
        );
    }
    sound.then_some(Located { value: SecretSource::Env(name.value), at: name.at })
}

/// The name of an entry of the vault. It may be the value by mistake, so it is not repeated.
fn vault_entry(value: &Value<'_>) -> Option<Located<SecretSource>> {
    let name = value.text()?;
    if !Vault::is_name(&name.value) {
        value.refuse(
            "this is not a valid name of a vault entry",
            "write only its name: vault = \"weather\"; `toolcrib secret set weather` stores the value",
        );
        return None;
    }
    Some(Located { value: SecretSource::Vault(name.value), at: name.at })
}

/// A reference to a secret. It may be the secret itself by mistake, so it is not repeated.
pub(crate) fn secret_reference(value: &Value<'_>, key: &str) -> Option<Located<Arc<str>>> {
    let text = value.text()?;
    let name = text.value.strip_prefix(SECRET).filter(|name| is_secret_name(name));
    let Some(name) = name else {
        value.refuse(
            "this is not a reference to a secret",
            format!(
                "write {key} = \"secret:NAME\", and below a [secrets]: NAME = {{ env = \"VARIABLE\" \
                 }}; the {key} itself does not belong in this file"
            ),
        );
        return None;
    };
    Some(Located { value: name.into(), at: text.at })
}

/// The source of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretSource {
    /// An environment variable.
    Env(Arc<str>),
    /// An entry of the user's vault.
    Vault(Arc<str>),
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(variable) => write!(f, "the environment variable `{variable}`"),
            Self::Vault(entry) => write!(f, "the vault entry `{entry}`"),
        }
    }
}
