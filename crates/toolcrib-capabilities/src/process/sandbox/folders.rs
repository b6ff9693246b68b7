//! The folders of the system that every program may read, and the parts of a folder around hidden
//! paths.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::resolved;

/// Programs, libraries, and facts about the machine. Those that a system lacks are skipped.
const SYSTEM: [&str; 17] = [
    "/bin",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/run/current-system",
    "/sbin",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/usr",
    "/var/cache/fontconfig",
    // Often symlinks to a folder that is not granted.
    "/etc/localtime",
    "/etc/os-release",
    "/etc/resolv.conf",
];

/// Folders in which each entry is granted that every user may read: root's programs, which may read
/// more, get no more.
const FOR_ALL_USERS: [&str; 2] = ["/etc", "/opt"];

/// Keys and passwords below [`FOR_ALL_USERS`], which a program of root could read.
const SECRETS: [&str; 8] = [
    "/etc/cni",
    "/etc/docker",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/security",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/wireguard",
];

/// Devices without state that every program needs.
pub(super) const DEVICES: [&str; 5] =
    ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// The number of entries that a folder around a hidden path may have, since each becomes a rule.
const MAX_ENTRIES: usize = 20_000;

/// A part of what may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The file, or the folder with everything below.
    Whole(PathBuf),
    /// Only the names in the folder, and in the folders below.
    Names(PathBuf),
}

/// The parts of the system's folders, without symlinks.
pub(super) fn of_system(hidden: &[PathBuf]) -> io::Result<Vec<Part>> {
    let mut hidden = hidden.to_vec();
    hidden.extend(SECRETS.iter().map(|secret| resolved(Path::new(secret))));
    let mut parts = Vec::new();
    for path in SYSTEM {
        // A missing one, or one that this user cannot see, is of no use to the program either.
        if let Ok(path) = Path::new(path).canonicalize() {
            around(&path, &hidden, &mut parts)?;
        }
    }
    for folder in FOR_ALL_USERS.map(Path::new) {
        if folder.is_dir() {
            for entry in entries(folder)?.into_iter().filter(|entry| all_may_read(entry)) {
                around(&entry, &hidden, &mut parts)?;
            }
        }
    }
    // A program need not list a folder with secrets.
    parts.retain(|part| matches!(part, Part::Whole(_)));
    Ok(parts)
}

/// The parts of a path that contain no hidden path. Symlinks beside a hidden path are left out: they
/// might lead there.
pub(super) fn around(path: &Path, hidden: &[PathBuf], parts: &mut Vec<Part>) -> io::Result<()> {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return Ok(());
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        parts.push(Part::Whole(path.to_owned()));
        return Ok(());
    }
    parts.push(Part::Names(path.to_owned()));
    for entry in entries(path)? {
        around(&entry, hidden, parts)?;
    }
    Ok(())
}

/// The entries of a folder, without symlinks.
#[expect(clippy::disallowed_methods, reason = "it decides which files a program may read")]
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_symlink() {
            entries.push(entry.path());
        }
        if entries.len() > MAX_ENTRIES {
            let why = format!("it contains a hidden folder and more than {MAX_ENTRIES} entries");
            return Err(io::Error::other(why));
        }
    }
    Ok(entries)
}

fn all_may_read(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| {
        let needed = if found.is_dir() { 0o005 } else { 0o004 };
        found.permissions().mode() & needed == needed
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_around_a_hidden_path_is_split_and_links_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["a", "state/keys", "b/deep/hidden", "b/deep/shown"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("state"), root.join("link")).unwrap();
        let hidden = [root.join("state"), root.join("b/deep/hidden"), root.join("later")];
        let mut parts = Vec::new();
        around(&root, &hidden, &mut parts).unwrap();
        parts.sort_by_key(|part| format!("{part:?}"));
        let names = ["", "b", "b/deep"].map(|name| Part::Names(root.join(name)));
        let whole = ["a", "b/deep/shown", "file"].map(|name| Part::Whole(root.join(name)));
        let mut expected: Vec<_> = names.into_iter().chain(whole).collect();
        expected.sort_by_key(|part| format!("{part:?}"));
        // A joined empty name ends in a slash.
        let shown = |parts: &[Part]| format!("{parts:?}").replace("/\"", "\"");
        assert_eq!(shown(&parts), shown(&expected));

        let mut inside = Vec::new();
        around(&root.join("state/keys"), &hidden, &mut inside).unwrap();
        assert_eq!(inside, [], "nothing below a hidden path");
    }

    #[test]
    fn a_missing_path_is_resolved_up_to_its_existing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        assert_eq!(resolved(&root.join("link/not/yet")), root.join("real/not/yet"));
    }
}
