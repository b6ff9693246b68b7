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
    /// No failure: the trial succeeded.
    Tried,
}

impl Stage {
    const ALL: [Self; 9] = [
        Self::Namespace,
        Self::UserMap,
        Self::Fork,
        Self::Session,
        Self::WorkingDir,
        Self::Limit,
        Self::Rights,
        Self::Exec,
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
