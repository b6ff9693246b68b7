//! `toolcrib models`: the configured models, and whether they can be reached.

use std::{collections::HashSet, ptr, sync::Arc};

use futures_util::future::join_all;
use toolcrib_core::{CancellationToken, Model as _, ModelError};
use toolcrib_models::{ModelName, Vendor, VendorModel};
use toolcrib_project::{DeclaredModel, PROJECT_FILE, Project, environment_model, find};

use super::{ChosenModel, Problem, Purpose, load};
use crate::{
    args::{GlobalArgs, OfflineArgs},
    exit::{self, Exit},
    output::{self, ListedModel, ModelState},
};

/// A model that `run` could use.
pub(crate) struct Candidate {
    /// Its name for `--model`.
    pub(crate) name: Arc<str>,
    /// Its source: the declaration, or an environment variable.
    pub(crate) origin: Arc<str>,
    pub(crate) model: Arc<VendorModel>,
    /// Whether only the server is known, not yet the model on it.
    any: bool,
    /// Whether the project names it, so that trust is required.
    of_project: bool,
}

/// The placeholder for the model if only the server is known.
const ANY: &str = "?";

pub(super) async fn models(
    global: &GlobalArgs,
    look: OfflineArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = project(global, look, &cancellation).await?;
    let named = project.as_ref().and_then(named);
    let candidates = candidates(project.as_ref());
    let first = candidates.iter().position(|candidate| candidate.model.no_key().is_none());
    let first = first.filter(|_| named.is_none());

    let held = project.as_ref().and_then(Project::held);
    let asked = join_all(candidates.into_iter().map(async |candidate| {
        if look.offline {
            return (candidate, ModelState::NotAsked("offline".to_owned()));
        }
        match held.filter(|_| candidate.of_project) {
            Some(reason) => (candidate, ModelState::NotAsked(reason.to_owned())),
            None => {
                let (candidate, answer) = candidate.ask().await;
                (candidate, answer.map_or_else(ModelState::Unreachable, ModelState::Reachable))
            }
        }
    }));
    let asked = tokio::select! {
        biased;
        () = cancellation.cancelled() => return Err(Problem::cancelled()),
        asked = asked => asked,
    };
    let mut names = HashSet::new();
    let mut listed: Vec<_> = asked
        .into_iter()
        .enumerate()
        .map(|(at, (Candidate { name, origin, model, .. }, state))| ListedModel {
            name,
            origin: Some(origin),
            model: Some(model),
            state,
            is_default: first == Some(at),
        })
        // The project and the environment may name the same model.
        .filter(|one| names.insert(Arc::clone(&one.name)))
        .collect();
    listed.extend(not_configured(&listed));

    if global.json {
        output::json(&output::models_json(named.as_deref(), &listed));
    } else {
        output::models(named.as_deref(), &listed, global.quiet);
    }
    Ok(exit::FINE)
}

/// The project, if there is one: models can be listed without.
async fn project(
    global: &GlobalArgs,
    look: OfflineArgs,
    cancellation: &CancellationToken,
) -> Result<Option<Project>, Problem> {
    let here = std::env::current_dir().ok();
    if global.project.is_none() && here.is_none_or(|here| find(&here).is_err()) {
        return Ok(None);
    }
    load(global, Purpose::Look(look), ChosenModel::default(), cancellation).await.map(Some)
}

/// The project's name for its model.
fn named(project: &Project) -> Option<Arc<str>> {
    let model = project.model()?;
    // Two models of the project may have the same vendor name.
    let is_it = |declared: &&DeclaredModel| ptr::addr_eq(&**model, &*declared.model);
    let declared = project.models().iter().find(is_it);
    Some(declared.map_or_else(|| model.name().into(), |declared| Arc::clone(&declared.name)))
}

/// The models that could be used if none is named, best first: the project's own, then those of
/// vendors configured in the environment. A model of a vendor that the project names comes first.
fn candidates(project: Option<&Project>) -> Vec<Candidate> {
    let named = project.and_then(|project| {
        let name = named(project)?;
        let ModelName { vendor, model } = name.parse().ok()?;
        let model = environment_model(VendorModel::builder(vendor, model)).ok()?;
        let (origin, model) = (PROJECT_FILE.into(), Arc::new(model));
        let any = project.vendor_alone().is_some() && !model.is_at_vendor();
        Some(Candidate { origin, model, any, of_project: true, name })
    });
    let declared =
        project.map(Project::models).unwrap_or_default().iter().map(|declared| Candidate {
            name: Arc::clone(&declared.name),
            origin: Arc::clone(&declared.origin),
            model: Arc::clone(&declared.model),
            any: false,
            of_project: true,
        });
    let of_environment = Vendor::ALL.into_iter().filter_map(of_environment);
    named.into_iter().chain(declared).chain(of_environment).collect()
}

/// A vendor's model, if the environment has its key or base URL.
fn of_environment(vendor: Vendor) -> Option<Candidate> {
    let origin = vendor.configured_by()?;
    let name = vendor.default_model().unwrap_or(ANY);
    let model = environment_model(VendorModel::builder(vendor, name)).ok()?;
    Some(Candidate {
        name: model.name().into(),
        origin: origin.into(),
        any: !model.is_at_vendor(),
        of_project: false,
        model: Arc::new(model),
    })
}

impl Candidate {
    /// Queries its server for its models. If the model is unknown, it becomes the first one listed,
    /// unless the vendor's default is among them.
    async fn ask(mut self) -> (Self, Result<Vec<String>, ModelError>) {
        let listed = self.model.list_models().await;
        if let (true, Ok(models)) = (self.any, &listed)
            && !models.iter().any(|model| model == self.model.model())
            && let Some(first) =
                models.iter().find(|name| !name.contains("embed")).or(models.first())
            && let Ok(model) = VendorModel::from_env(&format!("{}:{first}", self.model.vendor()))
        {
            self.name = model.name().into();
            self.model = Arc::new(model);
        }
        (self, listed)
    }

    /// With a model that its server lists.
    async fn known(self) -> Result<Self, Problem> {
        if !self.any {
            return Ok(self);
        }
        let (this, listed) = self.ask().await;
        let why = match listed {
            Ok(models) if models.is_empty() => "the server lists none".to_owned(),
            Ok(_) => return Ok(this),
            Err(error) => error.to_string(),
        };
        let (origin, url) = (&this.origin, this.model.base_url());
        let message = format!(
            "the models of {origin} ({url}) cannot be listed: {why}; name one with `--model`"
        );
        Err(Problem::failed("model_failed", message))
    }
}

/// The vendors without a listed model, each with the next step.
fn not_configured(listed: &[ListedModel]) -> Vec<ListedModel> {
    let is_there = |vendor: Vendor| {
        listed
            .iter()
            .any(|listed| listed.model.as_ref().is_some_and(|model| model.vendor() == vendor))
    };
    Vendor::ALL
        .into_iter()
        .filter(|vendor| !is_there(*vendor))
        .map(|vendor| ListedModel {
            name: vendor.as_str().into(),
            origin: None,
            model: None,
            state: ModelState::NotConfigured(if vendor.needs_key() {
                format!("set {}", vendor.key_variables().join(" or "))
            } else {
                let variable = vendor.base_url_variable();
                format!("set {variable}, or name a model: --model {vendor}:MODEL")
            }),
            is_default: false,
        })
        .collect()
}

/// The model of a run that names none.
pub(super) async fn first_configured(project: &Project) -> Result<Candidate, Problem> {
    let (usable, unusable): (Vec<_>, Vec<_>) =
        candidates(Some(project)).into_iter().partition(|one| one.model.no_key().is_none());
    let Some(first) = usable.into_iter().next() else {
        let unusable: Vec<_> = unusable
            .iter()
            .filter_map(|one| Some(format!("{}: {}", one.name, one.model.no_key()?)))
            .collect();
        let none = match unusable.as_slice() {
            [] => "none is configured".to_owned(),
            reasons => format!("none can be used ({})", reasons.join("; ")),
        };
        let variables: Vec<_> = Vendor::ALL
            .into_iter()
            .filter_map(|vendor| {
                let key = vendor.key_variables().last().copied();
                if vendor.needs_key() { key } else { Some(vendor.base_url_variable()) }
            })
            .collect();
        return Err(Problem::usage(format!(
            "no model is named, and {none}; set {}, or name one with `--model`; a scripted model \
             needs no key: `--model script:FILE`",
            variables.join(" or ")
        )));
    };
    first.known().await
}

/// The model of a run that names only a vendor, if the environment names another server than the
/// vendor's.
pub(super) async fn of_server(project: &Project) -> Result<Option<Candidate>, Problem> {
    let named = project.vendor_alone().and_then(of_environment);
    match named.filter(|one| one.any && one.model.no_key().is_none()) {
        Some(candidate) => candidate.known().await.map(Some),
        None => Ok(None),
    }
}
