//! A PID namespace for one program.
//!
//! The process that the host forks does not become the program. It enters a new PID namespace for
//! its children and forks twice:
//!
//! ```text
//! host ── attendant ─┬─ init       PID 1 of the namespace; lives until the lifeline breaks
//!                    └─ program    in a separate session
//! ```
//!
//! When PID 1 of a namespace ends, the kernel kills everything in it, daemons included. `init` only
//! reads from the lifeline, a pipe whose other end the host has: it ends when the host closes that
//! end, or dies. The attendant waits for the program, then ends `init`, and waits until the
//! namespace is empty. Then it ends with the program's exit status, so that its waiter gets this
//! status and knows that nothing is left. It forwards SIGTERM to the program's group.
//!
//! Neither of the two executes a program, so both have copies of the host's memory, and both are
//! protected from being read or traced. The program has no capability to bypass this. The command
//! line and the environment of `init`, part of which any user may read, are wiped.

use std::{
    ffi::CStr,
    io::{self, PipeReader},
    ops::Range,
    os::fd::{AsRawFd as _, RawFd},
    process::Command,
    ptr,
};

use libc::{c_int, c_uint, pid_t};

use super::{
    Limit, Proc, Stage, command, forget_handlers, limit, open_max, own_proc, rights::set_readable,
    signal,
};

/// How a namespace is created.
#[derive(Debug, Clone)]
pub(crate) enum NamespaceKind {
    /// With privileges, as root or with `CAP_SYS_ADMIN`.
    Privileged,
    /// Inside a user namespace, in which the host's user and group keep their ids.
    InUserNamespace {
        /// The line that maps the user.
        user: Vec<u8>,
        /// The line that maps the group.
        group: Vec<u8>,
    },
}

/// How the number of processes in a namespace is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessLimit {
    /// Not possible on this machine.
    None,
    /// By `RLIMIT_NPROC`, which counts the processes of a user namespace separately since Linux
    /// 5.14. It does not limit root.
    Rlimit,
    /// By `pid_max`, which each PID namespace has since Linux 6.14.
    PidMax,
}

impl ProcessLimit {
    /// The limit found by a trial, from its number.
    pub(crate) fn of(number: Option<i32>) -> Self {
        [Self::Rlimit, Self::PidMax]
            .into_iter()
            .find(|limit| number == Some(*limit as i32))
            .unwrap_or(Self::None)
    }
}

/// The limit of one namespace.
pub(crate) enum Processes {
    Unlimited,
    /// The value of `RLIMIT_NPROC`.
    Rlimit(u64),
    /// The value of `pid_max`, as text.
    PidMax(Vec<u8>),
}

impl Processes {
    /// The limit for this number of processes and threads of the program.
    pub(crate) fn at_most(most: Option<u32>, by: ProcessLimit) -> Self {
        match (most, by) {
            (None, _) | (_, ProcessLimit::None) => Self::Unlimited,
            // The attendant and `init` are counted too.
            (Some(most), ProcessLimit::Rlimit) => Self::Rlimit(u64::from(most) + 2),
            (Some(most), ProcessLimit::PidMax) => Self::PidMax(own_proc::pid_max(most)),
        }
    }
}

impl NamespaceKind {
    /// In a user namespace with this process's user and group.
    pub(crate) fn in_user_namespace() -> Self {
        // SAFETY: system calls without pointers that cannot fail.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        Self::InUserNamespace {
            user: format!("{user} {user} 1\n").into_bytes(),
            group: format!("{group} {group} 1\n").into_bytes(),
        }
    }

    /// A command that only tests whether a namespace is possible. It always fails, at
    /// [`Stage::Tried`] if it is possible; the number of that error is a [`ProcessLimit`].
    ///
    /// `may_set_pid_max`: whether each namespace has a `pid_max`; otherwise it is the machine's.
    pub(crate) fn trial(self, may_set_pid_max: bool) -> Command {
        let pid_max = own_proc::pid_max(1);
        command(move || {
            self.enter()?;
            let init = fork()?;
            if init == 0 {
                exit(self.try_limits(may_set_pid_max.then_some(&*pid_max)) as c_int);
            }
            let status = wait(init, 0).unwrap_or_default();
            let limit = libc::WEXITSTATUS(status);
            Err(Stage::Tried.failed(&io::Error::from_raw_os_error(limit)))
        })
    }

    /// The limit that is effective for PID 1 of a namespace, the second process in it.
    fn try_limits(&self, pid_max: Option<&[u8]>) -> ProcessLimit {
        if matches!(self, Self::InUserNamespace { .. }) {
            // If processes outside are counted too, three is not enough.
            let fits_three = limit(Limit::Processes, 3).is_ok() && forks();
            if fits_three && limit(Limit::Processes, 2).is_ok() && !forks() {
                return ProcessLimit::Rlimit;
            }
        }
        match pid_max {
            Some(pid_max) if own_proc::show(Some(pid_max)).limited().is_ok() => {
                ProcessLimit::PidMax
            }
            _ => ProcessLimit::None,
        }
    }

    /// From here on, children are born into a new namespace.
    fn enter(&self) -> io::Result<()> {
        match self {
            Self::Privileged => unshare(libc::CLONE_NEWPID),
            Self::InUserNamespace { user, group } => {
                // The files below belong to root unless this process is readable.
                set_readable(true);
                unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID)?;
                // Without it no user may map a group; kernels before 3.19 have no such file.
                let _ = write(Stage::UserMap, c"/proc/self/setgroups", b"deny");
                write(Stage::UserMap, c"/proc/self/uid_map", user)?;
                write(Stage::UserMap, c"/proc/self/gid_map", group)
            }
        }
    }
}

/// A namespace to be created.
pub(crate) struct Namespace {
    pub(crate) kind: NamespaceKind,
    /// The end to read from, open at the fork.
    pub(crate) lifeline: PipeReader,
    /// The memory range of this process's command line and environment, as [`told`] finds it.
    pub(crate) told: Range<libc::off_t>,
    pub(crate) processes: Processes,
}

impl Namespace {
    /// Starts a program in a new namespace. Returns only in a process that failed.
    pub(super) fn start(&self, become_program: impl Fn(Proc) -> io::Result<()>) -> io::Result<()> {
        // A new session without the host's terminal: its Ctrl-C goes to the host only. SAFETY: a
        // system call without pointers.
        Stage::Session.check(unsafe { libc::setsid() })?;
        block_signals();
        self.kind.enter()?;
        // Before a program exists that could read it.
        wipe(&self.told);
        set_readable(false);
        rename(c"toolcrib-init");
        let init = fork()?;
        if init == 0 {
            be_init(self.lifeline.as_raw_fd());
        }
        match fork() {
            Ok(0) => {
                let proc = self.limit_and_show()?;
                become_program(proc)
            }
            Ok(program) => attend(init, program),
            Err(error) => {
                signal(init, libc::SIGKILL);
                wait(init, 0);
                Err(error)
            }
        }
    }

    /// Sets the limit on processes and mounts the namespace's `/proc`. Returns the processes
    /// that the program sees there.
    fn limit_and_show(&self) -> io::Result<Proc> {
        let pid_max = match &self.processes {
            Processes::PidMax(pid_max) => Some(&**pid_max),
            Processes::Rlimit(most) => {
                limit(Limit::Processes, *most)?;
                None
            }
            Processes::Unlimited => None,
        };
        let shown = own_proc::show(pid_max);
        let own_mounts = shown.own_mounts;
        let proc = if shown.own_proc { Proc::Own } else { Proc::Hosts { own_mounts } };
        if pid_max.is_some() {
            shown.limited()?;
        }
        Ok(proc)
    }
}

/// PID 1: reaps orphans, and ends with the lifeline.
fn be_init(lifeline: RawFd) -> ! {
    // SAFETY: system calls on numbers. Children of a process that ignores SIGCHLD need no reaping.
    // The attendant has one thread, so its death is meant and not that of a thread.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::dup2(lifeline, 0);
    }
    close_from(1);
    let mut byte = 0_u8;
    loop {
        // SAFETY: one byte is writable.
        let read = unsafe { libc::read(0, (&raw mut byte).cast(), 1) };
        if read != -1 || !interrupted() {
            exit(0);
        }
    }
}

/// The memory range of the command line and the environment that this process was started with,
/// which others read in `/proc`. Empty if the system does not report it.
#[expect(clippy::disallowed_methods, reason = "it reads about this process, not a file")]
pub(crate) fn told() -> Range<libc::off_t> {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in parentheses, which may contain anything; `arg_start` is the
    // 48th and `env_end` the 51st.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace();
    let mut addresses = fields.skip(48 - 3).map(|field| field.parse().unwrap_or(0));
    let (start, end) = (addresses.next(), addresses.nth(2));
    start.unwrap_or(0)..end.unwrap_or(0)
}

/// Overwrites a range of this process's own memory, which is a copy of the host's.
fn wipe(range: &Range<libc::off_t>) {
    const ZEROS: [u8; 4096] = [0; 4096];
    // SAFETY: a system call on a string that ends in NUL.
    let memory = unsafe { libc::open(c"/proc/self/mem".as_ptr(), libc::O_WRONLY) };
    let mut at = range.start;
    while at < range.end {
        let count = ZEROS.len().min(usize::try_from(range.end - at).unwrap_or(0));
        // SAFETY: the number of zeros is as stated. No code here reads the overwritten memory; if
        // it is not mapped any more, or the file is not open, the call fails.
        let written = unsafe { libc::pwrite(memory, ZEROS.as_ptr().cast(), count, at) };
        if written <= 0 {
            break;
        }
        at += written as libc::off_t;
    }
}

/// Waits for the program, ensures that nothing of it is left, and ends with its status.
fn attend(init: pid_t, program: pid_t) -> ! {
    rename(c"toolcrib-wait");
    close_from(0);
    // SAFETY: system calls on a set of their type, for which all zero is a valid start.
    let awaited = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        set
    };
    let status = loop {
        if let Some(status) = wait(program, libc::WNOHANG) {
            break status;
        }
        // SAFETY: the set is valid, and no information about the signal is requested.
        if unsafe { libc::sigwaitinfo(&raw const awaited, ptr::null_mut()) } == libc::SIGTERM {
            signal(-program, libc::SIGTERM);
        }
    };
    signal(init, libc::SIGKILL);
    wait(init, 0);
    end_as(status)
}

fn end_as(status: c_int) -> ! {
    if !libc::WIFSIGNALED(status) {
        exit(libc::WEXITSTATUS(status));
    }
    let number = libc::WTERMSIG(status);
    // SAFETY: system calls on a set of their type, for which all zero is a valid start. A process
    // that is not readable, as `start` has set it, leaves no core dump.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, number);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
        libc::kill(libc::getpid(), number);
    }
    exit(128 + number);
}

fn rename(name: &CStr) {
    // SAFETY: a system call on a string that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Signals stay pending until they are waited for, and the host's handlers do not run here.
fn block_signals() {
    // SAFETY: system calls on a set of their type, for which all zero is a valid start.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
    }
    forget_handlers();
}

pub(super) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: a system call without pointers; the process has one thread.
    Stage::Namespace.check(unsafe { libc::unshare(flags) }).map(drop)
}

fn fork() -> io::Result<pid_t> {
    // SAFETY: the process has one thread, and both processes run only the code here.
    Stage::Fork.check(unsafe { libc::fork() })
}

/// Whether another process can be forked; it ends at once.
fn forks() -> bool {
    match fork() {
        Ok(0) => exit(0),
        Ok(child) => wait(child, 0).is_some(),
        Err(_) => false,
    }
}

/// The status of a child that has ended; `None` for a running one, with `WNOHANG`.
fn wait(child: pid_t, options: c_int) -> Option<c_int> {
    let mut status = 0;
    loop {
        // SAFETY: the status is writable.
        match unsafe { libc::waitpid(child, &raw mut status, options) } {
            0 => return None,
            -1 if interrupted() => {}
            // There is no such child, which no caller causes.
            -1 => return Some(libc::W_EXITCODE(255, 0)),
            _ => return Some(status),
        }
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}

fn exit(code: c_int) -> ! {
    // SAFETY: ends the process and runs no code of the host.
    unsafe { libc::_exit(code) }
}

pub(super) fn write(stage: Stage, file: &CStr, text: &[u8]) -> io::Result<()> {
    // SAFETY: the string ends in NUL, and the text has the stated length.
    unsafe {
        let fd = stage.check(libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let written = libc::write(fd, text.as_ptr().cast(), text.len());
        let outcome = stage.check(if written == -1 { -1 } else { 0 });
        libc::close(fd);
        outcome.map(drop)
    }
}

/// Closes every descriptor from this one on.
fn close_from(first: RawFd) {
    if !close_range(first, 0) {
        for fd in first..open_max() {
            // SAFETY: nothing in this process uses a descriptor from here on.
            unsafe { libc::close(fd) };
        }
    }
}

/// Closes all descriptors from this one on, or with a flag marks them. Kernels before 5.9 do not
/// support it.
pub(super) fn close_range(first: RawFd, flags: c_uint) -> bool {
    // SAFETY: a system call on numbers. The closed descriptors are not used in this process, which
    // ends, or becomes another program, without using them again.
    unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, flags) == 0 }
}
