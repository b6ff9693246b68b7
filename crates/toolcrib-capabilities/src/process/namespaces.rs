//! How programs get PID namespaces on this machine.

#[cfg(target_os = "linux")]
use std::{io, sync::OnceLock};

#[cfg(target_os = "linux")]
use super::stage::Stage;
use super::{
    UnsupportedError,
    child::{NamespaceKind, ProcessLimit},
};

/// The way that works.
#[derive(Debug, Clone)]
pub(super) struct Namespaces {
    pub(super) kind: NamespaceKind,
    pub(super) process_limit: ProcessLimit,
}

#[cfg(not(target_os = "linux"))]
pub(super) fn namespaces() -> Result<Namespaces, UnsupportedError> {
    Err(UnsupportedError::new("this system has no PID namespaces; Linux has"))
}

#[cfg(target_os = "linux")]
pub(super) fn namespaces() -> Result<Namespaces, UnsupportedError> {
    static FOUND: OnceLock<Result<Namespaces, UnsupportedError>> = OnceLock::new();
    FOUND.get_or_init(try_namespaces).clone()
}

#[cfg(target_os = "linux")]
fn try_namespaces() -> Result<Namespaces, UnsupportedError> {
    let mut failures = Vec::new();
    for kind in [NamespaceKind::Privileged, NamespaceKind::in_user_namespace()] {
        match tried(&kind) {
            Ok(process_limit) => return Ok(Namespaces { kind, process_limit }),
            Err(failure) => failures.push(failure),
        }
    }
    Err(UnsupportedError::new(format!(
        "a PID namespace cannot be created, neither with privileges ({}) nor in a user namespace \
         ({}); allow user namespaces (sysctl user.max_user_namespaces, user.max_pid_namespaces, \
         kernel.apparmor_restrict_unprivileged_userns, a container's seccomp profile), or run \
         with CAP_SYS_ADMIN",
        failures.first().map_or("", String::as_str),
        failures.last().map_or("", String::as_str),
    )))
}

#[cfg(target_os = "linux")]
fn tried(kind: &NamespaceKind) -> Result<ProcessLimit, String> {
    let error = match kind.clone().trial(has_pid_max_per_namespace()).spawn() {
        Err(error) => error,
        Ok(_) => io::Error::other("the trial was killed"),
    };
    match Stage::of(error) {
        (Some(Stage::Tried), limit) => Ok(ProcessLimit::of(limit.raw_os_error())),
        (stage, error) => {
            Err(format!("could not {}: {error}", stage.unwrap_or(Stage::Fork).action()))
        }
    }
}

/// Since Linux 6.14. Before, there is one `pid_max`, and setting it would change the machine.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "it reads about the kernel, not a file")]
fn has_pid_max_per_namespace() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

/// Whether something limits the number of a program's processes.
pub(super) fn process_limit() -> Result<(), UnsupportedError> {
    match namespaces()?.process_limit {
        ProcessLimit::None => Err(UnsupportedError::new(
            "nothing limits the number of processes: root needs Linux 6.14 or newer and a \
             writable /proc/sys, any other user Linux 5.14 and user namespaces",
        )),
        #[cfg(target_os = "linux")]
        ProcessLimit::Rlimit | ProcessLimit::PidMax => Ok(()),
    }
}
