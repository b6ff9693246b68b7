//! `toolcrib models add` and `remove`: the default model of this user, and its key.

use std::{
    env::{self, VarError},
    io::{self, IsTerminal as _},
};

use serde_json::json;
use toolcrib_config::suggest;
use toolcrib_core::{CancellationToken, Secret};
use toolcrib_models::{ModelName, Vendor};
use toolcrib_project::{UserModels, UserModelsError, VaultError, vendor_model};

use super::asked;
use crate::{
    args::{GlobalArgs, ModelsAddArgs, ModelsCommand, OfflineArgs},
    exit::{self, Exit},
    host::{
        candidate::users_default,
        secret_value::{self, from_stdin},
    },
    output,
    problem::Problem,
    project::load::unless_cancelled,
};

/// Adds or removes a model.
pub(super) async fn change(
    global: &GlobalArgs,
    look: OfflineArgs,
    command: ModelsCommand,
    cancellation: &CancellationToken,
) -> Result<Exit, Problem> {
    // As in a run: a file that is not valid is a usage error.
    let mut models = UserModels::of_user().map_err(|error| Problem::usage(error.to_string()))?;
    match command {
        ModelsCommand::Add(args) => add(global, look, &args, models, cancellation).await?,
        ModelsCommand::Remove { vendor } => {
            let word = vendor.split(':').next().unwrap_or_default();
            let known = Vendor::ALL.map(Vendor::as_str);
            let parsed: Vendor =
                word.parse().map_err(|_| Problem::unknown("vendor", word, known))?;
            if vendor != word && models.default_model() != Some(&*vendor) {
                return Err(Problem::usage(format!(
                    "{} was not added; `toolcrib models remove {word}` removes the key and the models \
                     of {word}",
                    suggest::quoted([vendor.as_str()])
                )));
            }
            let vendor = parsed;
            if !models.remove(vendor).map_err(|error| failed(&error))? {
                return Err(Problem::usage(format!("no model of {vendor} was added")));
            }
            if global.json {
                output::json(&json!({ "vendor": vendor.as_str(), "done": "removed" }));
            } else if !global.quiet {
                output::chat_note(&format!("the key and the models of {vendor} are removed"));
            }
        }
    }
    Ok(exit::FINE)
}

async fn add(
    global: &GlobalArgs,
    look: OfflineArgs,
    args: &ModelsAddArgs,
    mut models: UserModels,
    cancellation: &CancellationToken,
) -> Result<(), Problem> {
    let written = match &args.model {
        Some(name) => name.clone(),
        None => ask_model(cancellation).await?,
    };
    let name = vendor_model(&written).map_err(Problem::usage)?;
    if args.base_url.is_some() && !written.contains(':') {
        return Err(Problem::usage(format!(
            "name a model of the server at `--base-url`: `{written}:MODEL`"
        )));
    }
    let variable = name.vendor.configured_by();
    if let (Some(variable), Some(_)) = (variable, &args.base_url) {
        return Err(Problem::usage(format!(
            "the environment sets {variable}, which other models of {} would use in place of this \
             base URL; unset it",
            name.vendor
        )));
    }
    let key = key(args, &name, &models, cancellation).await?;
    let stores_none = key.is_none();
    let added = models.add(&name, args.base_url.as_deref(), key);
    added.map_err(|error| failed(&error))?;
    let candidate = users_default()?.ok_or_else(|| gone(&name))?;
    let offline = (look.offline || args.offline).then_some("offline");
    let listed = unless_cancelled(asked(candidate, offline, true), cancellation).await?;
    if global.json {
        output::json(&output::models_json(None, &[listed]));
        return Ok(());
    }
    output::model_added(&listed, global.quiet);
    if global.quiet {
        return Ok(());
    }
    if let Some(variable) = variable {
        let none = if stores_none { ", and no key was stored" } else { "" };
        let notice =
            format!("the environment sets {variable}, which is used while it is set{none}");
        output::notice(&notice);
    } else if args.base_url.is_some() && matches!(models.key(name.vendor), Ok(None)) {
        output::notice(
            "no key was stored; if the server needs one, repeat the command with `--key-from-env \
             VARIABLE` or `--key-stdin`",
        );
    }
    Ok(())
}

fn gone(name: &ModelName) -> Problem {
    Problem::failed("models_failed", format!("{name} was stored, and another process removed it"))
}

/// Asks which model to add.
async fn ask_model(cancellation: &CancellationToken) -> Result<String, Problem> {
    let vendors = Vendor::ALL.map(Vendor::as_str).join(", ");
    if !io::stdin().is_terminal() {
        return Err(Problem::usage(format!(
            "name the model: VENDOR:MODEL, or a vendor for its default model ({vendors})"
        )));
    }
    let prompt = format!("Vendor ({vendors}), or VENDOR:MODEL: ");
    Ok(secret_value::line(prompt, cancellation).await?.trim().to_owned())
}

/// The key to store; `None` if the stored one or that of the environment is used, or none is needed.
async fn key(
    args: &ModelsAddArgs,
    name: &ModelName,
    models: &UserModels,
    cancellation: &CancellationToken,
) -> Result<Option<Secret>, Problem> {
    let vendor = name.vendor;
    let mut source = "the key".to_owned();
    let value = if let Some(variable) = &args.key_from_env {
        let value = of_variable(variable)?;
        source = format!("the environment variable {variable}");
        value
    } else if args.key_stdin {
        "the key of `--key-stdin`".clone_into(&mut source);
        from_stdin(cancellation).await?
    } else if vendor.configured_by().is_some() {
        return Ok(None);
    } else {
        let has_key = models.base_url(vendor) == args.base_url.as_deref()
            && models.key(vendor).is_ok_and(|key| key.is_some());
        let is_optional = has_key || args.base_url.is_some() || !vendor.needs_key();
        if !io::stdin().is_terminal() {
            return match is_optional {
                true => Ok(None),
                false => Err(Problem::usage(format!(
                    "there is no key for {vendor}; add `--key-from-env VARIABLE` or `--key-stdin`"
                ))),
            };
        }
        let without = match (has_key, is_optional) {
            (true, _) => "; Enter keeps the stored one",
            (false, true) => "; Enter for none",
            (false, false) => "",
        };
        let prompt = format!("Key of {vendor} (not shown{without}): ");
        let value = secret_value::prompt(prompt, cancellation).await?;
        if value.is_empty() && is_optional {
            return Ok(None);
        }
        value
    };
    secret_value::check(&value, &source)?;
    Ok(Some(Secret::new(value)))
}

/// The value of an environment variable. Its name may be the key by mistake, so only a valid name is
/// repeated, and its value never is.
fn of_variable(name: &str) -> Result<String, Problem> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(is_plain)
    {
        return Err(Problem::usage(
            "the value of `--key-from-env` is not a name of an environment variable; write the name, \
             such as WORK_KEY, and not the key",
        ));
    }
    env::var(name).map_err(|error| {
        let problem = match error {
            VarError::NotPresent => "is not set",
            VarError::NotUnicode(_) => "is not UTF-8 text",
        };
        Problem::usage(format!("the environment variable {name} {problem}"))
    })
}

fn failed(error: &UserModelsError) -> Problem {
    match error {
        UserModelsError::Invalid(error) => Problem::usage(error.to_string()),
        UserModelsError::Vault(VaultError::TooLong) => Problem::usage(error.to_string()),
        error => Problem::failed("models_failed", error.to_string()),
    }
}
