//! Whether this machine lets what a program starts end with it.

use std::fmt;
#[cfg(target_os = "linux")]
use std::{io, sync::OnceLock};

use super::child::NamespaceKind;
#[cfg(target_os = "linux")]
use super::stage::Stage;

/// Why what a program starts cannot be made to end with it here. The text is for the operator, and
/// says what to do about it.
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
    namespace_kind().map(drop)
}

/// How a PID namespace is had here.
#[cfg(not(target_os = "linux"))]
pub(super) fn namespace_kind() -> Result<NamespaceKind, Unsupported> {
    Err(Unsupported { reason: "this system has no PID namespaces; Linux has".to_owned() })
}

/// How a PID namespace is had here.
#[cfg(target_os = "linux")]
pub(super) fn namespace_kind() -> Result<NamespaceKind, Unsupported> {
    static KIND: OnceLock<Result<NamespaceKind, Unsupported>> = OnceLock::new();
    KIND.get_or_init(try_namespaces).clone()
}

#[cfg(target_os = "linux")]
fn try_namespaces() -> Result<NamespaceKind, Unsupported> {
    let mut failures = Vec::new();
    for kind in [NamespaceKind::Privileged, NamespaceKind::in_user_namespace()] {
        match tried(&kind) {
            Ok(()) => return Ok(kind),
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
fn tried(kind: &NamespaceKind) -> Result<(), String> {
    let error = match kind.clone().trial().spawn() {
        Err(error) => error,
        Ok(_) => io::Error::other("the trial was killed"),
    };
    match Stage::of(error) {
        (Some(Stage::Tried), _) => Ok(()),
        (stage, error) => {
            Err(format!("could not {}: {error}", stage.unwrap_or(Stage::Fork).action()))
        }
    }
}
