//! `toolcrib doctor`: the sandboxes that this machine enforces, and what the database of the store promises.

use toolcrib_capabilities::process::{SandboxTier, process_limit, self_test};
use toolcrib_core::CancellationToken;
use toolcrib_project::Project;

use crate::{
    args::{GlobalArgs, OfflineArgs},
    exit::{self, Exit},
    output::{self, Checkup, DoctorJson},
    problem::Problem,
    project::load::{ChosenModel, Purpose, blocking, load, unless_cancelled},
};

/// The tests block, for some milliseconds each, and do not depend on a project.
pub(super) async fn doctor(
    global: &GlobalArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let tests = tokio::task::spawn_blocking(|| Checkup {
        tiers: SandboxTier::ALL.map(self_test),
        processes: process_limit().map_err(|missing| missing.to_string()),
    });
    let checkup = unless_cancelled(tests, &cancellation).await?.map_err(|lost| {
        Problem::failed("internal", format!("the self-test did not end: {lost}"))
    })?;
    let project = inspected(global, &cancellation).await;
    let advisory = project.as_ref().map(|project| project.approvals().advisory().to_vec());
    let store = match project {
        Some(project) => {
            let sessions = project.sessions().clone();
            let inspected = blocking(move || sessions.inspect()).await?;
            inspected.map_err(|error| error.to_string()).transpose()
        }
        None => None,
    };
    let is_store_fine = store.as_ref().is_none_or(output::is_store_fine);
    if global.json {
        output::json(&DoctorJson::new(&checkup, advisory.as_deref(), store.as_ref()));
    } else {
        output::checkup(&checkup, global.quiet);
        if let Some(store) = &store {
            output::store_checkup(store, global.quiet);
        }
        if let Some(reasons) = advisory.filter(|_| !global.quiet) {
            output::approvals_hold(&reasons);
        }
    }
    Ok(if checkup.is_complete() && is_store_fine { exit::FINE } else { exit::FAILED })
}

/// The project, if there is one that loads.
async fn inspected(global: &GlobalArgs, cancellation: &CancellationToken) -> Option<Project> {
    let purpose = Purpose::Look(OfflineArgs { offline: true });
    let global = GlobalArgs { quiet: true, ..global.clone() };
    load(&global, purpose, ChosenModel::default(), cancellation).await.ok()
}
