use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus};

use super::ExceededLimit;

/// The signal that ended a program.
pub(super) fn number(status: ExitStatus) -> i32 {
    status.signal().unwrap_or_default()
}

/// The limit that a signal enforces.
pub(super) fn limit(number: i32) -> Option<ExceededLimit> {
    match number {
        libc::SIGXCPU => Some(ExceededLimit::CpuTime),
        libc::SIGXFSZ => Some(ExceededLimit::FileSize),
        _ => None,
    }
}

/// Whether programs usually end by this signal if an allocation fails.
pub(super) fn may_lack_memory(number: i32) -> bool {
    matches!(number, libc::SIGABRT | libc::SIGBUS | libc::SIGSEGV | libc::SIGTRAP)
}

pub(super) fn name(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}
