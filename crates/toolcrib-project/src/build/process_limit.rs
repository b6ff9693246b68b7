//! A warning for machines that cannot limit the number of processes.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_scope::process;

/// Records that programs which a file declares can start any number of processes here, if so: once
/// per file, however many it declares.
pub(crate) fn report_unlimited_processes(file: &Arc<str>, problems: &Problems) {
    if let Err(unsupported) = process::process_limit() {
        let message = format!("`processes_max` has no effect on this machine: {unsupported}");
        let help = "or limit Toolcrib itself, for example by `--pids-limit` of a container or \
                    `TasksMax=` of a systemd unit";
        let at = Spot::start_of(Arc::clone(file));
        problems.push(Diagnostic::warning(&at, message).help(help));
    }
}
