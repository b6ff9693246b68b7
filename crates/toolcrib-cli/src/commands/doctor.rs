//! `toolcrib doctor`: the sandboxes that this machine enforces.

use toolcrib_capabilities::process::{SandboxTier, process_limit, self_test};
use toolcrib_core::CancellationToken;

use super::{Problem, mcp::unless_cancelled};
use crate::{
    args::Global,
    exit::{self, Exit},
    output::{self, Checkup, DoctorJson},
};

/// The tests block, for some milliseconds each, and do not depend on a project.
pub(super) async fn doctor(
    global: &Global,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let tests = tokio::task::spawn_blocking(|| Checkup {
        tiers: SandboxTier::ALL.map(self_test),
        processes: process_limit().map_err(|missing| missing.to_string()),
    });
    let checkup = unless_cancelled(tests, &cancellation).await?.map_err(|lost| {
        Problem::failed("internal", format!("the self-test did not end: {lost}"))
    })?;
    if global.json {
        output::json(&DoctorJson::new(&checkup));
    } else {
        output::checkup(&checkup, global.quiet);
    }
    Ok(if checkup.is_complete() { exit::FINE } else { exit::FAILED })
}
