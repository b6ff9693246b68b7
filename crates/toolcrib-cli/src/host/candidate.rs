//! The models that a run could use.

use std::{ptr, sync::Arc};

use toolcrib_config::suggest::quoted;
use toolcrib_core::{Model as _, ModelError};
use toolcrib_models::{InvalidModelNameError, ModelName, Vendor, VendorModel};
use toolcrib_project::{
    DeclaredModel, PROJECT_FILE, Project, UserModels, UserModelsError, configured_model,
};

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
    /// Whether it is the default of this user.
    pub(crate) is_users: bool,
}

/// The placeholder for the model if only the server is known.
const ANY: &str = "?";

/// The source of the user's default model, and of other models of vendors that the user has added.
const DEFAULT: &str = "your default";
const ADDED: &str = "your models";

/// The model of a run that names none.
pub(crate) async fn first_configured(project: &Project) -> Result<Candidate, Problem> {
    let mut all = of_project(project);
    // The user's models are read only for a run that needs them.
    if first(&all).is_none() {
        all = candidates(Some(project))?;
    }
    match first(&all) {
        Some(first) => all.swap_remove(first).known().await,
        None => Err(none_usable(&all)),
    }
}

fn none_usable(all: &[Candidate]) -> Problem {
    let reason = |one: &Candidate| Some(format!("{}: {}", one.name, one.model.no_key()?));
    let reasons: Vec<_> = all.iter().filter_map(reason).collect();
    let none = match reasons.as_slice() {
        [] => "none is configured".to_owned(),
        reasons => format!("none can be used ({})", reasons.join("; ")),
    };
    let variable = |vendor: Vendor| match vendor.key_variables().last() {
        Some(key) if vendor.needs_key() => *key,
        _ => vendor.base_url_variable(),
    };
    Problem::usage(format!(
        "no model is named, and {none}; run `toolcrib models add`, or set {}, or name one with \
         `--model`; a scripted model needs no key: `--model script:FILE`",
        Vendor::ALL.map(variable).join(" or ")
    ))
}

/// The position of the model that a run without a named one uses: the first that can be used. The user's
/// default is never passed over for one that is only configured.
pub(crate) fn first(all: &[Candidate]) -> Option<usize> {
    all.iter().position(|one| one.is_users || one.model.no_key().is_none())
}

/// The model of a run that names only a vendor, if the environment names another server than the
/// vendor's.
pub(crate) async fn of_server(project: &Project) -> Result<Option<Candidate>, Problem> {
    let named = project.vendor_alone().and_then(configured);
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

/// The models that could be used if none is named, best first: the project's own, the user's default,
/// then those of vendors that the environment or the user configures. A model of a vendor that the
/// project names comes first.
pub(crate) fn candidates(project: Option<&Project>) -> Result<Vec<Candidate>, Problem> {
    let default = users_default()?;
    // The user has added no other model of the vendor of the default.
    let is_added = |one: &Candidate| {
        let of = default.as_ref().map(|default| default.model.vendor());
        *one.origin == *ADDED && of == Some(one.model.vendor())
    };
    let configured = Vendor::ALL.into_iter().filter_map(configured).filter(|one| !is_added(one));
    let configured: Vec<_> = configured.collect();
    let own = project.map(of_project).unwrap_or_default();
    Ok(own.into_iter().chain(default).chain(configured).collect())
}

/// The project's own models.
fn of_project(project: &Project) -> Vec<Candidate> {
    let named = named(project).and_then(|name| {
        let candidate = Candidate::new(&name, PROJECT_FILE)?;
        let any = project.vendor_alone().is_some() && !candidate.model.is_at_vendor();
        Some(Candidate { any, of_project: true, name, ..candidate })
    });
    let declared = project.models().iter().map(|declared| Candidate {
        name: Arc::clone(&declared.name),
        origin: Arc::clone(&declared.origin),
        model: Arc::clone(&declared.model),
        any: false,
        of_project: true,
        is_users: false,
    });
    named.into_iter().chain(declared).collect()
}

/// The default model of this user.
pub(crate) fn users_default() -> Result<Option<Candidate>, Problem> {
    let models = match UserModels::of_user() {
        Ok(models) => models,
        // A user without a home has no models.
        Err(UserModelsError::Vault(_)) => return Ok(None),
        Err(error) => return Err(Problem::usage(error.to_string())),
    };
    let Some(name) = models.default_model() else { return Ok(None) };
    let not_valid = |error: &dyn std::fmt::Display| {
        let name = quoted([name]);
        Problem::usage(format!(
            "your default model {name} is not valid: {error}; run `toolcrib models add`"
        ))
    };
    let ModelName { vendor, model } =
        name.parse().map_err(|error: InvalidModelNameError| not_valid(&error))?;
    let builder = VendorModel::builder(vendor, model);
    // A conversation for the user's own server goes to no vendor whose key the environment has.
    let model = models.at_base_url(builder.clone()).unwrap_or_else(|| configured_model(builder));
    let model = Arc::new(model.map_err(|error| not_valid(&error))?);
    Ok(Some(Candidate { is_users: true, ..Candidate::of(model, DEFAULT) }))
}

/// A vendor's model, if the environment or the user has its key or base URL.
fn configured(vendor: Vendor) -> Option<Candidate> {
    let of_user = || UserModels::of_user().is_ok_and(|models| models.configure(vendor));
    let origin = vendor.configured_by().or_else(|| of_user().then_some(ADDED))?;
    let name = vendor.default_model().unwrap_or(ANY);
    let candidate = Candidate::new(&format!("{vendor}:{name}"), origin)?;
    Some(Candidate { any: !candidate.model.is_at_vendor(), ..candidate })
}

impl Candidate {
    /// A vendor's model with the key and base URL of the environment or the user.
    fn new(name: &str, origin: &str) -> Option<Self> {
        let ModelName { vendor, model } = name.parse().ok()?;
        let model = configured_model(VendorModel::builder(vendor, model)).ok()?;
        Some(Self::of(Arc::new(model), origin))
    }

    fn of(model: Arc<VendorModel>, origin: &str) -> Self {
        let (name, origin) = (model.name().into(), origin.into());
        Self { name, origin, model, any: false, of_project: false, is_users: false }
    }

    /// Queries its server for its models. If the model is unknown, it becomes the first one listed,
    /// unless the vendor's default is among them.
    pub(crate) async fn ask(mut self) -> (Self, Result<Vec<String>, ModelError>) {
        let listed = self.model.list_models().await;
        if let (true, Ok(models)) = (self.any, &listed)
            && !models.iter().any(|model| model == self.model.model())
            && let Some(first) =
                models.iter().find(|name| !name.contains("embed")).or(models.first())
            && let Some(Self { name, model, .. }) =
                Self::new(&format!("{}:{first}", self.model.vendor()), &self.origin)
        {
            (self.name, self.model) = (name, model);
        }
        (self, listed)
    }

    /// With a model that its server lists.
    async fn known(self) -> Result<Self, Problem> {
        if let Some(reason) = self.model.no_key() {
            let (name, origin) = (&self.name, &self.origin);
            return Err(Problem::usage(format!("{name} ({origin}) cannot be used: {reason}")));
        }
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
