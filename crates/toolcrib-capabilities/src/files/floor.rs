//! The floor: files that no grant makes readable or writable.
//!
//! Rules apply to the resolved path, name by name, whatever links led to it. Names are folded
//! first, because some file systems ignore case, trailing dots and invisible characters. Files that
//! steer code are listed in `steering.rs`.

use std::path::{Path, PathBuf};

use crate::steering::{folded_names, steers};

/// The access that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Protected for reading and writing, by one or more names in sequence.
const CLOSED: &[(&[&str], &str)] = &[
    (&[".ssh"], CREDENTIALS),
    (&[".aws"], CREDENTIALS),
    (&[".azure"], CREDENTIALS),
    (&[".gnupg"], CREDENTIALS),
    (&[".kube"], CREDENTIALS),
    (&[".password-store"], CREDENTIALS),
    (&[".config", "gcloud"], CREDENTIALS),
    (&[".config", "gh"], CREDENTIALS),
    (&[".config", "op"], CREDENTIALS),
    (&[".docker", "config.json"], CREDENTIALS),
    (&[".cargo", "credentials"], CREDENTIALS),
    (&[".cargo", "credentials.toml"], CREDENTIALS),
    (&[".terraform.d", "credentials.tfrc.json"], CREDENTIALS),
    (&[".gem", "credentials"], CREDENTIALS),
    (&[".m2", "settings.xml"], CREDENTIALS),
    (&[".m2", "settings-security.xml"], CREDENTIALS),
    (&[".netrc"], CREDENTIALS),
    (&["_netrc"], CREDENTIALS),
    (&[".npmrc"], CREDENTIALS),
    (&[".yarnrc.yml"], CREDENTIALS),
    (&[".pypirc"], CREDENTIALS),
    (&[".git-credentials"], CREDENTIALS),
    (&[".config", "git", "credentials"], CREDENTIALS),
    (&[".pgpass"], CREDENTIALS),
    (&[".my.cnf"], CREDENTIALS),
    (&[".mylogin.cnf"], CREDENTIALS),
    (&[".vault-token"], CREDENTIALS),
    (&[".boto"], CREDENTIALS),
    (&[".s3cfg"], CREDENTIALS),
    (&[".htpasswd"], CREDENTIALS),
    (&[".claude", ".credentials.json"], CREDENTIALS),
    (&[".codex", "auth.json"], CREDENTIALS),
    (&[".local", "share", "keyrings"], KEYRING),
    (&[".local", "share", "kwalletd"], KEYRING),
    (&["library", "keychains"], KEYRING),
    (&[".mozilla"], BROWSER),
    (&[".thunderbird"], BROWSER),
    (&[".config", "google-chrome"], BROWSER),
    (&[".config", "chromium"], BROWSER),
    (&[".config", "bravesoftware"], BROWSER),
    (&[".config", "microsoft-edge"], BROWSER),
    (&["library", "application support", "google", "chrome"], BROWSER),
    (&["library", "application support", "firefox"], BROWSER),
    (&["library", "application support", "bravesoftware"], BROWSER),
    (&["library", "cookies"], BROWSER),
    (&[".git"], "the internals of a git repository"),
    (&[".toolcrib"], "the state of this program"),
];

/// Folders of the system, by absolute path.
const SYSTEM_CLOSED: &[&str] = &[
    "/proc",
    "/sys",
    "/dev",
    "/run/secrets",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
];

/// The same, for writing.
const SYSTEM_FIXED: &[&str] = &[
    "/etc",
    "/boot",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/system",
    "/library",
];

/// Ends of names of key files, for reading and writing.
const KEY_ENDS: &[&str] =
    &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".keytab"];

/// Beginnings of names of key files of SSH.
const KEY_STARTS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];

/// Ends of `.env` files without secrets.
const ENV_EXAMPLES: &[&str] = &[".example", ".sample", ".template", ".dist"];

const CREDENTIALS: &str = "it may contain credentials";
const KEYRING: &str = "it is a keyring";
const BROWSER: &str = "it is the profile of a browser or a mail program";
const SYSTEM: &str = "it belongs to the system";
const KEY: &str = "it may be a private key";

/// The rules, with the host's own files.
#[derive(Debug, Clone, Default)]
pub(super) struct Floor {
    /// Files and folders that are protected for writing.
    fixed: Vec<Vec<String>>,
    /// Files and folders that are protected for reading and writing.
    closed: Vec<Vec<String>>,
    /// A folder of the program's own state: the rules apply to the names below it.
    own: Option<Vec<String>>,
}

impl Floor {
    pub(super) fn new(fixed: &[PathBuf], closed: &[PathBuf]) -> Self {
        let all = |paths: &[PathBuf]| paths.iter().map(|path| folded_names(path)).collect();
        Self { fixed: all(fixed), closed: all(closed), own: None }
    }

    /// The rules within a folder of the program's own state.
    pub(super) fn of_own(self, folder: &Path) -> Self {
        Self { own: Some(folded_names(folder)), ..self }
    }

    /// Why a resolved, absolute path is protected, if it is.
    pub(super) fn objection(&self, path: &Path, access: Access) -> Option<&'static str> {
        let mut names = folded_names(path);
        if let Some(own) = self.own.as_ref().filter(|own| names.starts_with(own)) {
            names.drain(..own.len());
        }
        let begins = |begin: &Vec<String>| names.starts_with(begin);
        if self.closed.iter().any(begins) {
            return Some("it is the state of this program");
        }
        let closed = of_names(&names, CLOSED)
            .or_else(|| of_system(&names, SYSTEM_CLOSED))
            .or_else(|| names.iter().find_map(|name| of_secret(name)));
        if closed.is_some() || access == Access::Read {
            return closed;
        }
        if self.fixed.iter().any(begins) {
            return Some("it declares what this program may do");
        }
        let steered = (1..=names.len()).find_map(|end| steers(names.get(..end)?));
        steered.or_else(|| of_system(&names, SYSTEM_FIXED))
    }
}

fn of_names(names: &[String], rules: &[(&[&str], &'static str)]) -> Option<&'static str> {
    let is_in = |rule: &[&str]| names.windows(rule.len()).any(|some| some == rule);
    rules.iter().find(|(rule, _)| is_in(rule)).map(|(_, reason)| *reason)
}

fn of_system(names: &[String], folders: &[&str]) -> Option<&'static str> {
    let is_below = |folder: &&str| names.starts_with(&folded_names(Path::new(folder)));
    folders.iter().any(is_below).then_some(SYSTEM)
}

/// The rules about the form of a name.
fn of_secret(name: &str) -> Option<&'static str> {
    let is_env = name == ".env"
        || name.starts_with(".env.") && !ENV_EXAMPLES.iter().any(|end| name.ends_with(end));
    let is_history = name.starts_with('.') && name.ends_with("_history");
    if is_env || is_history {
        return Some(CREDENTIALS);
    }
    let is_key = KEY_ENDS.iter().any(|end| name.ends_with(end))
        || KEY_STARTS.iter().any(|start| {
            let rest = name.strip_prefix(start);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_', '-']))
        });
    is_key.then_some(KEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objection(path: &str, access: Access) -> Option<&'static str> {
        Floor::default().objection(Path::new(path), access)
    }

    #[test]
    fn names_are_compared_as_the_least_strict_file_system_does() {
        let closed = [
            "/home/u/.SSH/config",
            "/home/u/.ssh./config",
            "/home/u/.\u{200c}ssh/config",
            "/home/u/.\u{17f}sh/config",
            "/home/u/.Git/HEAD",
            "/home/u/.git::$INDEX_ALLOCATION/HEAD",
            "/home/u/.docker/Config.JSON",
            "/p/server.PEM",
            "/p/id_ed25519.pub",
            "/p/.env",
            "/p/.env.production",
            "/p/.bash_history",
            "/proc/self/environ",
            "/etc/shadow",
        ];
        for path in closed {
            assert!(objection(path, Access::Read).is_some(), "{path}");
            assert!(objection(path, Access::Write).is_some(), "{path}");
        }
        for path in [
            "/home/u/.bashrc",
            "/p/toolcrib.toml",
            "/etc/hosts",
            "/p/.vscode/tasks.json",
            "/p/.github/workflows/ci.yml",
            "/p/A.Code-Workspace",
        ] {
            assert!(objection(path, Access::Read).is_none(), "{path}");
            assert!(objection(path, Access::Write).is_some(), "{path}");
        }
        let open = [
            "/p/.env.example",
            "/p/id_mapping.txt",
            "/p/ssh/notes.md",
            "/p/keys.md",
            "/home/dev/x",
            "/p/etc/hosts",
            "/p/.github/dependabot.yml",
            "/p/.gitignore",
            "/p/history.md",
        ];
        for path in open {
            assert!(objection(path, Access::Write).is_none(), "{path}");
        }
    }
}
