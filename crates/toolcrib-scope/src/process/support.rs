//! Whether this machine lets what a program starts end with it, and limits how much it starts.

use std::fmt;
#[cfg(target_os = "linux")]
use std::{io, sync::OnceLock};

use super::child::{NamespaceKind, ProcessLimit};
#[cfg(target_os = "linux")]
use super::stage::Stage;

/// What this machine cannot do for programs, and why. The text is for the operator, and says how to
/// fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Unsupported {
    reason: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Whether what a program starts ends with it here, whatever it does to get away. Tried once per
/// process, by making a PID namespace; blocks for some milliseconds then.
///
/// # Errors
/// Why not. Programs are then run only where [`ProcessSpec::allow_stray_children`] is set.
///
/// [`ProcessSpec::allow_stray_children`]: super::ProcessSpec::allow_stray_children
pub fn support() -> Result<(), Unsupported> {
    namespaces().map(drop)
}

/// Whether [`ProcessLimits::processes`] is enforced here. Tried with [`support`], by exceeding a
/// limit where that is cheap.
///
/// # Errors
/// Why not. Programs are run all the same, and can start as many processes as the system has room
/// for.
///
/// [`ProcessLimits::processes`]: super::ProcessLimits::processes
pub fn process_limit() -> Result<(), Unsupported> {
    match namespaces()?.process_limit {
        ProcessLimit::None => Err(Unsupported {
            reason: "nothing limits the number of processes: root needs Linux 6.14 or newer and a \
                     writable /proc/sys, any other user Linux 5.14 and user namespaces"
                .to_owned(),
        }),
        #[cfg(target_os = "linux")]
        ProcessLimit::Rlimit | ProcessLimit::PidMax => Ok(()),
    }
}

/// How programs get PID namespaces here.
#[derive(Debug, Clone)]
pub(super) struct Namespaces {
    pub(super) kind: NamespaceKind,
    pub(super) process_limit: ProcessLimit,
}

#[cfg(not(target_os = "linux"))]
pub(super) fn namespaces() -> Result<Namespaces, Unsupported> {
    Err(Unsupported { reason: "this system has no PID namespaces; Linux has".to_owned() })
}

#[cfg(target_os = "linux")]
pub(super) fn namespaces() -> Result<Namespaces, Unsupported> {
    static FOUND: OnceLock<Result<Namespaces, Unsupported>> = OnceLock::new();
    FOUND.get_or_init(try_namespaces).clone()
}

#[cfg(target_os = "linux")]
fn try_namespaces() -> Result<Namespaces, Unsupported> {
    let mut failures = Vec::new();
    for kind in [NamespaceKind::Privileged, NamespaceKind::in_user_namespace()] {
        match tried(&kind) {
            Ok(process_limit) => return Ok(Namespaces { kind, process_limit }),
            Err(failure) => failures.push(failure),
        }
    }
    Err(Unsupported {
        reason: format!(
            "no PID namespace can be had, neither by right ({}) nor in a user namespace ({}); \
             allow user namespaces (sysctl user.max_user_namespaces, user.max_pid_namespaces, \
             kernel.apparmor_restrict_unprivileged_userns, a container's seccomp profile), or run \
             with CAP_SYS_ADMIN",
            failures.first().map_or("", String::as_str),
            failures.last().map_or("", String::as_str),
        ),
    })
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
#[expect(clippy::disallowed_methods, reason = "it is about the kernel and no file")]
fn has_pid_max_per_namespace() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}
