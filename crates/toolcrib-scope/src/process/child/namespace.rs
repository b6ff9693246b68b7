//! A PID namespace for one program.
//!
//! The process that the host forks does not become the program. It enters a new PID namespace for
//! its children and forks twice:
//!
//! ```text
//! host ── attendant ─┬─ init       PID 1 of the namespace; lives until the lifeline breaks
//!                    └─ program    in a session of its own
//! ```
//!
//! When PID 1 of a namespace ends, the kernel kills everything in it, daemons included. `init` only
//! reads from the lifeline, a pipe whose other end the host holds: it ends when the host lets go of
//! that end, or dies. The attendant waits for the program, then ends `init`, and waits until the
//! namespace is empty. Then it ends as the program ended, so that whoever waits for it learns just
//! that, and knows that nothing is left. It passes SIGTERM on to the program's group.
//!
//! Neither of the two executes anything, so both hold copies of the host's memory, and both are set
//! to be neither read nor traced. The program is not even root to them: it loses `CAP_SYS_PTRACE`. What
//! remains for root to read of `init` are its command line and its environment; they are wiped.

use std::{
    ffi::CStr,
    io::{self, PipeReader},
    ops::Range,
    os::fd::{AsRawFd as _, RawFd},
    process::Command,
    ptr,
};

use libc::{c_int, c_uint, pid_t};

use super::{Stage, command, forget_handlers, open_max, signal};

/// How a namespace is had.
#[derive(Debug, Clone)]
pub(in crate::process) enum NamespaceKind {
    /// By right, as root or with `CAP_SYS_ADMIN`.
    Privileged,
    /// Inside a user namespace, in which the host's user and group are what they are outside.
    InUserNamespace {
        /// The line that maps the user.
        user: Vec<u8>,
        /// The line that maps the group.
        group: Vec<u8>,
    },
}

impl NamespaceKind {
    /// In a user namespace with this process's user and group.
    pub(in crate::process) fn in_user_namespace() -> Self {
        // SAFETY: system calls without pointers that cannot fail.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        Self::InUserNamespace {
            user: format!("{user} {user} 1\n").into_bytes(),
            group: format!("{group} {group} 1\n").into_bytes(),
        }
    }

    /// A command that only tries whether there can be one. It always fails, at [`Stage::Tried`] if
    /// there can.
    pub(in crate::process) fn trial(self) -> Command {
        command(move || {
            self.enter()?;
            let init = fork()?;
            if init == 0 {
                exit(0);
            }
            wait(init, 0);
            Err(Stage::Tried.failed(&io::Error::from_raw_os_error(0)))
        })
    }

    /// From here on, children are born into a new namespace.
    fn enter(&self) -> io::Result<()> {
        match self {
            Self::Privileged => unshare(libc::CLONE_NEWPID),
            Self::InUserNamespace { user, group } => {
                unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID)?;
                // Before that nobody may map a group; kernels before 3.19 have no such file.
                let _ = write(c"/proc/self/setgroups", b"deny");
                write(c"/proc/self/uid_map", user)?;
                write(c"/proc/self/gid_map", group)
            }
        }
    }
}

/// A namespace to be made.
pub(in crate::process) struct Namespace {
    pub(in crate::process) kind: NamespaceKind,
    /// The end to read from, open at the fork.
    pub(in crate::process) lifeline: PipeReader,
    /// Where this process's command line and environment stand, as [`told`] finds them.
    pub(in crate::process) told: Range<libc::off_t>,
}

impl Namespace {
    /// Starts a program in a new namespace. Returns in no process but one that failed.
    pub(super) fn start(&self, become_program: impl Fn() -> io::Result<()>) -> io::Result<()> {
        // The terminal of the host is not theirs: its Ctrl-C is heard by the host.
        // SAFETY: a system call without pointers.
        Stage::Session.check(unsafe { libc::setsid() })?;
        block_signals();
        self.kind.enter()?;
        // Before there is a program that could look.
        wipe(&self.told);
        hide();
        rename(c"toolcrib-init");
        let init = fork()?;
        if init == 0 {
            be_init(self.lifeline.as_raw_fd());
        }
        match fork() {
            Ok(0) => {
                leave_others_alone();
                show_own_processes();
                become_program()
            }
            Ok(program) => attend(init, program),
            Err(error) => {
                signal(init, libc::SIGKILL);
                wait(init, 0);
                Err(error)
            }
        }
    }
}

/// PID 1: reaps what is orphaned, and ends with the lifeline.
fn be_init(lifeline: RawFd) -> ! {
    // SAFETY: system calls on numbers. Children of who ignores SIGCHLD need no reaping. The
    // attendant has one thread, so its death is meant and not that of a thread.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::dup2(lifeline, 0);
    }
    close_from(1);
    let mut byte = 0_u8;
    loop {
        // SAFETY: one byte is there to be written to.
        let read = unsafe { libc::read(0, (&raw mut byte).cast(), 1) };
        if read != -1 || !interrupted() {
            exit(0);
        }
    }
}

/// Where the command line and the environment stand that this process was started with, and that
/// others read in `/proc`. Empty where the system does not say.
#[expect(clippy::disallowed_methods, reason = "it is about this process and no file")]
pub(in crate::process) fn told() -> Range<libc::off_t> {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in parentheses, which may hold anything; `arg_start` is the 48th
    // and `env_end` the 51st.
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
        // SAFETY: the zeros are as many as is said. Nothing here looks at what they overwrite; if
        // it is not there any more, or the file is not open, the call fails.
        let written = unsafe { libc::pwrite(memory, ZEROS.as_ptr().cast(), count, at) };
        if written <= 0 {
            break;
        }
        at += written as libc::off_t;
    }
}

/// Waits for the program, sees to it that nothing of it is left, and ends as it ended.
fn attend(init: pid_t, program: pid_t) -> ! {
    rename(c"toolcrib-wait");
    close_from(0);
    // SAFETY: system calls on a set of their type, which may begin as all zero.
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
        // SAFETY: the set is a valid one, and nothing is asked about the signal.
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
    // SAFETY: system calls on a set of their type, which may begin as all zero. What is not
    // readable, as `hide` has made it, leaves no core behind.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, number);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
        libc::kill(libc::getpid(), number);
    }
    exit(128 + number);
}

/// Root may read and trace everybody, and so `init` and the host. This program may not: its children
/// and what else has no more rights than it has are left to it.
fn leave_others_alone() {
    const CAP_SYS_PTRACE: c_int = 19;
    // SAFETY: a system call on numbers. For who has no such right it fails, which is as well.
    unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_PTRACE) };
}

/// In `/proc` the program finds its own namespace and nobody else: neither what runs on the host nor
/// the environment that it runs with. Where that is not allowed, as in many containers, it finds
/// the host's.
fn show_own_processes() {
    let of_its_own =
        unshare(libc::CLONE_NEWNS).is_ok() && mount(c"none", c"/", libc::MS_REC | libc::MS_SLAVE);
    if of_its_own {
        mount(c"proc", c"/proc", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC);
    }
}

/// `what` is the type of the file system as well.
fn mount(what: &CStr, onto: &CStr, flags: libc::c_ulong) -> bool {
    // SAFETY: the strings end in NUL, and no data is passed.
    unsafe { libc::mount(what.as_ptr(), onto.as_ptr(), what.as_ptr(), flags, ptr::null()) == 0 }
}

/// Nobody reads or traces this process from now on, nor its children until they execute something.
fn hide() {
    // SAFETY: a system call on numbers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
}

fn rename(name: &CStr) {
    // SAFETY: a system call on a string that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// A signal waits until it is asked for, and the host's handlers do not run here.
fn block_signals() {
    // SAFETY: system calls on a set of their type, which may begin as all zero.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
    }
    forget_handlers();
}

fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: a system call without pointers; the process has one thread.
    Stage::Namespace.check(unsafe { libc::unshare(flags) }).map(drop)
}

fn fork() -> io::Result<pid_t> {
    // SAFETY: the process has one thread, and does in both processes only what is done here.
    Stage::Fork.check(unsafe { libc::fork() })
}

/// The status of a child that has ended; `None` for one that has not, with `WNOHANG`.
fn wait(child: pid_t, options: c_int) -> Option<c_int> {
    let mut status = 0;
    loop {
        // SAFETY: the status is there to be written to.
        match unsafe { libc::waitpid(child, &raw mut status, options) } {
            0 => return None,
            -1 if interrupted() => {}
            // There is no such child, which no caller lets happen.
            -1 => return Some(libc::W_EXITCODE(255, 0)),
            _ => return Some(status),
        }
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}

fn exit(code: c_int) -> ! {
    // SAFETY: ends the process and runs nothing of the host's.
    unsafe { libc::_exit(code) }
}

fn write(file: &CStr, text: &[u8]) -> io::Result<()> {
    // SAFETY: the string ends in NUL, and the text is as long as is said.
    unsafe {
        let fd =
            Stage::UserMap.check(libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let written = libc::write(fd, text.as_ptr().cast(), text.len());
        let outcome = Stage::UserMap.check(if written == -1 { -1 } else { 0 });
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

/// Closes all descriptors from this one on, or with a flag marks them. Kernels before 5.9 cannot.
pub(super) fn close_range(first: RawFd, flags: c_uint) -> bool {
    // SAFETY: a system call on numbers. What is closed belongs to nobody in this process, which
    // ends, or becomes another program, without looking at it again.
    unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, flags) == 0 }
}
