//! A warning for machines that cannot limit the number of processes.

use std::sync::Arc;

use toolcrib_capabilities::process;
use toolcrib_config::{Diagnostic, Problems, Spot};

/// Warns that programs of a file can start any number of processes on this machine: once per file.
pub(crate) fn report_unlimited_processes(file: &Arc<str>, problems: &Problems) {
    if let Err(unsupported) = process::process_limit() {
        let message = format!("`processes_max` has no effect on this machine: {unsupported}");
        let help = "or limit Toolcrib itself, for example by `--pids-limit` of a container or \
                    `TasksMax=` of a systemd unit";
        let at = Spot::start_of(Arc::clone(file));
        problems.push(Diagnostic::warning(&at, message).help(help));
    }
}
