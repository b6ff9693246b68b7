//! The parts of a repository of Git that run code.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use super::search::Entry;
use crate::{host_file::no_follow, steering::folded};

/// The name of a repository in a working tree.
pub(super) const FOLDER: &str = ".git";

pub(super) const REASON: &str = "Git may run what it says";

/// The folders of a repository with repositories in them.
pub(super) const WITH_REPOSITORIES: &[&str] = &["modules", "worktrees"];

/// The folders of a repository with data only.
pub(super) const WITHOUT_CODE: &[&str] = &["objects", "refs", "logs", "lfs"];

/// The longest configuration that is read.
const MOST_BYTES: u64 = 64 * 1024;

/// A part of a repository that runs code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitPart {
    Hooks,
    Config,
    Info,
    /// It leads to the configuration of another repository.
    Other,
}

impl GitPart {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "hooks" => Self::Hooks,
            "config" => Self::Config,
            "info" => Self::Info,
            "config.worktree" | "commondir" => Self::Other,
            _ => return None,
        })
    }
}

/// Whether Git would take a folder for a repository.
pub(super) fn is_repository(folder: &Path, entries: &[Entry]) -> bool {
    let has = |wanted: &str| entries.iter().any(|entry| entry.name == wanted);
    let is_named = folder.file_name().is_some_and(|name| folded(&name.to_string_lossy()) == FOLDER);
    is_named || has("head") && (has("objects") && has("refs") || has("commondir"))
}

/// The files in a new part that must not stay; `None`: all of it.
pub(super) fn harmful(part: GitPart, path: &Path) -> Option<Vec<PathBuf>> {
    let others = |stays: &dyn Fn(&str) -> bool| {
        #[expect(clippy::disallowed_methods, reason = "it decides which files stay")]
        let entries = fs::read_dir(path).ok()?;
        let entries = entries.collect::<Result<Vec<_>, _>>().ok()?;
        let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
        let others = entries
            .into_iter()
            .filter(|entry| !(is_file(entry) && stays(&entry.file_name().to_string_lossy())));
        Some(others.map(|entry| entry.path()).collect())
    };
    match part {
        GitPart::Hooks => others(&|name| name.ends_with(".sample")),
        GitPart::Info => others(&|name| ["exclude", "refs", "sparse-checkout"].contains(&name)),
        GitPart::Config => {
            let file = no_follow().read(true).open(path).ok()?;
            if !file.metadata().is_ok_and(|found| found.is_file() && found.len() <= MOST_BYTES) {
                return None;
            }
            let mut text = String::new();
            file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
            runs_nothing(&text).then(Vec::new)
        }
        GitPart::Other => None,
    }
}

/// The keys that run no program, with `*` for the name of a subsection.
const KEYS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.partialclone",
    "index.sparse",
    "init.defaultbranch",
    "user.name",
    "user.email",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "remote.*.url",
    "remote.*.fetch",
    "remote.*.mirror",
    "remote.*.tagopt",
    "remote.*.promisor",
    "remote.*.partialclonefilter",
    "branch.*.remote",
    "branch.*.merge",
    "branch.*.rebase",
];

/// Whether each key of a configuration is one that runs no program. A form that only some versions of
/// Git read counts as one that may.
fn runs_nothing(text: &str) -> bool {
    let mut section = None;
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some(header) = rest.strip_suffix(']').and_then(header) else { return false };
            section = Some(header);
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let Some(section) = &section else { return false };
        let key = format!("{section}.{}", key.trim().to_ascii_lowercase());
        if !KEYS.contains(&key.as_str()) || !is_plain(value.trim()) {
            return false;
        }
        if ["remote.*.url", "branch.*.remote"].contains(&key.as_str())
            && !is_plain_url(value.trim())
        {
            return false;
        }
    }
    true
}

/// `core`, `remote.*`.
fn header(text: &str) -> Option<String> {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric());
    match text.split_once(' ') {
        None => is_word(text).then(|| text.to_ascii_lowercase()),
        Some((name, sub)) => {
            let sub = sub.strip_prefix('"')?.strip_suffix('"')?;
            (is_word(name) && !sub.contains(['"', '\\', '\n']))
                .then(|| format!("{}.*", name.to_ascii_lowercase()))
        }
    }
}

/// Whether a value is written in one line without escapes.
fn is_plain(value: &str) -> bool {
    !value.contains('\\') && !value.chars().any(char::is_control)
}

/// Whether a URL is of a transport that runs no program but SSH, or is a path.
fn is_plain_url(url: &str) -> bool {
    let url = url.trim_matches('"');
    let is_known = match url.split_once("://") {
        Some((scheme, rest)) => {
            ["https", "http", "git", "ssh", "file"].contains(&scheme) && !rest.starts_with('-')
        }
        None => !url.contains("::"),
    };
    is_known && !url.starts_with('-') && !url.contains("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configuration_that_runs_no_program_stays() {
        let fresh = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
                     \tlogallrefupdates = true\n[remote \"origin\"]\n\
                     \turl = https://example.com/a.git\n\
                     \tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                     [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        assert!(runs_nothing(fresh) && runs_nothing(""));
        for more in [
            "[core]\n\tfsmonitor = evil",
            "[core]\n\tFsMonitor = evil",
            "[core]\n\thooksPath = hooks2",
            "[core] sshCommand = evil",
            "[include]\n\tpath = ../evil",
            "[includeIf \"gitdir:.\"]\n\tpath = ../evil",
            "[alias]\n\tst = !evil",
            "[filter \"x\"]\n\tclean = evil",
            "[diff \"x\"]\n\ttextconv = evil",
            "[remote \"x\"]\n\turl = ext::sh -c evil",
            "[remote \"x\"]\n\turl = \"ext::sh -c evil\"",
            "[remote \"x\"]\n\turl = -oProxyCommand=evil",
            "[remote \"x\"]\n\tuploadpack = evil",
            "[branch \"x\"]\n\tremote = ext::evil",
            "[credential]\n\thelper = !evil",
            "[url \"ext::evil\"]\n\tinsteadOf = https://",
            "[user]\n\tname = a\\\n\tb",
            "fsmonitor = evil",
        ] {
            assert!(!runs_nothing(&format!("{fresh}{more}\n")), "{more}");
        }
    }
}
