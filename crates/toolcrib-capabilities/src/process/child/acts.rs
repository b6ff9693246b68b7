//! The acts that a self-test tries in a sandbox, in place of a program.

use std::{ffi::CString, os::fd::RawFd, ptr};

use libc::{c_int, c_long, c_void};

/// An act that a sandbox denies, or that it must permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    SeeHost,
    GainRights,
    Mount,
    ChangeRoot,
    ReadHidden,
    ReadThroughProc,
    ListHidden,
    CreateOutside,
    TruncateOutside,
    LinkHidden,
    ChangeMode,
    AbstractSocket,
    HostLoopback,
    RouteOut,
    UnixSocket,
    HypervisorSocket,
    DatagramPair,
    Trace,
    NewUserNamespace,
    NewNamespaceByClone3,
    IoUring,
    Bpf,
    Performance,
    PageFaults,
    Keyring,
    TypeIntoTerminal,
    ReadGranted,
    WriteGranted,
    WriteTemporary,
    OwnLoopback,
}

/// The targets of the acts.
#[derive(Debug)]
pub(crate) struct Targets {
    pub(crate) hidden_file: CString,
    /// The same file, through the root folder of the namespace's first process.
    pub(crate) hidden_by_proc: CString,
    pub(crate) hidden_folder: CString,
    /// In the hidden folder, not existing.
    pub(crate) new_file: CString,
    pub(crate) granted_file: CString,
    pub(crate) granted_new: CString,
    /// In the granted folder, not existing.
    pub(crate) link: CString,
    pub(crate) temporary: CString,
    /// A listener of the host on 127.0.0.1.
    pub(crate) port: u16,
    /// The name of a listening abstract Unix socket of the host.
    pub(crate) socket: Vec<u8>,
}

/// An address that is routed to no one: for documentation only.
const NOWHERE: [u8; 4] = [192, 0, 2, 1];
const LOOPBACK: [u8; 4] = [127, 0, 0, 1];

/// Tries the acts, writes the error number of each, 0 for success, to stdout, and ends the process.
pub(super) fn perform(acts: &[Act], targets: &Targets) -> ! {
    // SAFETY: system calls on numbers. Nothing here waits; the alarm ends what waits all the same.
    unsafe { libc::alarm(10) };
    for act in acts {
        let number = match attempt(*act, targets) {
            0.. => 0,
            // SAFETY: the C library's error number of this thread.
            _ => unsafe { *libc::__errno_location() },
        };
        // SAFETY: as many bytes are readable.
        unsafe { libc::write(1, ptr::from_ref(&number).cast(), size_of::<c_int>()) };
    }
    // SAFETY: ends the process and runs no code of the host.
    unsafe { libc::_exit(0) }
}

/// A result below 0 is a denial.
fn attempt(act: Act, targets: &Targets) -> c_long {
    const CREATE: c_int = libc::O_WRONLY | libc::O_CREAT;
    // SAFETY: system calls on strings that end in NUL, on structures of their types, and on null
    // pointers that the kernel refuses. A success changes this process only, which ends, or files of
    // the self-test.
    unsafe {
        match act {
            // The parent is in the host's namespace, and not visible in this one.
            Act::SeeHost => denied_if(libc::getppid() == 0, libc::ESRCH),
            Act::GainRights => {
                denied_if(libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, libc::EPERM)
            }
            Act::Mount => libc::mount(
                c"tmpfs".as_ptr(),
                c"/".as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                ptr::null::<c_void>(),
            )
            .into(),
            Act::ChangeRoot => libc::chroot(c"/".as_ptr()).into(),
            Act::ReadHidden => open(&targets.hidden_file, libc::O_RDONLY),
            Act::ReadThroughProc => open(&targets.hidden_by_proc, libc::O_RDONLY),
            Act::ListHidden => open(&targets.hidden_folder, libc::O_RDONLY | libc::O_DIRECTORY),
            Act::CreateOutside => open(&targets.new_file, CREATE),
            Act::TruncateOutside => libc::truncate(targets.hidden_file.as_ptr(), 0).into(),
            Act::LinkHidden => {
                libc::link(targets.hidden_file.as_ptr(), targets.link.as_ptr()).into()
            }
            Act::ChangeMode => libc::chmod(targets.hidden_file.as_ptr(), 0o777).into(),
            Act::AbstractSocket => connect_unix(&targets.socket),
            Act::HostLoopback => connect(libc::SOCK_STREAM, LOOPBACK, targets.port),
            Act::RouteOut => connect(libc::SOCK_DGRAM, NOWHERE, 9),
            Act::UnixSocket => libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).into(),
            Act::HypervisorSocket => libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0).into(),
            Act::DatagramPair => {
                let mut pair: [RawFd; 2] = [0; 2];
                libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()).into()
            }
            Act::Trace => libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0),
            Act::NewUserNamespace => libc::unshare(libc::CLONE_NEWUSER).into(),
            Act::NewNamespaceByClone3 => libc::syscall(libc::SYS_clone3, ptr::null::<u8>(), 0),
            Act::IoUring => libc::syscall(libc::SYS_io_uring_setup, 1, ptr::null::<u8>()),
            Act::Bpf => libc::syscall(libc::SYS_bpf, 0, ptr::null::<u8>(), 0),
            Act::Performance => {
                libc::syscall(libc::SYS_perf_event_open, ptr::null::<u8>(), 0, -1, -1, 0)
            }
            Act::PageFaults => libc::syscall(libc::SYS_userfaultfd, 0),
            // The session's keyring, which exists for each process.
            Act::Keyring => libc::syscall(libc::SYS_keyctl, 0, -3, 0),
            Act::TypeIntoTerminal => libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()).into(),
            Act::ReadGranted => open(&targets.granted_file, libc::O_RDONLY),
            Act::WriteGranted => open(&targets.granted_new, CREATE),
            Act::WriteTemporary => open(&targets.temporary, CREATE),
            // No listener has this port: a refusal shows that the interface is up.
            Act::OwnLoopback => {
                let refused = connect(libc::SOCK_STREAM, LOOPBACK, 9) == -1
                    && *libc::__errno_location() == libc::ECONNREFUSED;
                denied_if(!refused, libc::ENETUNREACH)
            }
        }
    }
}

/// A result as of a system call, for a state that is read.
fn denied_if(denied: bool, number: c_int) -> c_long {
    if denied {
        // SAFETY: the C library's error number of this thread.
        unsafe { *libc::__errno_location() = number };
        -1
    } else {
        0
    }
}

fn open(path: &CString, flags: c_int) -> c_long {
    // SAFETY: the string ends in NUL.
    unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) }.into()
}

fn connect(kind: c_int, ip: [u8; 4], port: u16) -> c_long {
    // SAFETY: system calls on a structure of their type, for which all zero is a valid start.
    unsafe {
        let socket = libc::socket(libc::AF_INET, kind | libc::SOCK_CLOEXEC, 0);
        if socket == -1 {
            return -1;
        }
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes(ip);
        let bytes = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        libc::connect(socket, (&raw const address).cast(), bytes).into()
    }
}

/// Connects to an abstract Unix socket.
fn connect_unix(name: &[u8]) -> c_long {
    // SAFETY: as above. The first byte of the path stays 0, which makes the name abstract.
    unsafe {
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if socket == -1 {
            return -1;
        }
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in address.sun_path.iter_mut().skip(1).zip(name) {
            *to = from.cast_signed() as libc::c_char;
        }
        let bytes = size_of::<libc::sa_family_t>() + 1 + name.len();
        libc::connect(socket, (&raw const address).cast(), bytes as libc::socklen_t).into()
    }
}
