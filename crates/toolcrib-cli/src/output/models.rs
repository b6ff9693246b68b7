//! The list of models.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_config::suggest;
use toolcrib_core::{Model, ModelError};
use toolcrib_models::{Vendor, VendorModel};

use super::{
    print::{note, say},
    text::{BAD, DIM, GOOD, STRONG, count, safe},
};

/// A model of the list.
pub(crate) struct ListedModel {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Option<Arc<str>>,
    pub(crate) model: Option<Arc<VendorModel>>,
    pub(crate) state: ModelState,
    /// Whether `run` uses it if no model is named.
    pub(crate) is_default: bool,
}

/// The state of a model.
pub(crate) enum ModelState {
    /// It is not configured; says what to do.
    NotConfigured(String),
    /// Its server was not queried, for this reason.
    NotAsked(String),
    /// Its server responds, and lists these models.
    Reachable(Vec<String>),
    /// Its server does not respond, or refuses.
    Unreachable(ModelError),
}

/// Names the model of a run that names none.
pub(crate) fn chosen_model(name: &str, origin: &str) {
    note!(
        "{DIM}no model is named; using {}, the first configured one ({}){DIM:#}",
        safe(name),
        safe(origin)
    );
}

/// Prints a new default model, and the next step unless its server does not answer.
pub(crate) fn model_added(listed: &ListedModel, quiet: bool) {
    one(listed);
    if !quiet && !matches!(listed.state, ModelState::Unreachable(_)) {
        note!("Try: toolcrib chat");
    }
}

/// Prints the list.
pub(crate) fn models(named: Option<&str>, listed: &[ListedModel], quiet: bool) {
    for entry in listed {
        one(entry);
    }
    if quiet {
        return;
    }
    match (named, listed.iter().find(|entry| entry.is_default)) {
        (Some(named), _) => note!("{DIM}the project names {}{DIM:#}", safe(named)),
        (None, Some(first)) => {
            note!("{DIM}a run that names no model uses {}{DIM:#}", safe(&first.name));
        }
        (None, None) => note!("{DIM}a scripted model needs no key: --model script:FILE{DIM:#}"),
    }
}

fn one(entry: &ListedModel) {
    let (mark, style) = match entry.state {
        ModelState::Reachable(_) => ("✓", GOOD),
        ModelState::Unreachable(_) => ("✗", BAD),
        ModelState::NotConfigured(_) | ModelState::NotAsked(_) => ("-", DIM),
    };
    let model = entry.model.as_ref();
    let what = model.map(|model| {
        let known = *entry.name == *model.name();
        let name = if known { String::new() } else { format!(" {}", safe(model.name())) };
        format!("{name} at {}", safe(model.base_url()))
    });
    let origin = entry.origin.as_ref().map(|origin| format!(" ({})", safe(origin)));
    say!(
        "{style}{mark}{style:#} {STRONG}{}{STRONG:#}{}{DIM}{}{DIM:#}",
        safe(&entry.name),
        what.unwrap_or_default(),
        origin.unwrap_or_default()
    );
    match &entry.state {
        ModelState::Reachable(models) => {
            let lacks = model.filter(|model| !lists(models, model.model()));
            let lacks = lacks.map(|model| {
                let near = suggest::nearest(model.model(), models.iter().map(String::as_str));
                let near = near.map(|near| format!("; did you mean `{}`?", safe(near)));
                let model = safe(model.model());
                format!("; it does not list `{model}`{}", near.unwrap_or_default())
            });
            say!("    reachable, {}{}", count(models.len(), "model"), lacks.unwrap_or_default());
        }
        ModelState::Unreachable(error) => {
            say!("    {}", safe(&error.to_string()));
            let is_of_openai =
                model.is_some_and(|one| one.vendor() == Vendor::OpenAi && !one.is_at_vendor());
            if error.status == Some(404) && is_of_openai {
                say!("    the base URL has no list of models; it usually ends with `/v1`");
            }
        }
        ModelState::NotAsked(reason) => say!("    not queried: {}", safe(reason)),
        ModelState::NotConfigured(what_to_do) => {
            say!("    not configured: {}", safe(what_to_do));
        }
    }
}

/// Whether a vendor's list contains the model. Ollama's names have a tag, which may be left out.
fn lists(models: &[String], model: &str) -> bool {
    models.iter().any(|listed| listed == model || listed.strip_suffix(":latest") == Some(model))
}

/// The output of `models --json`. `named` is the model that the project names.
pub(crate) fn models_json(named: Option<&str>, listed: &[ListedModel]) -> Value {
    json!({ "named": named, "models": listed.iter().map(one_json).collect::<Vec<_>>() })
}

fn one_json(entry: &ListedModel) -> Value {
    let model = entry.model.as_ref();
    let (models, reason, error_class) = match &entry.state {
        ModelState::Reachable(models) => (Some(models), None, None),
        ModelState::Unreachable(error) => (None, Some(error.to_string()), Some(error.class)),
        ModelState::NotConfigured(reason) | ModelState::NotAsked(reason) => {
            (None, Some(reason.clone()), None)
        }
    };
    json!({
        "name": entry.name,
        "origin": entry.origin,
        "model": model.map(Model::name),
        "base_url": model.map(|model| model.base_url()),
        "is_default": entry.is_default,
        "configured": model.is_some_and(|model| model.no_key().is_none()),
        "reachable": models.is_some(),
        // Null if the server could not be queried.
        "listed": model.zip(models).map(|(model, models)| lists(models, model.model())),
        "models": models.map(Vec::as_slice).unwrap_or_default(),
        "reason": reason,
        "error_class": error_class,
    })
}
