//! The list of models.

use serde::Serialize;
use toolcrib_core::{Model as _, ModelErrorClass};

use super::{
    note, say,
    text::{BAD, DIM, GOOD, STRONG, count, safe},
};
use crate::commands::{Listed, State};

/// Says which model a run takes that names none.
pub(crate) fn chosen_model(name: &str, origin: &str) {
    note!(
        "{DIM}no model is named; taking {}, the first that is configured ({}){DIM:#}",
        safe(name),
        safe(origin)
    );
}

/// Prints the list.
pub(crate) fn models(named: Option<&str>, listed: &[Listed], quiet: bool) {
    for entry in listed {
        one(entry);
    }
    if quiet {
        return;
    }
    match (named, listed.iter().find(|entry| entry.is_default)) {
        (Some(named), _) => note!("{DIM}the project names {}{DIM:#}", safe(named)),
        (None, Some(first)) => {
            note!("{DIM}a run that names no model takes {}{DIM:#}", safe(&first.name));
        }
        (None, None) => note!("{DIM}a scripted model needs no key: --model script:FILE{DIM:#}"),
    }
}

fn one(entry: &Listed) {
    let (mark, style) = match entry.state {
        State::Reachable(_) => ("✓", GOOD),
        State::Unreachable(_) => ("✗", BAD),
        State::NotConfigured(_) | State::NotAsked(_) => ("-", DIM),
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
        State::Reachable(models) => {
            let lacks = model.filter(|model| !lists(models, model.model()));
            let lacks = lacks.map(|model| format!("; `{}` is not among them", safe(model.model())));
            say!("    reachable, {}{}", count(models.len(), "model"), lacks.unwrap_or_default());
        }
        State::Unreachable(error) => say!("    {}", safe(&error.to_string())),
        State::NotAsked(reason) => say!("    not asked: {}", safe(reason)),
        State::NotConfigured(what_to_do) => say!("    not configured: {}", safe(what_to_do)),
    }
}

/// Whether a model is among those that its vendor lists. Ollama's have a tag, which may be left out.
fn lists(models: &[String], model: &str) -> bool {
    models.iter().any(|listed| listed == model || listed.strip_suffix(":latest") == Some(model))
}

/// What `models --json` prints.
#[derive(Serialize)]
pub(crate) struct ModelsJson<'a> {
    /// What the project names.
    named: Option<&'a str>,
    models: Vec<ModelJson<'a>>,
}

#[derive(Serialize)]
struct ModelJson<'a> {
    name: &'a str,
    origin: Option<&'a str>,
    model: Option<&'a str>,
    base_url: Option<&'a str>,
    is_default: bool,
    configured: bool,
    reachable: bool,
    /// Whether the server lists the model; absent where it could not be asked.
    listed: Option<bool>,
    /// The models that it lists.
    models: &'a [String],
    /// Why it is not configured or not reachable.
    reason: Option<String>,
    error_class: Option<ModelErrorClass>,
}

impl<'a> ModelsJson<'a> {
    pub(crate) fn new(named: Option<&'a str>, listed: &'a [Listed]) -> Self {
        Self { named, models: listed.iter().map(ModelJson::from).collect() }
    }
}

impl<'a> From<&'a Listed> for ModelJson<'a> {
    fn from(entry: &'a Listed) -> Self {
        let model = entry.model.as_ref();
        let (models, reason, error_class) = match &entry.state {
            State::Reachable(models) => (models.as_slice(), None, None),
            State::Unreachable(error) => (&[] as _, Some(error.to_string()), Some(error.class)),
            State::NotConfigured(reason) | State::NotAsked(reason) => {
                (&[] as _, Some(reason.clone()), None)
            }
        };
        let reachable = matches!(entry.state, State::Reachable(_));
        Self {
            name: &entry.name,
            origin: entry.origin.as_deref(),
            model: model.map(|model| model.name()),
            base_url: model.map(|model| model.base_url()),
            is_default: entry.is_default,
            configured: model.is_some_and(|model| model.no_key().is_none()),
            reachable,
            listed: model.filter(|_| reachable).map(|model| lists(models, model.model())),
            models,
            reason,
            error_class,
        }
    }
}
