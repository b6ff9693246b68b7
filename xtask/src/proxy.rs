//! HAProxy, behind which a test restarts two gateways.

use std::path::Path;

use crate::{packages::install_of_system, problem::Problem, workspace::Workspace};

const HELP: &str = "install HAProxy, such as by `apt-get install haproxy`";

/// Installs the system's package, where this user may; else the tests say that they are skipped.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    if ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"].iter().any(|at| Path::new(at).exists()) {
        return Ok(());
    }
    install_of_system(workspace, "haproxy", HELP)
}
