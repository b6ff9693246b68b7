//! The models that a run could use.

use std::{ptr, sync::Arc};

use toolcrib_core::{Model as _, ModelError};
use toolcrib_models::{ModelName, Vendor, VendorModel};
use toolcrib_project::{DeclaredModel, PROJECT_FILE, Project, environment_model};

use crate::problem::Problem;

/// A model that `run` could use.
pub(crate) struct Candidate {
    /// Its name for `--model`.
    pub(crate) name: Arc<str>,
    /// Its source: the declaration, or an environment variable.
    pub(crate) origin: Arc<str>,
    pub(crate) model: Arc<VendorModel>,
    /// Whether only the server is known, not yet the model on it.
    pub(crate) any: bool,
    /// Whether the project names it, so that trust is required.
    pub(crate) of_project: bool,
}

/// The placeholder for the model if only the server is known.
const ANY: &str = "?";

/// The model of a run that names none.
pub(crate) async fn first_configured(project: &Project) -> Result<Candidate, Problem> {
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
pub(crate) async fn of_server(project: &Project) -> Result<Option<Candidate>, Problem> {
    let named = project.vendor_alone().and_then(of_environment);
    match named.filter(|one| one.any && one.model.no_key().is_none()) {
        Some(candidate) => candidate.known().await.map(Some),
        None => Ok(None),
    }
}

/// The project's name for its model.
pub(crate) fn named(project: &Project) -> Option<Arc<str>> {
    let model = project.model()?;
    // Two models of the project may have the same vendor name.
    let is_it = |declared: &&DeclaredModel| ptr::addr_eq(&**model, &*declared.model);
    let declared = project.models().iter().find(is_it);
    Some(declared.map_or_else(|| model.name().into(), |declared| Arc::clone(&declared.name)))
}

/// The models that could be used if none is named, best first: the project's own, then those of
/// vendors configured in the environment. A model of a vendor that the project names comes first.
pub(crate) fn candidates(project: Option<&Project>) -> Vec<Candidate> {
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
    pub(crate) async fn ask(mut self) -> (Self, Result<Vec<String>, ModelError>) {
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
