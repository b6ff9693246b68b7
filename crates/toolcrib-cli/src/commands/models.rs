//! `toolcrib models`: the configured models, and whether they can be reached.

mod add;

use std::{collections::HashSet, sync::Arc};

use futures_util::future::join_all;
use toolcrib_core::CancellationToken;
use toolcrib_models::Vendor;
use toolcrib_project::{Project, find};

use crate::{
    args::{GlobalArgs, ModelsCommand, OfflineArgs},
    exit::{self, Exit},
    host::candidate::{Candidate, candidates, first, named},
    output::{self, ListedModel, ModelState},
    problem::Problem,
    project::load::{ChosenModel, Purpose, load, unless_cancelled},
};

pub(super) async fn models(
    global: &GlobalArgs,
    look: OfflineArgs,
    command: Option<ModelsCommand>,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    if let Some(command) = command {
        return add::change(global, look, command, &cancellation).await;
    }
    let project = project(global, look, &cancellation).await?;
    let named = project.as_ref().and_then(named);
    let candidates = candidates(project.as_ref())?;
    let first = first(&candidates).filter(|_| named.is_none());

    let held = project.as_ref().and_then(Project::held);
    let asked = candidates.into_iter().enumerate().map(|(at, candidate)| {
        let held = held.filter(|_| candidate.of_project);
        let reason = if look.offline { Some("offline") } else { held };
        asked(candidate, reason, first == Some(at))
    });
    let asked = unless_cancelled(join_all(asked), &cancellation).await?;
    let mut names = HashSet::new();
    let mut listed: Vec<_> = asked
        .into_iter()
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

/// A model of the list, queried unless there is a reason not to.
async fn asked(candidate: Candidate, held: Option<&str>, is_default: bool) -> ListedModel {
    let (candidate, state) = match held {
        Some(reason) => (candidate, ModelState::NotAsked(reason.to_owned())),
        None => {
            let (candidate, answer) = candidate.ask().await;
            (candidate, answer.map_or_else(ModelState::Unreachable, ModelState::Reachable))
        }
    };
    let Candidate { name, origin, model, .. } = candidate;
    ListedModel { name, origin: Some(origin), model: Some(model), state, is_default }
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
                let variables = vendor.key_variables().join(" or ");
                format!("run `toolcrib models add {vendor}`, or set {variables}")
            } else {
                let variable = vendor.base_url_variable();
                format!("run `toolcrib models add {vendor}:MODEL`, or set {variable}")
            }),
            is_default: false,
        })
        .collect()
}
