//! The Landlock ruleset of a program: the files that it may read and change.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::{
    Sandbox,
    folders::{DEVICES, Part, around, of_system},
    resolved,
};
use crate::process::{UnsupportedError, child::landlock_version};

/// Linux 6.2: before, a file could be truncated that may not be written.
const NEEDED: i32 = 3;

/// The last version that this code knows the rights of.
const KNOWN: i32 = 9;

/// A ruleset that a process can enter, and the rights that its kernel knows.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) ruleset: OwnedFd,
    /// All rights on files, as the kernel's bits.
    pub(super) all: u64,
    /// The rights to read files and list folders.
    pub(super) reading: u64,
}

/// A file or folder that no rule can be made for.
#[derive(Debug)]
pub(super) struct MissingRule {
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

/// The version of Landlock in this kernel.
///
/// # Errors
/// If there is none, or one that is too old.
pub(super) fn version() -> Result<ABI, UnsupportedError> {
    let version = landlock_version().map_err(|error| {
        UnsupportedError::new(match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => {
                "Landlock is disabled on this machine; add `landlock` to the \
                                       kernel's parameter `lsm=` and restart it"
                    .to_owned()
            }
            Some(libc::ENOSYS) => "this kernel has no Landlock; it needs Linux 6.2 or newer with \
                                   CONFIG_SECURITY_LANDLOCK"
                .to_owned(),
            _ => format!(
                "Landlock is denied to this process ({error}); allow its system calls in the \
                 container's seccomp profile"
            ),
        })
    })?;
    if version < NEEDED {
        return Err(UnsupportedError::new(format!(
            "this kernel's Landlock has version {version}, and version {NEEDED} is needed; update \
             to Linux 6.2 or newer"
        )));
    }
    Ok(ABI::from(version.min(KNOWN)))
}

/// The rules for a program with this working folder.
pub(super) fn rules(
    sandbox: &Sandbox,
    program: &Path,
    working_dir: &Path,
    abi: ABI,
) -> Result<Rules, MissingRule> {
    let mut builder = Builder::new(abi).map_err(|source| no_rule(Path::new("/"), source))?;
    let hidden: Vec<PathBuf> = sandbox.hidden.iter().map(|path| resolved(path)).collect();
    let parts_of = |path: &Path, parts: &mut Vec<Part>| {
        around(path, &hidden, parts).map_err(|source| no_rule(path, source))
    };
    let mut parts = of_system(&hidden).map_err(|source| no_rule(Path::new("/etc"), source))?;
    // If one of them is missing, the start itself says so.
    let implied = [Some(program), Some(working_dir).filter(|dir| !contains_home(dir))];
    for path in implied.into_iter().flatten() {
        if let Ok(path) = path.canonicalize() {
            parts_of(&path, &mut parts)?;
        }
    }
    for path in &sandbox.read {
        parts_of(path, &mut parts)?;
    }
    let reading = AccessFs::from_read(abi);
    for part in &parts {
        let (path, access) = match part {
            Part::Whole(path) => (path, reading),
            Part::Names(path) => (path, AccessFs::ReadDir.into()),
        };
        match builder.allow(path, access) {
            // An entry that another process has removed or replaced since it was listed.
            Err(MissingRule { source, .. }) if is_gone(&source) && !sandbox.read.contains(path) => {
            }
            allowed => allowed?,
        }
    }
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::from_write(abi);
    for path in DEVICES.map(Path::new).into_iter().filter(|path| path.exists()) {
        builder.allow(path, device)?;
    }
    for path in &sandbox.write {
        builder.allow(path, AccessFs::from_all(abi))?;
    }
    let reading = (AccessFs::ReadFile | AccessFs::ReadDir).bits();
    let all = AccessFs::from_all(abi).bits();
    let ruleset = builder.finish().map_err(|source| no_rule(Path::new("/"), source))?;
    Ok(Rules { ruleset, all, reading })
}

/// Whether a path does not exist, or leads through a symlink.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ELOOP)
}

/// Whether the user's home folder is in this folder, or is it: then its files are only granted where
/// declared.
fn contains_home(folder: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.is_some_and(|home| resolved(&home).starts_with(resolved(folder)))
}

struct Builder {
    ruleset: RulesetCreated,
    of_files: BitFlags<AccessFs>,
}

impl Builder {
    fn new(abi: ABI) -> io::Result<Self> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))
            .map_err(io::Error::other)?;
        let scopes = Scope::from_all(abi);
        let ruleset = if scopes.is_empty() {
            ruleset
        } else {
            ruleset.scope(scopes).map_err(io::Error::other)?
        };
        let ruleset = ruleset.create().map_err(io::Error::other)?;
        Ok(Self { ruleset, of_files: AccessFs::from_file(abi) })
    }

    /// The path contains no symlink, or is refused.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), MissingRule> {
        let failed = |source: io::Error| no_rule(path, source);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let file = match openat2(CWD, path, flags, Mode::empty(), resolve) {
            Ok(file) => file,
            Err(error) => return Err(failed(error.into())),
        };
        let found = fstat(&file).map_err(|error| failed(error.into()))?;
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let access = if is_folder { access } else { access & self.of_files };
        let rule = PathBeneath::new(file, access);
        (&mut self.ruleset)
            .set_compatibility(CompatLevel::HardRequirement)
            .add_rule(rule)
            .map(drop)
            .map_err(|error| failed(io::Error::other(error)))
    }

    fn finish(self) -> io::Result<OwnedFd> {
        Option::<OwnedFd>::from(self.ruleset).ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

fn no_rule(path: &Path, source: io::Error) -> MissingRule {
    MissingRule { path: path.to_owned(), source }
}
