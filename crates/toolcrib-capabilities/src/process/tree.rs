use std::{
    io::{self, PipeWriter},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{ExceededLimit, ProcessLimits, child, memory::MemoryGuard};

/// All processes of a program, which end with this value at the latest.
#[derive(Debug)]
pub(super) struct Tree {
    state: Arc<Mutex<TreeState>>,
    _memory_guard: Option<MemoryGuard>,
}

/// The state that a signal to the processes needs.
#[derive(Debug)]
pub(super) struct TreeState {
    /// The awaited process, until it has ended: then its number may be reused.
    pid: Option<i32>,
    handle: TreeHandle,
    exceeded: Option<ExceededLimit>,
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
    ///
    /// # Errors
    /// If the limits on memory cannot be enforced; the processes are killed then.
    pub(super) fn new(
        pid: Option<u32>,
        lifeline: Option<PipeWriter>,
        limits: ProcessLimits,
    ) -> io::Result<Self> {
        let is_attended = lifeline.is_some();
        let state = TreeState {
            pid: pid.and_then(|pid| i32::try_from(pid).ok()),
            handle: lifeline
                .map_or(TreeHandle::Group, |lifeline| TreeHandle::Lifeline(Some(lifeline))),
            exceeded: None,
        };
        let mut tree = Self { state: Arc::new(Mutex::new(state)), _memory_guard: None };
        if let Some(pid) = pid {
            tree._memory_guard =
                MemoryGuard::new(limits, pid, is_attended, Arc::clone(&tree.state))?;
        }
        Ok(tree)
    }

    /// Sends SIGTERM to the program and its group.
    pub(super) fn terminate(&self) {
        let state = self.state.lock();
        match (&state.handle, state.pid) {
            (TreeHandle::Lifeline(_), Some(pid)) => child::signal(pid, libc::SIGTERM),
            (TreeHandle::Group, Some(pid)) => child::signal(-pid, libc::SIGTERM),
            (_, None) => {}
        }
    }

    /// Kills all processes.
    pub(super) fn kill(&mut self) {
        self.state.lock().kill();
    }

    /// The awaited process has ended, and so do all others. Returns the limit that the host enforced, if
    /// they exceeded one.
    pub(super) fn ended(&mut self) -> Option<ExceededLimit> {
        let mut state = self.state.lock();
        state.kill();
        state.pid = None;
        state.exceeded
    }
}

impl TreeState {
    fn kill(&mut self) {
        match (&mut self.handle, self.pid) {
            (TreeHandle::Lifeline(lifeline), _) => *lifeline = None,
            (TreeHandle::Group, Some(pid)) => child::signal(-pid, libc::SIGKILL),
            (TreeHandle::Group, None) => {}
        }
    }

    /// Kills all processes, unless they have ended, because of a limit.
    pub(super) fn exceed(&mut self, limit: ExceededLimit) {
        if self.pid.is_some() {
            self.exceeded = Some(limit);
            self.kill();
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}
