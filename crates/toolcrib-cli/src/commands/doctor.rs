//! `toolcrib doctor`: the sandboxes that this machine enforces.

use std::sync::Arc;

use toolcrib_capabilities::process::{SandboxTier, process_limit, self_test};
use toolcrib_core::CancellationToken;

use crate::{
    args::{GlobalArgs, OfflineArgs},
    exit::{self, Exit},
    output::{self, Checkup, DoctorJson},
    problem::Problem,
    project::load::{ChosenModel, Purpose, load, unless_cancelled},
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
    let advisory = advisory(global, &cancellation).await;
    if global.json {
        output::json(&DoctorJson::new(&checkup, advisory.as_deref()));
    } else {
        output::checkup(&checkup, global.quiet);
        if let Some(reasons) = advisory.filter(|_| !global.quiet) {
            output::approvals_hold(&reasons);
        }
    }
    Ok(if checkup.is_complete() { exit::FINE } else { exit::FAILED })
}

/// Why approvals are advisory in the project, if there is one that loads.
async fn advisory(global: &GlobalArgs, cancellation: &CancellationToken) -> Option<Vec<Arc<str>>> {
    let purpose = Purpose::Look(OfflineArgs { offline: true });
    let global = GlobalArgs { quiet: true, ..global.clone() };
    let project = load(&global, purpose, ChosenModel::default(), cancellation).await.ok()?;
    Some(project.approvals().advisory().to_vec())
}
