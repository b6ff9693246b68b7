//! `toolcrib secret`: the secrets of the user's vault.

use std::io::{self, IsTerminal as _};

use serde_json::json;
use toolcrib_core::CancellationToken;
use toolcrib_engine::Redactor;
use toolcrib_project::{Vault, VaultError};

use crate::{
    args::{GlobalArgs, SecretCommand},
    exit::{self, Exit},
    host::call_arguments::read_stdin,
    output,
    problem::Problem,
    project::load::{blocking, unless_cancelled},
};

pub(super) async fn secret(
    global: &GlobalArgs,
    command: SecretCommand,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    if global.project.is_some() || !global.imports.is_empty() {
        return Err(Problem::usage(
            "`secret` is about the vault of this user; leave out `--project` and `--import`",
        ));
    }
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
            // One that is too short could not be redacted.
            let learned = Redactor::default().learn(&value);
            learned.map_err(|_| Problem::usage("a secret has at least 4 characters"))?;
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
        let text = read_stdin(cancellation).await?;
        let text =
            text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text));
        return Ok(text.to_owned());
    }
    let prompt = format!("Value of {name} (not shown): ");
    let reading = blocking(move || rpassword::prompt_password(prompt));
    let read = unless_cancelled(reading, cancellation).await??;
    read.map_err(|error| Problem::failed("terminal_failed", format!("the terminal: {error}")))
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
