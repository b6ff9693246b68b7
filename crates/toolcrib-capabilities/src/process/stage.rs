//! The failed stage of a start, reported across the fork.
//!
//! The standard library passes only the error number of a forked process to the host. System errors
//! are small numbers, so the stage fits above them.

use std::io;

const STAGE_SHIFT: u32 = 16;

/// The stages of a forked process before the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Namespace = 1,
    UserMap,
    Fork,
    Session,
    WorkingDir,
    Limit,
    Rights,
    Exec,
    /// The private folders of a sandbox.
    Mounts,
    /// The network namespace of a sandbox.
    Network,
    Landlock,
    /// The filters of system calls.
    Filter,
    /// No failure: the trial succeeded.
    Tried,
}

impl Stage {
    const ALL: [Self; 13] = [
        Self::Namespace,
        Self::UserMap,
        Self::Fork,
        Self::Session,
        Self::WorkingDir,
        Self::Limit,
        Self::Rights,
        Self::Exec,
        Self::Mounts,
        Self::Network,
        Self::Landlock,
        Self::Filter,
        Self::Tried,
    ];

    /// A system call's result, which is -1 for an error. Allocates nothing.
    pub(super) fn check(self, result: i32) -> io::Result<i32> {
        if result == -1 { Err(self.failed(&io::Error::last_os_error())) } else { Ok(result) }
    }

    /// The error with this stage encoded. Allocates nothing.
    pub(super) fn failed(self, error: &io::Error) -> io::Error {
        let number = error.raw_os_error().unwrap_or_default();
        io::Error::from_raw_os_error((self as i32) << STAGE_SHIFT | number)
    }

    /// The stage and the system's error; no stage if the fork itself failed.
    pub(super) fn of(error: io::Error) -> (Option<Self>, io::Error) {
        let Some(number) = error.raw_os_error() else { return (None, error) };
        let stage = Self::ALL.into_iter().find(|stage| *stage as i32 == number >> STAGE_SHIFT);
        match stage {
            Some(_) => {
                let number = number & ((1 << STAGE_SHIFT) - 1);
                (stage, io::Error::from_raw_os_error(number))
            }
            None => (None, error),
        }
    }

    /// The same error of another function, with this stage instead.
    #[cfg(target_os = "linux")]
    pub(super) fn of_other<T>(self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let number = error.raw_os_error().unwrap_or_default() & ((1 << STAGE_SHIFT) - 1);
            self.failed(&io::Error::from_raw_os_error(number))
        })
    }

    /// How to permit the failed action, for an operator.
    #[cfg(target_os = "linux")]
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Mounts => {
                "in a container, give it CAP_SYS_ADMIN and an AppArmor profile that permits mounts, \
                 or run Toolcrib outside of it"
            }
            Self::Network => {
                "give this process CAP_NET_ADMIN besides CAP_SYS_ADMIN, or neither and allow user \
                 namespaces (sysctl user.max_user_namespaces, user.max_net_namespaces)"
            }
            Self::Landlock => "update to Linux 6.2 or newer with Landlock in the parameter `lsm=`",
            Self::Filter => "use a kernel with CONFIG_SECCOMP_FILTER",
            _ => {
                "allow user namespaces (sysctl user.max_user_namespaces), or run with CAP_SYS_ADMIN"
            }
        }
    }

    /// The failed action, as a verb and its object.
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::Namespace => "make a PID namespace",
            Self::UserMap => "map the user into a user namespace",
            Self::Fork => "fork",
            Self::Session => "begin a session",
            Self::WorkingDir => "enter the working folder",
            Self::Limit => "set the limits",
            Self::Rights => "drop the capabilities",
            Self::Exec => "execute the program",
            Self::Mounts => "mount private temporary folders",
            Self::Network => "make a network namespace with a loopback interface",
            Self::Landlock => "enter a Landlock domain",
            Self::Filter => "install the filter of system calls",
            Self::Tried => "go on",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_and_its_error_come_back_apart() {
        for stage in Stage::ALL {
            let failed = stage.failed(&io::Error::from_raw_os_error(13));
            let (found, error) = Stage::of(failed);
            assert_eq!((found, error.raw_os_error()), (Some(stage), Some(13)));
        }
        let (found, error) = Stage::of(io::Error::from_raw_os_error(11));
        assert_eq!((found, error.raw_os_error()), (None, Some(11)));
        assert_eq!(Stage::of(io::Error::other("no number")).0, None);
    }
}
