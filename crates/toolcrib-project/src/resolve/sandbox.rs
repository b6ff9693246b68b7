//! The sandboxes of a project's programs: their tier, their folders and their hosts.

use std::{
    env, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use toolcrib_capabilities::{
    http::{EgressProxy, HostPattern, HttpClient},
    process::{Sandbox, SandboxTier, sandbox_support},
};
use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_tools::command::SandboxSection;

use super::grant::{Grant, allowed_addresses};
use crate::{approvals::WeakProgram, private, state::StateFolder};

/// The parts of every sandbox of a project.
#[derive(Debug, Clone, Default)]
pub(crate) struct SandboxDefaults {
    tier: SandboxTier,
    /// State and keys of Toolcrib.
    hidden: Arc<[PathBuf]>,
    /// The programs so far whose sandbox hides neither.
    weak: Arc<Mutex<Vec<WeakProgram>>>,
}

/// A program whose sandbox is resolved.
pub(crate) struct Sandboxed<'a> {
    pub(crate) section: &'a SandboxSection,
    /// The folder that relative paths begin at.
    pub(crate) base: &'a Path,
    /// Of a plugin.
    pub(crate) grant: Option<&'a Grant>,
    /// Declared by an `mcpServers` file: the project's default does not apply.
    pub(crate) is_imported: bool,
    /// Where it is declared.
    pub(crate) at: &'a Spot,
}

impl SandboxDefaults {
    pub(crate) fn new(tier: Option<&Located<SandboxTier>>, state: &StateFolder) -> Self {
        let own = [Some(state.path().to_owned()), private::config_of_user()];
        let of_user = StateFolder::of_user().map(|state| state.path().to_owned());
        Self {
            tier: tier.map(|tier| tier.value).unwrap_or_default(),
            hidden: own.into_iter().flatten().chain(of_user).collect(),
            weak: Arc::default(),
        }
    }

    /// The programs whose sandbox does not hide state and keys.
    pub(crate) fn weak_programs(&self) -> Vec<WeakProgram> {
        self.weak.lock().clone()
    }

    /// The tier of a program.
    pub(crate) fn tier(&self, section: &SandboxSection, is_imported: bool) -> SandboxTier {
        let default = if is_imported { SandboxTier::default() } else { self.tier };
        section.tier.as_ref().map_or(default, |tier| tier.value)
    }

    /// The sandbox of a program; problems are recorded, among them a tier that this machine does not
    /// enforce.
    pub(crate) fn resolve(&self, program: &Sandboxed<'_>, problems: &Problems) -> Sandbox {
        let SandboxSection { tier: written, read, write, hosts, addresses } = program.section;
        let tier = self.tier(program.section, program.is_imported);
        if tier < SandboxTier::Files {
            self.weak.lock().push(WeakProgram { at: program.at.clone(), tier });
        }
        let at = written.as_ref().map_or(program.at, |tier| &tier.at);
        let refuse = |at: &Spot, message: String, help: &str| {
            problems.push(Diagnostic::error(at, message).help(help));
        };
        if let Some(grant) = program.grant
            && tier < self.tier.max(SandboxTier::Tree)
        {
            let least = self.tier.max(SandboxTier::Tree);
            let message = format!(
                "the plugin `{}` weakens the project's sandbox `{least}` to `{tier}`",
                grant.plugin
            );
            refuse(at, message, &format!("remove the key, or write sandbox = \"{least}\""));
        }
        for (key, needed, paths) in [
            ("sandbox_read", SandboxTier::Files, read),
            ("sandbox_write", SandboxTier::Files, write),
            ("sandbox_hosts", SandboxTier::Full, hosts),
            ("sandbox_addresses", SandboxTier::Full, addresses),
        ] {
            if let Some(first) = paths.first().filter(|_| tier < needed) {
                let message = format!("`{key}` has no effect in the sandbox `{tier}`");
                let help = format!("remove it, or write sandbox = \"{needed}\"");
                refuse(&first.at, message, &help);
            }
        }
        // The lower tiers are checked with `allow_stray_children`.
        if tier > SandboxTier::Tree
            && let Err(missing) = sandbox_support(tier)
        {
            let message = format!("this machine does not enforce the sandbox `{tier}`: {missing}");
            refuse(at, message, "run `toolcrib doctor` to see the tiers that it enforces");
        }
        let mut sandbox = Sandbox::from(tier);
        sandbox.hidden = self.hidden.to_vec();
        sandbox.read = paths(read, program.base, problems);
        sandbox.write = paths(write, program.base, problems);
        if let Some((path, hidden)) = sandbox.conflict() {
            let message = format!(
                "{} conflicts with {}, which contains Toolcrib's state or keys",
                path.display(),
                hidden.display()
            );
            let at = write.first().or(read.first()).map_or(at, |first| &first.at);
            refuse(at, message, "name the subfolders that the program needs");
        }
        let patterns: Vec<_> = hosts.iter().filter_map(|host| pattern(host, problems)).collect();
        if tier == SandboxTier::Full && !patterns.is_empty() {
            let addresses = allowed_addresses(addresses, program.grant, problems);
            let client = HttpClient::builder().allowed_hosts(Some(patterns));
            sandbox.network = Some(EgressProxy::new(client.allow_addresses(addresses).build()));
        }
        sandbox
    }
}

/// The real paths; those that cannot be granted are recorded.
fn paths(written: &[Located<Arc<str>>], base: &Path, problems: &Problems) -> Vec<PathBuf> {
    let resolve = |path: &Located<Arc<str>>| {
        let shown = path.value.escape_debug();
        let refuse = |message: String, help: &str| {
            problems.push(Diagnostic::error(&path.at, message).help(help));
        };
        let Some(joined) = expanded(&path.value, base) else {
            refuse(format!("`{shown}` begins with `~`, and HOME is not set"), "set HOME");
            return None;
        };
        match joined.canonicalize() {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                refuse(
                    format!("`{shown}` does not exist"),
                    "create it before Toolcrib starts, or remove it from the list",
                );
                None
            }
            Err(error) => {
                refuse(format!("`{shown}` cannot be used: {error}"), "name another path");
                None
            }
        }
    };
    written.iter().filter_map(resolve).collect()
}

/// A path from the base folder, or from the user's home for `~`.
fn expanded(written: &str, base: &Path) -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    match written.strip_prefix('~') {
        Some("") => home(),
        Some(rest) if rest.starts_with('/') => Some(home()?.join(rest.trim_start_matches('/'))),
        _ => Some(base.join(written)),
    }
}

fn pattern(host: &Located<Arc<str>>, problems: &Problems) -> Option<HostPattern> {
    let refuse = |error: toolcrib_capabilities::http::InvalidHostPatternError| {
        problems.push(Diagnostic::error(&host.at, error.to_string()));
    };
    host.value.parse().map_err(refuse).ok()
}
