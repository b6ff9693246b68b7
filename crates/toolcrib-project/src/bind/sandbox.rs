//! The sandboxes of a project's programs: their tier, their folders and their hosts.

use std::{
    env, io, mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use toolcrib_capabilities::{
    http::{EgressProxy, HostPattern, HttpClient},
    process::{Sandbox, SandboxTier, UnsupportedError, sandbox_support},
};
use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};
use toolcrib_tools::command::SandboxSection;

use super::grant::{Grant, allowed_addresses};
use crate::{
    file::SandboxDefaultSection,
    private,
    user::{approvals::WeakProgram, state::StateFolder},
};

/// The programs that a problem names.
const NAMED: usize = 5;

/// The parts of every sandbox of a project.
#[derive(Debug, Clone, Default)]
pub(crate) struct SandboxDefaults {
    tier: SandboxTier,
    /// State and keys of Toolcrib.
    hidden: Arc<[PathBuf]>,
    /// Where new files go that steer code.
    trash: Option<PathBuf>,
    /// Whether programs start where their child processes can outlive them.
    allow_stray_children: bool,
    /// The programs so far whose sandbox hides neither.
    weak: Arc<Mutex<Vec<WeakProgram>>>,
    /// The programs so far that need a PID namespace, which this machine lacks.
    uncontained: Arc<Mutex<Vec<UncontainedProgram>>>,
}

/// A program whose child processes could outlive it on this machine.
#[derive(Debug)]
struct UncontainedProgram {
    name: String,
    at: Spot,
    missing: UnsupportedError,
    /// Declared by a file of `--import`: then the project is loaded without it.
    is_imported: bool,
}

/// A program whose sandbox is resolved.
pub(crate) struct SandboxedProgram<'a> {
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
    pub(crate) fn new(section: &SandboxDefaultSection, state: &StateFolder) -> Self {
        let own = [Some(state.path().to_owned()), private::config_of_user()];
        let of_user = StateFolder::of_user().map(|state| state.path().to_owned());
        Self {
            tier: section.tier.as_ref().map(|tier| tier.value).unwrap_or_default(),
            trash: Some(state.path().join("trash").join("sandbox")),
            hidden: own.into_iter().flatten().chain(of_user).collect(),
            allow_stray_children: section.allow_stray_children,
            weak: Arc::default(),
            uncontained: Arc::default(),
        }
    }

    /// The project's default of `allow_stray_children`.
    pub(crate) fn allows_stray_children(&self) -> bool {
        self.allow_stray_children
    }

    /// Notes a program for [`report_uncontained`](Self::report_uncontained).
    pub(crate) fn refuse_uncontained(
        &self,
        name: &str,
        at: &Spot,
        missing: UnsupportedError,
        is_imported: bool,
    ) {
        let (name, at) = (name.to_owned(), at.clone());
        self.uncontained.lock().push(UncontainedProgram { name, at, missing, is_imported });
    }

    /// Reports the programs that were noted since the last call as one error at the first of them, and those of
    /// imported files as one warning.
    pub(crate) fn report_uncontained(&self, problems: &Problems) {
        let found = mem::take(&mut *self.uncontained.lock());
        for imported in [false, true] {
            let programs: Vec<_> = found.iter().filter(|one| one.is_imported == imported).collect();
            let Some(first) = programs.first() else { continue };
            let names = suggest::quoted(programs.iter().take(NAMED).map(|one| &*one.name));
            let more = match programs.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!(
                "on this machine, child processes of {names}{more} could outlive them: {}",
                first.missing
            );
            let problem = if imported {
                let help =
                    "these servers cannot be used; add `--allow-stray-children` to start them";
                Diagnostic::warning(&first.at, message).help(help)
            } else {
                let help = "to start them all the same, write contain_children = \
                            \"where_possible\" below [sandbox]: then a process that leaves the \
                            process group of its program can outlive it; allow_stray_children = \
                            true permits the same for one program";
                Diagnostic::error(&first.at, message).help(help)
            };
            problems.push(problem);
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
    pub(crate) fn resolve(&self, program: &SandboxedProgram<'_>, problems: &Problems) -> Sandbox {
        let SandboxSection { tier: written, read, write, hosts, addresses } = program.section;
        let tier = self.tier(program.section, program.is_imported);
        if tier < SandboxTier::Files {
            self.weak.lock().push(WeakProgram { at: program.at.clone(), tier });
        }
        let at = written.as_ref().map_or(program.at, |tier| &tier.at);
        self.check_tier(program, tier, at, problems);
        let mut sandbox = Sandbox::from(tier);
        sandbox.hidden = self.hidden.to_vec();
        sandbox.trash.clone_from(&self.trash);
        sandbox.read = paths(read, program.base, problems);
        sandbox.write = paths(write, program.base, problems);
        if let Some((path, hidden)) = sandbox.conflict() {
            let message = format!(
                "{} conflicts with {}, which contains Toolcrib's state or keys",
                path.display(),
                hidden.display()
            );
            let at = write.first().or(read.first()).map_or(at, |first| &first.at);
            let help = "name the subfolders that the program needs";
            problems.push(Diagnostic::error(at, message).help(help));
        }
        let named: Vec<_> = hosts.iter().filter_map(|host| pattern(host, problems)).collect();
        if tier == SandboxTier::Full && !named.is_empty() {
            let addresses = allowed_addresses(addresses, program.grant, problems);
            let ports: Vec<_> =
                named.iter().filter_map(|(host, port)| Some((host.clone(), (*port)?))).collect();
            let patterns = named.into_iter().map(|(host, _)| host).collect();
            let client = HttpClient::builder().allowed_hosts(Some(patterns));
            let client = client.allow_addresses(addresses).build();
            sandbox.network = Some(EgressProxy::new(client).ports(ports));
        }
        sandbox
    }

    /// Records a tier that is too weak for a plugin or for a key of the sandbox, or that this machine
    /// does not enforce.
    fn check_tier(
        &self,
        program: &SandboxedProgram<'_>,
        tier: SandboxTier,
        at: &Spot,
        problems: &Problems,
    ) {
        let refuse = |at: &Spot, message: String, help: &str| {
            problems.push(Diagnostic::error(at, message).help(help));
        };
        let least = self.tier.max(SandboxTier::Tree);
        if let Some(grant) = program.grant.filter(|_| tier < least) {
            let plugin = &grant.plugin;
            let message = format!(
                "the plugin `{plugin}` weakens the project's sandbox `{least}` to `{tier}`"
            );
            refuse(at, message, &format!("remove the key, or write sandbox = \"{least}\""));
        }
        let SandboxSection { read, write, hosts, addresses, .. } = program.section;
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

/// A host, with a port if it is not one of the usual ones: `api.example.com:8443`.
fn pattern(host: &Located<Arc<str>>, problems: &Problems) -> Option<(HostPattern, Option<u16>)> {
    let refuse = |error: toolcrib_capabilities::http::InvalidHostPatternError| {
        let help = "a port may follow: `api.example.com:8443`";
        problems.push(Diagnostic::error(&host.at, error.to_string()).help(help));
    };
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port != 0);
    let (name, port) = match host.value.rsplit_once(':') {
        // The last part of an IPv6 address is none.
        Some((name, digits)) if !name.contains(':') || name.ends_with(']') => match port(digits) {
            Some(port) => (name, Some(port)),
            None => (&*host.value, None),
        },
        _ => (&*host.value, None),
    };
    Some((name.parse().map_err(refuse).ok()?, port))
}
