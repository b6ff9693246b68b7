//! The actions of a project with its user's authority, from its declarations: programs, requests to
//! hosts, files outside, and variables of the environment.

mod pin;
mod programs;
mod tables;
mod variables;

use std::{collections::BTreeSet, path::Path, sync::Arc};

use toolcrib_capabilities::http::parse_url;
use toolcrib_config::{Located, Spot};
use toolcrib_mcp::server::{self, expand};
use toolcrib_models::{ModelName, Vendor};
use toolcrib_tools::{DeclaredKind as _, ExternalAccess, ProgramAccess};

pub(crate) use self::tables::facts;
use self::{pin::unpinned, programs::note_programs, variables::shown};
use crate::{
    bind::{mcp_files::McpFiles, part::Part},
    build::{DatabaseEntry, DatabaseSpecs, FolderEntry, FolderSpecs, references_in},
    file::{
        HubSection, McpSection, McpSettings, ModelSection, OAuthSection, Pair, ProjectFile,
        ServeSection, Text, ToolSection, TransportSection, secrets::SecretSource,
    },
    read::{owner::ForeignFile, reads::ReadFiles, root::Root},
    user::{
        models::configured_base_url,
        trust::power::{Action, Power},
    },
};

/// All actions that a project may perform with its user's authority. Records the programs of the
/// project.
pub(crate) fn powers(
    file: &ProjectFile,
    parts: &[Part],
    mcp_files: &McpFiles,
    (databases, folders): (&DatabaseSpecs, &FolderSpecs),
    root: &Root,
) -> Vec<Power> {
    let collector = Collector { file, project: root.path(), reads: root.reads() };
    let mut powers = Vec::new();
    for part in parts {
        let of_part = &part.declared;
        powers.extend(of_part.mcp.iter().filter_map(|section| collector.mcp(section, &part.root)));
        powers.extend(of_part.mcp.iter().filter_map(|section| collector.login(section)));
        powers.extend(of_part.hubs.iter().flat_map(|hub| collector.hub(hub, &part.root)));
        let of_tools = of_part.tools.iter().flat_map(|tool| collector.tool(tool, &part.root));
        let mut of_tools: Vec<_> = of_tools.collect();
        // The tools of a document do the same.
        of_tools.dedup();
        powers.extend(of_tools);
    }
    powers.extend(file.hooks.iter().flat_map(|hook| {
        let name = hook.name.as_ref().map(|name| &*name.value).unwrap_or_default();
        let (accesses, texts) = (hook.command.external_access(), hook.command.secret_texts());
        collector.declared(accesses, &texts, (&hook.tool.at, &format!("hook `{name}`")), root)
    }));
    powers.extend(mcp_files.declared().map(|(name, at, transport)| {
        let mut sections = parts.iter().flat_map(|part| &part.declared.mcp);
        let section = sections.find(|section| *section.name.value == **name);
        collector.of_file(name, at, transport, section.map(|section| &section.settings))
    }));
    powers.extend(databases.entries().iter().filter_map(|database| collector.database(database)));
    powers.extend(collector.stores());
    powers.extend(folders.entries().iter().filter_map(folder));
    powers.extend(file.models.iter().filter_map(|model| collector.model(model)));
    powers.extend(collector.named_models());
    powers.extend(file.serve.tokens.iter().filter_map(|token| {
        let secret = token.secret.as_ref()?;
        let reads = collector.variables_of([&*secret.value]);
        Some(power(&token.at, "a token of `serve`".to_owned(), Action::Read, reads))
    }));
    powers.extend(collector.serve(root));
    powers
}

struct Collector<'a> {
    file: &'a ProjectFile,
    project: &'a Path,
    reads: &'a ReadFiles,
}

fn power(at: &Spot, of: String, action: Action, reads: BTreeSet<String>) -> Power {
    let reads = reads.into_iter().collect();
    Power { at: at.clone(), of, action, reads, foreign: Vec::new(), needs_trust: true }
}

impl Collector<'_> {
    fn mcp(&self, section: &McpSection, root: &Root) -> Option<Power> {
        let of = format!("MCP server `{}`", section.name.value);
        let addresses = words_of(&section.settings.allow_addresses);
        let mut foreign = Vec::new();
        let of_callers = || section.callers.iter().flat_map(|caller| texts_of(&caller.pairs));
        let (action, texts, pairs): (_, Vec<&Text>, &[Pair]) = match &section.transport {
            TransportSection::Program(program) => {
                let words = || std::iter::once(&program.command).chain(&program.args);
                let expanded: Option<Vec<_>> = words().map(value).collect();
                let dir = match &program.cwd {
                    Some(cwd) => root.path().join(value(cwd).unwrap_or_default()),
                    None => root.path().to_owned(),
                };
                foreign = self.note(&expanded.unwrap_or_default(), &dir, &dir);
                let command: Vec<_> = words().map(|word| word.value.to_string()).collect();
                let action = Action::Start {
                    unpinned: unpinned(&command),
                    command,
                    working_dir: program.cwd.as_ref().map(|cwd| cwd.value.to_string()),
                    sets: shown(texts_of(&program.env).chain(of_callers())),
                    hosts: words_of(&section.settings.sandbox.hosts),
                };
                (action, words().chain(&program.cwd).collect(), &program.env)
            }
            TransportSection::Endpoint(endpoint) => {
                let action = Action::Dial { url: dialed(&endpoint.url.value), addresses };
                (action, vec![&endpoint.url], &endpoint.headers)
            }
            TransportSection::OfFile | TransportSection::Broken => return None,
        };
        let texts = texts.into_iter().map(|text| &*text.value);
        let texts = texts.chain(texts_of(pairs).chain(of_callers()).map(|(_, value)| value));
        Some(Power { foreign, ..power(&section.name.at, of, action, self.read_by(texts)) })
    }

    /// The login at the authorization server of an MCP server.
    fn login(&self, section: &McpSection) -> Option<Power> {
        let auth = section.settings.auth.as_ref()?;
        let reads = self.read_by(auth.texts().map(|text| &*text.value));
        let action = match &auth.issuer {
            Some(issuer) => {
                let addresses = words_of(&section.settings.allow_addresses);
                Action::Dial { url: dialed(&issuer.value), addresses }
            }
            // The server names it.
            None if reads.is_empty() => return None,
            None => Action::Read,
        };
        let of = format!("the login of MCP server `{}`", section.name.value);
        Some(power(&auth.at, of, action, reads))
    }

    /// The files of a gateway outside the project, and the authorization server that it queries.
    fn serve(&self, root: &Root) -> Vec<Power> {
        let ServeSection { audit, tls, oauth, .. } = &self.file.serve;
        let outside = |of: &str, written: &Located<Arc<str>>, writable| {
            let found = root.any_file(&written.value);
            let action = Action::File { file: found.file.to_string_lossy().into_owned(), writable };
            found.is_outside.then(|| power(&written.at, of.to_owned(), action, BTreeSet::new()))
        };
        let audit = audit.iter().filter_map(|file| outside("the audit log of `serve`", file, true));
        let of_tls = tls.iter().flat_map(|tls| tls.certificate.iter().chain(&tls.key));
        let of_tls = of_tls.filter_map(|file| outside("TLS of `serve`", file, false));
        let dialed = |oauth: &OAuthSection| {
            let url = oauth.jwks.as_ref().or(oauth.issuer.as_ref())?.to_string();
            let action = Action::Dial { url, addresses: words_of(&oauth.allow_addresses) };
            Some(power(&oauth.at, "logins of `serve`".to_owned(), action, BTreeSet::new()))
        };
        audit.chain(of_tls).chain(oauth.iter().filter_map(dialed)).collect()
    }

    fn of_file(
        &self,
        name: &str,
        at: &Spot,
        (used, written): (&server::Transport, &server::Transport),
        settings: Option<&McpSettings>,
    ) -> Power {
        let mut foreign = Vec::new();
        if let server::ServerTarget::Program { command, args, working_dir, .. } = used.target() {
            let words: Vec<_> =
                std::iter::once(command.to_owned()).chain(args.iter().cloned()).collect();
            let dir = working_dir.unwrap_or(self.project);
            foreign = self.note(&words, dir, dir);
        }
        let mut reads = BTreeSet::new();
        let mut read = |text: &str| reads.extend(variables(text));
        let action = match written.target() {
            server::ServerTarget::Program { command, args, env, working_dir } => {
                let command: Vec<_> =
                    std::iter::once(command.to_owned()).chain(args.iter().cloned()).collect();
                command.iter().for_each(|word| read(word));
                env.iter().for_each(|(_, value)| read(value));
                let dir = working_dir.filter(|dir| *dir != self.project);
                let dir = dir.map(|dir| dir.to_string_lossy().into_owned());
                dir.iter().for_each(|dir| read(dir));
                Action::Start {
                    unpinned: unpinned(&command),
                    command,
                    working_dir: dir,
                    sets: shown(env.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
                    hosts: settings.map(|it| words_of(&it.sandbox.hosts)).unwrap_or_default(),
                }
            }
            server::ServerTarget::Endpoint { url, headers } => {
                read(url);
                headers.iter().for_each(|(_, value)| read(value));
                let nets = settings.map(|settings| words_of(&settings.allow_addresses));
                Action::Dial { url: dialed(url), addresses: nets.unwrap_or_default() }
            }
            _ => Action::Read,
        };
        Power { foreign, ..power(at, format!("MCP server `{name}`"), action, reads) }
    }

    fn hub(&self, section: &HubSection, root: &Root) -> Vec<Power> {
        let of = format!("hub `{}`", section.name.value);
        let (accesses, texts) = (section.hub.external_access(), section.hub.secret_texts());
        self.declared(accesses, &texts, (&section.name.at, &of), root)
    }

    /// A database file in the project has no authority of the user's.
    fn database(&self, database: &DatabaseEntry) -> Option<Power> {
        let (action, reads) = match (database.outside(), database.server()) {
            (Some((file, writable)), _) => {
                let file = file.to_string_lossy().into_owned();
                (Action::Open { file, writable }, BTreeSet::new())
            }
            (None, Some((secret, writable))) => {
                (Action::Connect { writable }, self.variables_of([secret]))
            }
            (None, None) => return None,
        };
        Some(power(&database.at, format!("database `{}`", database.name), action, reads))
    }

    /// The databases of the store and of the marks of approvals.
    fn stores(&self) -> Vec<Power> {
        let store = self.file.sessions.secret().map(|secret| ("the store", secret));
        let shared = self.file.approvals.shared.as_ref();
        let marks = shared.map(|(_, marks)| ("the marks of approvals", marks));
        let connect = |(of, secret): (&str, &Located<Arc<str>>)| {
            let reads = self.variables_of([&*secret.value]);
            power(&secret.at, of.to_owned(), Action::Connect { writable: true }, reads)
        };
        store.into_iter().chain(marks).map(connect).collect()
    }

    /// A tool that sends no secret to the public internet needs no trust.
    fn tool(&self, tool: &ToolSection, root: &Root) -> Vec<Power> {
        let Some(kind) = &tool.kind else { return Vec::new() };
        let name = tool.name.as_ref().map(|name| name.value.as_str()).unwrap_or_default();
        let of = match kind.third_party() {
            Some(definition) => format!("tools of `{}`", definition.file),
            None => format!("tool `{name}`"),
        };
        let (accesses, texts) = (kind.external_access(), kind.secret_texts());
        let mut powers = self.declared(accesses, &texts, (&tool.at, &of), root);
        for power in &mut powers {
            if let Action::Dial { addresses, .. } = &power.action {
                power.needs_trust = !power.reads.is_empty() || !addresses.is_empty();
            }
        }
        powers
    }

    /// A power for each thing that a tool, a hub or a hook reaches.
    fn declared(
        &self,
        accesses: Vec<ExternalAccess<'_>>,
        secret_texts: &[(String, &str)],
        (at, of): (&Spot, &str),
        root: &Root,
    ) -> Vec<Power> {
        let mut reads = self.read_by(secret_texts.iter().map(|(_, text)| *text));
        let mut powers = Vec::new();
        for access in accesses {
            let (action, foreign) = match access {
                ExternalAccess::Program(program) => {
                    reads.extend(program.inherit_env.iter().cloned());
                    self.start(&program, root)
                }
                ExternalAccess::Host { url, allow_addresses, .. } => {
                    let addresses = words_of(allow_addresses);
                    (Action::Dial { url: url.to_owned(), addresses }, Vec::new())
                }
                // A declared database or folder has its own power; the memory is the project's.
                ExternalAccess::Database(_)
                | ExternalAccess::Files { .. }
                | ExternalAccess::Memory => continue,
            };
            powers.push(Power { foreign, ..power(at, of.to_owned(), action, reads.clone()) });
        }
        powers
    }

    fn start(&self, program: &ProgramAccess<'_>, root: &Root) -> (Action, Vec<ForeignFile>) {
        let words = std::iter::once(&program.program).chain(&program.args);
        let command: Vec<_> = words.map(|word| (*word).to_owned()).collect();
        let dir = program.working_dir.map(|dir| root.path().join(dir));
        let dir = dir.unwrap_or_else(|| root.path().to_owned());
        let foreign = self.note(&command, root.path(), &dir);
        let action = Action::Start {
            unpinned: unpinned(&command),
            command,
            working_dir: program.working_dir.map(str::to_owned),
            sets: shown(program.env.iter().map(|(name, value)| (&**name, &**value))),
            hosts: words_of(&program.sandbox.hosts),
        };
        (action, foreign)
    }

    fn model(&self, model: &ModelSection) -> Option<Power> {
        let vendor = model.vendor?;
        let of = format!("model `{}`", model.name.value);
        let own = model.base_url.as_ref().map(|url| url.value.to_string());
        let (url, reads) = match (model.secret(), own) {
            (secret, Some(own)) => {
                // A base URL of the project does not get the key of the environment.
                let secret = secret.into_iter().map(|secret| &*secret.value);
                (own, self.variables_of(secret))
            }
            (Some(secret), None) => {
                (vendor.base_url().to_owned(), self.variables_of([&*secret.value]))
            }
            (None, None) => of_vendor(vendor),
        };
        Some(power(&model.name.at, of, Action::Dial { url, addresses: Vec::new() }, reads))
    }

    /// Vendors' models that are named without a section.
    fn named_models(&self) -> impl Iterator<Item = Power> {
        let agent = &self.file.agent;
        let own = self.file.personalities.iter().filter_map(|one| one.model.as_ref());
        let named = agent.model.iter().chain(&agent.fallback_models).chain(own);
        let mut known = BTreeSet::new();
        named.filter_map(move |named| {
            let is_declared = |model: &ModelSection| model.name.value == named.value;
            let is_new = known.insert(&named.value);
            if !is_new || self.file.models.iter().any(is_declared) {
                return None;
            }
            let ModelName { vendor, .. } = named.value.parse().ok()?;
            let (url, reads) = of_vendor(vendor);
            let action = Action::Dial { url, addresses: Vec::new() };
            Some(power(&named.at, format!("model `{}`", named.value), action, reads))
        })
    }

    fn note(&self, command: &[String], program_dir: &Path, working_dir: &Path) -> Vec<ForeignFile> {
        note_programs(command, program_dir, working_dir, self.project, self.reads)
    }

    /// The variables that texts refer to, by name or as secrets.
    fn read_by<'t>(&self, texts: impl Iterator<Item = &'t str>) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for text in texts {
            all.extend(variables(text));
            all.extend(self.variables_of(references_in(text).into_iter().map(|(_, name)| name)));
        }
        all
    }

    /// The variables of secrets.
    fn variables_of<'n>(&self, secrets: impl IntoIterator<Item = &'n str>) -> BTreeSet<String> {
        let of = |name: &str| {
            let section = self.file.secrets.iter().find(|section| *section.name.value == *name)?;
            Some(match &section.from.as_ref()?.value {
                SecretSource::Env(variable) => variable.to_string(),
                SecretSource::Vault(entry) => format!("vault:{entry}"),
            })
        };
        secrets.into_iter().filter_map(of).collect()
    }
}

/// A folder in the project has no authority of the user's.
fn folder(folder: &FolderEntry) -> Option<Power> {
    let (path, writable) = folder.outside()?;
    let action = Action::Files { folder: path.to_string_lossy().into_owned(), writable };
    Some(power(&folder.at, format!("folder `{}`", folder.name), action, BTreeSet::new()))
}

/// The URL of a vendor as a model without a section dials it, and the variables that it reads. In place of
/// these, the user may have stored the key.
fn of_vendor(vendor: Vendor) -> (String, BTreeSet<String>) {
    let mut reads: BTreeSet<_> =
        vendor.key_variables().iter().map(|name| (*name).to_owned()).collect();
    if vendor.base_url_from_env().is_some() {
        reads.insert(vendor.base_url_variable().to_owned());
    }
    let url = configured_base_url(vendor).unwrap_or_else(|| vendor.base_url().to_owned());
    (url, reads)
}

/// A URL as declared, with the origin that its variables give it now. The rest of the expanded URL
/// may contain secrets.
fn dialed(written: &str) -> String {
    let now = expand(written, |name| std::env::var(name).ok()).ok();
    match now.filter(|now| now.text != *written).map(|now| parse_url(&now.text)) {
        Some(Ok(now)) => format!("{written} (now at {})", now.origin().ascii_serialization()),
        _ => written.to_owned(),
    }
}

fn words_of(located: &[Located<Arc<str>>]) -> Vec<String> {
    located.iter().map(|text| text.value.to_string()).collect()
}

fn texts_of(pairs: &[Pair]) -> impl Iterator<Item = (&str, &str)> {
    pairs.iter().map(|pair| (&*pair.name.value, &*pair.value.value))
}

/// A text with the values of its variables.
fn value(text: &Text) -> Option<String> {
    expand(&text.value, |name| std::env::var(name).ok()).ok().map(|expanded| expanded.text)
}

/// The variables of a text: `${NAME}`, `${env:NAME}`, `${NAME:-default}`.
fn variables(text: &str) -> Vec<String> {
    let inside = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    inside
        .map(|(inside, _)| inside.split(":-").next().unwrap_or_default())
        .map(|name| name.strip_prefix("env:").unwrap_or(name).to_owned())
        .collect()
}
