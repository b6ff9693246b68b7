use std::io::PipeWriter;

use super::child;

/// All processes of a program, which end with this value at the latest.
#[derive(Debug)]
pub(super) struct Tree {
    /// The awaited process, until it has ended: then its number may be reused.
    pid: Option<i32>,
    hold: TreeHandle,
}

/// How the processes are tracked.
#[derive(Debug)]
enum TreeHandle {
    /// The namespace, which ends when this is closed. The awaited process forwards SIGTERM.
    Lifeline(Option<PipeWriter>),
    /// The group of the awaited process.
    Group,
}

impl Tree {
    /// For a process, and the namespace that ends with the lifeline, or else its group.
    pub(super) fn new(pid: Option<u32>, lifeline: Option<PipeWriter>) -> Self {
        Self {
            pid: pid.and_then(|pid| i32::try_from(pid).ok()),
            hold: lifeline
                .map_or(TreeHandle::Group, |lifeline| TreeHandle::Lifeline(Some(lifeline))),
        }
    }

    /// Sends SIGTERM to the program and its group.
    pub(super) fn terminate(&self) {
        match (&self.hold, self.pid) {
            (TreeHandle::Lifeline(_), Some(pid)) => child::signal(pid, libc::SIGTERM),
            (TreeHandle::Group, Some(pid)) => child::signal(-pid, libc::SIGTERM),
            (_, None) => {}
        }
    }

    /// Kills all processes.
    pub(super) fn kill(&mut self) {
        match (&mut self.hold, self.pid) {
            (TreeHandle::Lifeline(lifeline), _) => *lifeline = None,
            (TreeHandle::Group, Some(pid)) => child::signal(-pid, libc::SIGKILL),
            (TreeHandle::Group, None) => {}
        }
    }

    /// The awaited process has ended, and so do all others.
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
