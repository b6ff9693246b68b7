use std::io::PipeWriter;

use super::child;

/// All that a program started, which ends with this at the latest.
#[derive(Debug)]
pub(super) struct Tree {
    /// The process that is waited for, until it has ended: then its number may be another's.
    pid: Option<i32>,
    hold: Hold,
}

/// By what the tree is held.
#[derive(Debug)]
enum Hold {
    /// The namespace, which ends when this is closed. The process that is waited for passes SIGTERM
    /// on.
    Lifeline(Option<PipeWriter>),
    /// The group that the process that is waited for leads.
    Group,
}

impl Tree {
    /// Of a process, and of the namespace that ends with the lifeline, or else of its group.
    pub(super) fn new(pid: Option<u32>, lifeline: Option<PipeWriter>) -> Self {
        Self {
            pid: pid.and_then(|pid| i32::try_from(pid).ok()),
            hold: lifeline.map_or(Hold::Group, |lifeline| Hold::Lifeline(Some(lifeline))),
        }
    }

    /// Asks the program to end, and those that are in its group.
    pub(super) fn terminate(&self) {
        match (&self.hold, self.pid) {
            (Hold::Lifeline(_), Some(pid)) => child::signal(pid, libc::SIGTERM),
            (Hold::Group, Some(pid)) => child::signal(-pid, libc::SIGTERM),
            (_, None) => {}
        }
    }

    /// Kills everything.
    pub(super) fn kill(&mut self) {
        match (&mut self.hold, self.pid) {
            (Hold::Lifeline(lifeline), _) => *lifeline = None,
            (Hold::Group, Some(pid)) => child::signal(-pid, libc::SIGKILL),
            (Hold::Group, None) => {}
        }
    }

    /// The process that is waited for has ended, and so does everything else.
    pub(super) fn ended(&mut self) {
        self.kill();
        self.pid = None;
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}
