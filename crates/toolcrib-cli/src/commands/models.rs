//! `toolcrib models`: which are configured, and whether they can be reached.

use std::sync::Arc;

use toolcrib_core::{CancellationToken, Model as _, ModelError};
use toolcrib_models::{Vendor, VendorModel};
use toolcrib_project::{Mode, Project, find};

use super::{ChosenModel, Problem, load};
use crate::{
    args::Global,
    exit::{self, Exit},
    output::{self, ModelsJson},
};

/// A model that could be taken.
pub(crate) struct Candidate {
    /// What `--model` takes for it.
    pub(crate) name: Arc<str>,
    /// What makes it one: where it is declared, or a variable of the environment.
    pub(crate) origin: Arc<str>,
    pub(crate) model: Arc<VendorModel>,
}

/// A line of the list.
pub(crate) struct Listed {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Option<Arc<str>>,
    pub(crate) model: Option<Arc<VendorModel>>,
    pub(crate) state: State,
    /// Whether `run` takes it where none is named.
    pub(crate) is_default: bool,
}

/// How a model stands.
pub(crate) enum State {
    /// Nobody has set it up; what to do.
    NotConfigured(String),
    /// Its server answers, and lists these.
    Reachable(Vec<String>),
    /// It does not, or says no.
    Unreachable(ModelError),
}

pub(super) async fn models(
    global: &Global,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = project(global, &cancellation).await?;
    let named = project.as_ref().and_then(Project::model).map(|model| model.name().to_owned());
    let candidates = candidates(project.as_ref());
    let first = candidates.iter().find(|candidate| candidate.model.no_key().is_none());
    let first = first.filter(|_| named.is_none()).map(|first| Arc::clone(&first.name));

    let mut asked: Vec<_> = Vec::new();
    for Candidate { name, origin, model } in candidates {
        let is_default = first.as_ref() == Some(&name);
        let asking = {
            let model = Arc::clone(&model);
            tokio::spawn(async move { model.list_models().await })
        };
        asked.push((
            Listed {
                name,
                origin: Some(origin),
                model: Some(model),
                state: State::Reachable(Vec::new()),
                is_default,
            },
            asking,
        ));
    }
    let mut listed = Vec::with_capacity(asked.len());
    for (mut entry, asking) in asked {
        let answer = tokio::select! {
            biased;
            () = cancellation.cancelled() => return Err(Problem::cancelled()),
            answer = asking => answer.map_err(|error| Problem::failed("internal", error.to_string()))?,
        };
        entry.state = match answer {
            Ok(models) => State::Reachable(models),
            Err(error) => State::Unreachable(error),
        };
        listed.push(entry);
    }
    listed.extend(not_configured(&listed));

    if global.json {
        output::json(&ModelsJson::new(named.as_deref(), &listed));
    } else {
        output::models(named.as_deref(), &listed, global.quiet);
    }
    Ok(exit::FINE)
}

/// The project, if there is one here: models can be listed without.
async fn project(
    global: &Global,
    cancellation: &CancellationToken,
) -> Result<Option<Project>, Problem> {
    let here = std::env::current_dir().ok();
    if global.project.is_none() && here.is_none_or(|here| find(&here).is_err()) {
        return Ok(None);
    }
    load(global, Mode::Inspect, ChosenModel::default(), cancellation).await.map(Some)
}

/// What could be taken where no model is named, best first: the project's own, then the vendors of
/// which the environment has a key.
fn candidates(project: Option<&Project>) -> Vec<Candidate> {
    let declared =
        project.map(Project::models).unwrap_or_default().iter().map(|declared| Candidate {
            name: Arc::clone(&declared.name),
            origin: Arc::clone(&declared.origin),
            model: Arc::clone(&declared.model),
        });
    let of_environment = Vendor::ALL.into_iter().filter_map(|vendor| {
        let variable = vendor.key_variable()?;
        let model = VendorModel::from_env(&format!("{vendor}:{}", vendor.default_model()?)).ok()?;
        Some(Candidate {
            name: model.name().into(),
            origin: variable.into(),
            model: Arc::new(model),
        })
    });
    declared.chain(of_environment).collect()
}

/// The vendors of which there is no model in a list, each with what to do.
fn not_configured(listed: &[Listed]) -> Vec<Listed> {
    let is_there = |vendor: Vendor| {
        listed
            .iter()
            .any(|listed| listed.model.as_ref().is_some_and(|model| model.vendor() == vendor))
    };
    Vendor::ALL
        .into_iter()
        .filter(|vendor| !is_there(*vendor))
        .map(|vendor| Listed {
            name: vendor.as_str().into(),
            origin: None,
            model: None,
            state: State::NotConfigured(match vendor {
                Vendor::Ollama => "name one of its models: --model ollama:MODEL".to_owned(),
                vendor => format!("set {}", vendor.key_variables().join(" or ")),
            }),
            is_default: false,
        })
        .collect()
}

/// The model of a run that names none.
pub(super) fn first_configured(project: &Project) -> Result<Candidate, Problem> {
    let usable = candidates(Some(project)).into_iter().find(|one| one.model.no_key().is_none());
    usable.ok_or_else(|| {
        let variables: Vec<_> = Vendor::ALL
            .into_iter()
            .filter(|vendor| vendor.default_model().is_some())
            .filter_map(|vendor| vendor.key_variables().last().copied())
            .collect();
        Problem::usage(format!(
            "no model is named, and none is configured; set {}, or name one with `--model \
             ollama:MODEL`; a scripted model needs no key: `--model script:FILE`",
            variables.join(" or ")
        ))
    })
}
