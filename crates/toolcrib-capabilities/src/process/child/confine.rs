//! The sandbox of a program, entered between fork and exec: private folders and the network
//! namespace while the process has capabilities, Landlock and the filters after it has dropped them.

use std::{
    ffi::{CStr, CString},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    ptr,
};

use libc::{c_int, c_long, sock_filter};

use super::{Stage, namespace::unshare, network, own_proc::set_mounts};

/// A sandbox, made before the fork.
#[derive(Debug)]
pub(crate) struct Confinement {
    /// The Landlock ruleset.
    pub(crate) ruleset: OwnedFd,
    /// The bits of all rights on files that the ruleset handles.
    pub(crate) all: u64,
    /// The bits of the rights to read.
    pub(crate) reading: u64,
    /// Files and folders that stay writable. All else becomes read-only: Landlock does not deny
    /// changes of modes, owners, times and attributes.
    pub(crate) writable: Vec<CString>,
    /// Files and folders in writable ones that stay read-only.
    pub(crate) fixed: Vec<CString>,
    /// Folders that appear empty: no rule grants their files, but a rule on a folder around them
    /// would show their names.
    pub(crate) hidden: Vec<CString>,
    /// Folders that are replaced by empty ones in memory, which the program may use.
    pub(crate) private: Vec<CString>,
    /// Of the tier `full`.
    pub(crate) isolation: Option<Isolation>,
}

/// The network namespace and the filters of system calls.
#[derive(Debug)]
pub(crate) struct Isolation {
    pub(crate) filters: Vec<Vec<seccompiler::sock_filter>>,
    /// Receives the socket that listens for the proxy; `None` without a proxy.
    pub(crate) listener: Option<UnixStream>,
}

/// The size of a private folder, which is memory: 256 MiB, and 64 thousand files.
const TMP_OPTIONS: &CStr = c"mode=0700,size=256m,nr_inodes=64k";

impl Confinement {
    /// The part that needs capabilities. `own_mounts`: whether the process is in a mount namespace.
    pub(super) fn enter(&self, own_mounts: bool) -> io::Result<()> {
        if !own_mounts {
            return Err(Stage::Mounts.failed(&io::Error::from_raw_os_error(libc::EPERM)));
        }
        for path in &self.writable {
            Stage::Mounts.check(bind(path))?;
        }
        for path in &self.fixed {
            if bind(path) != 0 {
                let error = io::Error::last_os_error();
                // Another process has removed it.
                if error.raw_os_error() != Some(libc::ENOENT) {
                    return Err(Stage::Mounts.failed(&error));
                }
            }
        }
        Stage::Mounts.check(set_mounts(c"/", libc::MOUNT_ATTR_RDONLY, 0, libc::AT_RECURSIVE))?;
        for path in &self.writable {
            Stage::Mounts.check(set_mounts(path, 0, libc::MOUNT_ATTR_RDONLY, 0))?;
        }
        for folder in self.hidden.iter().chain(&self.private) {
            mount_private(folder)?;
        }
        // Both file systems are new, so that no rule made before the fork applies to them.
        for folder in &self.private {
            self.allow(folder, self.all)?;
        }
        self.allow(c"/proc", self.reading)?;
        if let Some(isolation) = &self.isolation {
            Stage::Network.of_other(unshare(libc::CLONE_NEWNET | libc::CLONE_NEWIPC))?;
            network::raise_loopback()?;
            if let Some(socket) = &isolation.listener {
                network::listen(socket.as_raw_fd())?;
            }
        }
        Ok(())
    }

    /// The part that no capability is needed for. Files can be opened only by the rules after it.
    pub(super) fn restrict(&self) -> io::Result<()> {
        let ruleset = self.ruleset.as_raw_fd();
        // SAFETY: a system call on numbers.
        let entered = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) };
        Stage::Landlock.check(as_int(entered)).map(drop)
    }

    /// The last part: the filters deny what the parts before needed.
    pub(super) fn filter(&self) -> io::Result<()> {
        for filter in self.isolation.iter().flat_map(|isolation| &isolation.filters) {
            install(filter)?;
        }
        Ok(())
    }

    fn allow(&self, folder: &CStr, allowed: u64) -> io::Result<()> {
        const PATH_BENEATH: c_int = 1;
        #[repr(C, packed)]
        struct Rule {
            allowed: u64,
            below: RawFd,
        }
        // SAFETY: the string ends in NUL, and the rule has the layout of the kernel.
        unsafe {
            let below = libc::open(folder.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
            Stage::Landlock.check(below)?;
            let rule = Rule { allowed, below };
            let added = libc::syscall(
                libc::SYS_landlock_add_rule,
                self.ruleset.as_raw_fd(),
                PATH_BENEATH,
                ptr::from_ref(&rule),
                0,
            );
            let outcome = Stage::Landlock.check(as_int(added));
            libc::close(below);
            outcome.map(drop)
        }
    }
}

/// The version of Landlock in this kernel.
pub(crate) fn landlock_version() -> io::Result<i32> {
    const VERSION: c_int = 1;
    // SAFETY: with this flag the call reads no structure.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u8>(), 0_usize, VERSION)
    };
    if version < 0 { Err(io::Error::last_os_error()) } else { Ok(as_int(version)) }
}

fn mount_private(folder: &CStr) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: the strings end in NUL.
    let mounted = unsafe {
        libc::mount(
            c"tmpfs".as_ptr(),
            folder.as_ptr(),
            c"tmpfs".as_ptr(),
            flags,
            TMP_OPTIONS.as_ptr().cast(),
        )
    };
    Stage::Mounts.check(mounted).map(drop)
}

/// Makes a mount of a path, which can have other attributes than its file system.
fn bind(path: &CStr) -> c_int {
    // SAFETY: the strings end in NUL, and no data is passed.
    unsafe {
        libc::mount(
            path.as_ptr(),
            path.as_ptr(),
            ptr::null(),
            libc::MS_BIND | libc::MS_REC,
            ptr::null(),
        )
    }
}

fn install(filter: &[seccompiler::sock_filter]) -> io::Result<()> {
    const _: () = assert!(size_of::<seccompiler::sock_filter>() == size_of::<sock_filter>());
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap_or(0),
        filter: filter.as_ptr().cast::<sock_filter>().cast_mut(),
    };
    // SAFETY: the kernel copies as many instructions as there are, of the same layout. A length of 0
    // is refused.
    let installed = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    Stage::Filter.check(as_int(installed)).map(drop)
}

fn as_int(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}
