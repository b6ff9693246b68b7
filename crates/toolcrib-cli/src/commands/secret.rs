//! `toolcrib secret`: the secrets of the user's vault.

use std::io::{self, IsTerminal as _};

use serde_json::json;
use toolcrib_core::CancellationToken;
use toolcrib_project::{Vault, VaultError};

use crate::{
    args::{GlobalArgs, SecretCommand},
    exit::{self, Exit},
    host::secret_value,
    output,
    problem::Problem,
};

pub(super) async fn secret(
    global: &GlobalArgs,
    command: SecretCommand,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let vault = Vault::of_user().map_err(|error| failed(&error))?;
    match command {
        SecretCommand::List => {
            let names = vault.names().map_err(|error| failed(&error))?;
            if global.json {
                output::json(&json!({ "secrets": names }));
            } else {
                output::secrets(&names, global.quiet);
            }
        }
        SecretCommand::Set { name } => {
            let value = value(checked(&name)?, &cancellation).await?;
            secret_value::check(&value, &format!("the value of `{name}`"))?;
            vault.set(&name, &value).map_err(|error| failed(&error))?;
            done(global, &name, "stored");
        }
        SecretCommand::Remove { name } => {
            if !vault.remove(checked(&name)?).map_err(|error| failed(&error))? {
                let names = vault.names().map_err(|error| failed(&error))?;
                return Err(Problem::unknown("secret", &name, names.iter().map(String::as_str)));
            }
            done(global, &name, "removed");
        }
    }
    Ok(exit::FINE)
}

fn checked(name: &str) -> Result<&str, Problem> {
    Vault::is_name(name).then_some(name).ok_or_else(|| {
        let text = "the name of a secret has letters without accents, digits, `_`, `-` and `.`, and \
            does not begin with `.`";
        Problem::usage(text)
    })
}

/// The value, from the terminal or standard input.
async fn value(name: &str, cancellation: &CancellationToken) -> Result<String, Problem> {
    if !io::stdin().is_terminal() {
        return secret_value::from_stdin(cancellation).await;
    }
    secret_value::prompt(format!("Value of {name} (not shown): "), cancellation).await
}

fn done(global: &GlobalArgs, name: &str, what: &str) {
    if global.json {
        output::json(&json!({ "secret": name, "done": what }));
    } else if !global.quiet {
        output::chat_note(&format!("{name} is {what}"));
    }
}

fn failed(error: &VaultError) -> Problem {
    Problem::failed("vault_failed", error.to_string())
}
