//! The code between fork and exec, and the only unsafe code of the workspace.
//!
//! Without a namespace, the forked process becomes the program. With one, see [`namespace`].
#![allow(unsafe_code, reason = "what happens between fork and exec has no safe wrapper")]

#[cfg(target_os = "linux")]
mod acts;
#[cfg(target_os = "linux")]
mod confine;
#[cfg_attr(not(target_os = "linux"), path = "no_namespace.rs")]
mod namespace;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod own_proc;
#[cfg(target_os = "linux")]
mod rights;

use std::{
    ffi::CString,
    io,
    os::{fd::RawFd, unix::process::CommandExt as _},
    process::Command,
    ptr,
};

use libc::{c_char, c_int, pid_t};

pub(super) use self::namespace::{Namespace, NamespaceKind, ProcessLimit, Processes, told};
#[cfg(all(target_os = "linux", feature = "http"))]
pub(super) use self::network::receive;
#[cfg(target_os = "linux")]
pub(super) use self::{
    acts::{Act, Targets},
    confine::{Confinement, Isolation, landlock_version},
    network::PROXY_PORT,
};
use super::{ProcessLimits, memory, stage::Stage};

/// The arguments or the environment of a program, in the system's form.
pub(super) struct Strings {
    pointers: Vec<*const c_char>,
    /// The targets of the pointers. They stay in place when this is moved.
    _strings: Vec<CString>,
}

impl From<Vec<CString>> for Strings {
    fn from(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _strings: strings }
    }
}

// SAFETY: the pointers refer to strings that are owned by the same value and never changed.
unsafe impl Send for Strings {}
// SAFETY: as above.
unsafe impl Sync for Strings {}

/// How often the start of a program whose file is open for writing is repeated. A process that another
/// thread of the host forks has a copy of each open descriptor until it becomes a program or closes them:
/// a script that the host has just written is "busy" that long.
const BUSY_RETRIES: u32 = 200;

/// The pause before such a retry, in microseconds.
const BUSY_PAUSE_MICROS: libc::useconds_t = 10_000;

/// All data for the forked process, created before the fork: nothing is allocated after it.
pub(super) struct Plan {
    pub(super) finish: ChildAction,
    pub(super) working_dir: CString,
    pub(super) limits: ProcessLimits,
    pub(super) namespace: Option<Namespace>,
    /// The sandbox, which needs a namespace.
    #[cfg(target_os = "linux")]
    pub(super) confinement: Option<Confinement>,
    /// Whether the program keeps the host's capabilities.
    pub(super) keeps_rights: bool,
}

/// The end of a forked process.
pub(super) enum ChildAction {
    /// It becomes a program.
    Execute {
        program: CString,
        /// Begins with the program's own name.
        argv: Strings,
        environment: Strings,
    },
    /// It tries the acts of a self-test.
    #[cfg(target_os = "linux")]
    Try { acts: Vec<Act>, targets: Targets },
}

impl Plan {
    /// A command that follows this plan. Of the command itself only the pipes are used.
    pub(super) fn into_command(self) -> Command {
        // Found out here, because it allocates.
        let is_measured = memory::is_measured();
        command(move || self.start(is_measured))
    }

    /// Returns only in a process that failed.
    fn start(&self, is_measured: bool) -> io::Result<()> {
        let become_program = |proc| self.become_program(proc, is_measured);
        match &self.namespace {
            Some(namespace) => namespace.start(become_program),
            None => become_program(Proc::Hosts { own_mounts: false }),
        }
    }

    #[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "there is no /proc"))]
    fn become_program(&self, proc: Proc, is_measured: bool) -> io::Result<()> {
        // SAFETY: a system call without pointers.
        Stage::Session.check(unsafe { libc::setsid() })?;
        forget_handlers();
        unblock_signals();
        // SAFETY: system calls without pointers.
        unsafe { libc::umask(libc::umask(0o022) | 0o022) };
        close_on_exec();
        #[cfg(target_os = "linux")]
        if let Some(confinement) = &self.confinement {
            confinement.enter(proc.has_own_mounts())?;
        }
        self.limits.set(is_measured)?;
        #[cfg(target_os = "linux")]
        if !self.keeps_rights {
            rights::drop_all()?;
            match &self.confinement {
                Some(confinement) => confinement.restrict()?,
                None if proc.is_hosts() => rights::leave_others_alone(),
                None => {}
            }
        }
        // After the limits and rights are set, so that an error here is one that the program would
        // meet. SAFETY: the string is owned and ends in NUL.
        Stage::WorkingDir.check(unsafe { libc::chdir(self.working_dir.as_ptr()) })?;
        #[cfg(target_os = "linux")]
        if let Some(confinement) = &self.confinement {
            confinement.filter()?;
        }
        self.finish.run()
    }
}

impl ChildAction {
    /// Returns only in a process that failed.
    fn run(&self) -> io::Result<()> {
        let (program, argv, environment) = match self {
            Self::Execute { program, argv, environment } => {
                (program, &argv.pointers, &environment.pointers)
            }
            #[cfg(target_os = "linux")]
            Self::Try { acts, targets } => acts::perform(acts, targets),
        };
        let mut retries = 0..BUSY_RETRIES;
        loop {
            // Not one of the functions that pass a file they cannot execute to a shell. SAFETY: all
            // strings are owned and end in NUL, both arrays end in a null pointer.
            unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::ExecutableFileBusy || retries.next().is_none() {
                return Err(Stage::Exec.failed(&error));
            }
            // SAFETY: a system call without pointers.
            unsafe { libc::usleep(BUSY_PAUSE_MICROS) };
        }
    }
}

/// The processes that a program sees in `/proc`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proc {
    /// Those of its namespace.
    Own,
    /// All processes of the host.
    Hosts {
        /// Whether the program is in a mount namespace.
        own_mounts: bool,
    },
}

#[cfg(target_os = "linux")]
impl Proc {
    fn has_own_mounts(self) -> bool {
        matches!(self, Self::Own | Self::Hosts { own_mounts: true })
    }

    fn is_hosts(self) -> bool {
        matches!(self, Self::Hosts { .. })
    }
}

/// Prevents other processes of the same user from reading this process's memory and environment,
/// and from tracing it: a program without a namespace is one of them. Costs one system call.
pub(super) fn hide_host() {
    #[cfg(target_os = "linux")]
    rights::set_readable(false);
}

/// A command that runs a function in the forked process before the program.
#[expect(clippy::disallowed_methods, reason = "the one place where processes are started")]
fn command(function: impl FnMut() -> io::Result<()> + Send + Sync + 'static) -> Command {
    let mut command = Command::new("/");
    // SAFETY: the function, of this module alone, makes system calls on existing data. It neither
    // allocates nor takes a lock that another thread of the host may have.
    unsafe { command.pre_exec(function) };
    command
}

/// Sends a signal to a process, or to a group if `pid` is negative. A missing process is ignored.
pub(super) fn signal(pid: pid_t, signal: c_int) {
    // SAFETY: a system call without pointers.
    unsafe { libc::kill(pid, signal) };
}

/// Resets all signals to their default action: the program does not ignore those that the host
/// ignores.
fn forget_handlers() {
    for number in 1..=64 {
        // Uses the system call itself: the C library reserves two signals, which may have been
        // inherited as ignored. All zero is the default action, and bytes after the structure are
        // not read.
        #[cfg(target_os = "linux")]
        // SAFETY: the array is larger than the structure on any machine. For a number that is not a
        // signal, or cannot be set, the call fails, which is harmless.
        unsafe {
            let default = [0_u64; 8];
            let set_bytes: usize = 8;
            libc::syscall(
                libc::SYS_rt_sigaction,
                number,
                default.as_ptr(),
                ptr::null_mut::<u64>(),
                set_bytes,
            );
        }
        #[cfg(not(target_os = "linux"))]
        // SAFETY: a system call without pointers, which fails as above.
        unsafe {
            libc::signal(number, libc::SIG_DFL);
        }
    }
}

fn unblock_signals() {
    // SAFETY: system calls on a set of their type, for which all zero is a valid start.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Closes at exec all descriptors that the host opened without close-on-exec.
fn close_on_exec() {
    #[cfg(target_os = "linux")]
    if namespace::close_range(3, libc::CLOSE_RANGE_CLOEXEC) {
        return;
    }
    for fd in 3..open_max() {
        // SAFETY: a system call without pointers; it fails on a closed descriptor.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// One more than the largest possible descriptor.
fn open_max() -> RawFd {
    // SAFETY: a system call that fills a structure of its type, for which all zero is a valid
    // start.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit
    };
    RawFd::try_from(limit.rlim_cur).unwrap_or(RawFd::MAX)
}

#[derive(Clone, Copy)]
enum Limit {
    Core,
    AddressSpace,
    Data,
    FileSize,
    CpuTime,
    #[cfg(target_os = "linux")]
    Processes,
}

impl ProcessLimits {
    /// Sets all limits except that on processes, which needs a namespace.
    ///
    /// `is_measured`: whether the host measures the memory.
    fn set(&self, is_measured: bool) -> io::Result<()> {
        limit(Limit::Core, 0)?;
        let limits = [
            (Limit::AddressSpace, self.memory.filter(|_| !is_measured)),
            (Limit::Data, self.memory.max(self.total_memory).filter(|_| is_measured)),
            (Limit::FileSize, self.file_size),
            (Limit::CpuTime, self.cpu_time.map(|time| time.as_secs().max(1))),
        ];
        for (which, most) in limits {
            if let Some(most) = most {
                limit(which, most)?;
            }
        }
        Ok(())
    }
}

/// Lowers a limit; a lower limit of the host stays.
fn limit(which: Limit, most: u64) -> io::Result<()> {
    let resource = match which {
        Limit::Core => libc::RLIMIT_CORE,
        Limit::AddressSpace => libc::RLIMIT_AS,
        Limit::Data => libc::RLIMIT_DATA,
        Limit::FileSize => libc::RLIMIT_FSIZE,
        Limit::CpuTime => libc::RLIMIT_CPU,
        #[cfg(target_os = "linux")]
        Limit::Processes => libc::RLIMIT_NPROC,
    };
    // SIGXCPU at the limit shows the reason; a program that ignores it is killed a second later.
    let killed_at = if matches!(which, Limit::CpuTime) { most.saturating_add(1) } else { most };
    // SAFETY: system calls on a structure of their type, for which all zero is a valid start.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        Stage::Limit.check(libc::getrlimit(resource, &raw mut limit))?;
        limit.rlim_max = limit.rlim_max.min(killed_at);
        limit.rlim_cur = limit.rlim_cur.min(limit.rlim_max).min(most);
        Stage::Limit.check(libc::setrlimit(resource, &raw const limit)).map(drop)
    }
}
