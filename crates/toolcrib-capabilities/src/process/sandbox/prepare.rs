//! Everything about a sandbox that is made before the fork.

use std::{
    ffi::{CString, OsStr},
    io,
    os::unix::{ffi::OsStrExt as _, net::UnixStream},
    path::{Path, PathBuf},
};

use rustix::fs::{StatVfsMountFlags, statvfs};

use super::{Sandbox, SandboxTier, filter::filters, resolved, rules};
use crate::process::{
    ProcessError,
    child::{Confinement, Isolation, PROXY_PORT},
    guard::Guard,
};

/// The address of the proxy inside a network namespace.
pub(super) const PROXY: &str = "http://127.0.0.1:3128";
const _: () = assert!(PROXY_PORT == 3128, "both name the same port");

/// POSIX shared memory, which programs expect to write. Its host's content is not for them.
const SHARED_MEMORY: &str = "/dev/shm";
const TMP: &str = "/tmp";

/// A sandbox that a forked process can enter.
#[derive(Debug)]
pub(crate) struct PreparedSandbox {
    confinement: Confinement,
    tmp: &'static str,
    /// The end that receives the listener of the proxy.
    listener: Option<UnixStream>,
    guard: Guard,
}

impl PreparedSandbox {
    /// The private temporary folder.
    pub(super) fn tmp(&self) -> &OsStr {
        OsStr::new(self.tmp)
    }

    pub(super) fn has_proxy(&self) -> bool {
        self.listener.is_some()
    }

    pub(super) fn is_isolated(&self) -> bool {
        self.confinement.isolation.is_some()
    }

    /// The part for the forked process, the end that receives the listener of the proxy, and the
    /// part for the end of the program.
    pub(crate) fn split(self) -> (Confinement, (Option<UnixStream>, Guard)) {
        (self.confinement, (self.listener, self.guard))
    }
}

/// Prepares a sandbox of the tier `files` or `full`. Blocks for about a millisecond.
pub(crate) fn prepare(
    sandbox: &Sandbox,
    program: &Path,
    working_dir: &Path,
) -> Result<PreparedSandbox, ProcessError> {
    let unsupported =
        |source| ProcessError::Sandbox { program: program.to_owned(), tier: sandbox.tier, source };
    let of_folder = |path: PathBuf, source| ProcessError::SandboxFolder { path, source };
    let abi = rules::version().map_err(unsupported)?;
    if let Some((folder, hidden)) = sandbox.conflict() {
        let why = format!("it conflicts with {}, which no program may use", hidden.display());
        return Err(of_folder(folder.to_owned(), io::Error::other(why)));
    }
    let rules = rules::rules(sandbox, program, working_dir, abi).map_err(
        |rules::MissingRule { path, source }| match source.raw_os_error() {
            Some(libc::ELOOP) => {
                let why = "it contains a symbolic link; name the path that the link leads to";
                of_folder(path, io::Error::other(why))
            }
            _ => of_folder(path, source),
        },
    )?;
    let guard = Guard::new(&sandbox.write, sandbox.trash.clone())
        .map_err(|(path, source)| of_folder(path, source))?;
    let c_string = |path: &PathBuf| CString::new(path.as_os_str().as_bytes()).ok();
    let fixed = guard.fixed().iter().filter_map(c_string).collect();
    let tmp = private_tmp(sandbox, program, working_dir);
    let (isolation, listener) = match sandbox.tier {
        SandboxTier::Full => isolation(sandbox)
            .map_err(|source| ProcessError::Start {
                program: program.to_owned(),
                action: "make a pipe for its network",
                source,
            })
            .map(|(isolation, listener)| (Some(isolation), listener))?,
        _ => (None, None),
    };
    let has_shared_memory = Path::new(SHARED_MEMORY).is_dir();
    let folders = [SHARED_MEMORY].into_iter().filter(|_| has_shared_memory || tmp == SHARED_MEMORY);
    let folders = folders.chain([tmp].into_iter().filter(|tmp| *tmp != SHARED_MEMORY));
    let confinement = Confinement {
        ruleset: rules.ruleset,
        all: rules.all,
        reading: rules.reading,
        writable: writable(sandbox),
        fixed,
        hidden: hidden(sandbox),
        private: folders.filter_map(|folder| CString::new(folder).ok()).collect(),
        isolation,
    };
    Ok(PreparedSandbox { confinement, tmp, listener, guard })
}

/// `/tmp`, which most programs expect, unless something that the program may use is in there: the
/// private folder would cover it.
fn private_tmp(sandbox: &Sandbox, program: &Path, working_dir: &Path) -> &'static str {
    let used = [program, working_dir].map(resolved);
    let used = used.iter().chain(&sandbox.read).chain(&sandbox.write);
    let is_folder = Path::new(TMP).symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut used_there = used.filter(|path| path.as_os_str().as_bytes().starts_with(b"/tmp/"));
    if is_folder && used_there.next().is_none() && working_dir != Path::new(TMP) {
        TMP
    } else {
        SHARED_MEMORY
    }
}

/// The writable paths, except those on a read-only mount, which stays so.
fn writable(sandbox: &Sandbox) -> Vec<CString> {
    let is_writable = |path: &&PathBuf| {
        statvfs(path.as_path()).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::RDONLY))
    };
    let writable = sandbox.write.iter().filter(is_writable);
    writable.filter_map(|path| CString::new(path.as_os_str().as_bytes()).ok()).collect()
}

/// The hidden folders that exist.
fn hidden(sandbox: &Sandbox) -> Vec<CString> {
    let folders = sandbox.hidden.iter().map(|path| resolved(path)).filter(|path| path.is_dir());
    folders.filter_map(|path| CString::new(path.as_os_str().as_bytes()).ok()).collect()
}

#[cfg(feature = "http")]
fn wants_network(sandbox: &Sandbox) -> bool {
    sandbox.network.is_some()
}

#[cfg(not(feature = "http"))]
fn wants_network(_: &Sandbox) -> bool {
    false
}

fn isolation(sandbox: &Sandbox) -> io::Result<(Isolation, Option<UnixStream>)> {
    let (ours, theirs) = if wants_network(sandbox) {
        let (ours, theirs) = UnixStream::pair()?;
        // The message is there when the program is executed, or is never sent.
        ours.set_nonblocking(true)?;
        (Some(ours), Some(theirs))
    } else {
        (None, None)
    };
    let filters = filters().map_err(io::Error::other)?;
    Ok((Isolation { filters, listener: theirs }, ours))
}
