//! From what a project declares to what it may do with its user's authority.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use toolcrib_config::{Located, Spot};
use toolcrib_mcp::server::{self, expand};
use toolcrib_models::{ModelName, Vendor};

use super::{Action, Power, Reads, pin::unpinned, programs::note_programs};
use crate::{
    build::{McpFiles, Part, references},
    config::{
        CommandSection, HttpSection, HubSection, Kind, McpSection, McpSettings, ModelSection, Pair,
        ProjectFile, Reach, Text, ToolSection,
    },
    root::Root,
};

/// All that a project may do with its user's authority. Notes the programs of the project on the way.
pub(crate) fn powers(
    file: &ProjectFile,
    parts: &[Part],
    mcp_files: &McpFiles,
    root: &Root,
) -> Vec<Power> {
    let collector = Collector { file, project: root.path(), reads: root.reads() };
    let mut powers = Vec::new();
    for part in parts {
        let of_part = &part.declared;
        powers.extend(of_part.mcp.iter().filter_map(|section| collector.mcp(section, &part.root)));
        powers.extend(of_part.hubs.iter().flat_map(|hub| collector.hub(hub)));
        powers.extend(of_part.tools.iter().filter_map(|tool| collector.tool(tool, &part.root)));
    }
    powers.extend(mcp_files.declared().map(|(name, at, transport)| {
        let mut sections = parts.iter().flat_map(|part| &part.declared.mcp);
        let section = sections.find(|section| *section.name.value == **name);
        collector.of_file(name, at, transport, section.map(|section| &section.settings))
    }));
    powers.extend(file.models.iter().filter_map(|model| collector.model(model)));
    powers.extend(collector.named_models());
    powers.extend(file.serve.tokens.iter().filter_map(|token| {
        let secret = token.secret.as_ref()?;
        let reads = collector.variables_of([&secret.value]);
        Some(power(&token.at, "a token of `serve`".to_owned(), Action::Read, reads))
    }));
    powers
}

struct Collector<'a> {
    file: &'a ProjectFile,
    project: &'a Path,
    reads: &'a Reads,
}

fn power(at: &Spot, of: String, action: Action, reads: BTreeSet<String>) -> Power {
    Power { origin: at.to_string().into(), of, action, reads: reads.into_iter().collect() }
}

impl Collector<'_> {
    fn mcp(&self, section: &McpSection, root: &Root) -> Option<Power> {
        let of = format!("MCP server `{}`", section.name.value);
        let addresses = addresses(&section.settings.allow_addresses);
        let (action, texts, pairs): (_, Vec<&Text>, &[Pair]) = match &section.reach {
            Reach::Program(program) => {
                let words = || std::iter::once(&program.command).chain(&program.args);
                let expanded: Option<Vec<_>> = words().map(value).collect();
                let dir = match &program.cwd {
                    Some(cwd) => root.path().join(value(cwd).unwrap_or_default()),
                    None => root.path().to_owned(),
                };
                self.note(&expanded.unwrap_or_default(), &dir, &dir);
                let command: Vec<_> = words().map(|word| word.value.to_string()).collect();
                let action = Action::Start {
                    unpinned: unpinned(&command),
                    command,
                    working_dir: program.cwd.as_ref().map(|cwd| cwd.value.to_string()),
                    sets: names(&program.env),
                };
                (action, words().chain(&program.cwd).collect(), &program.env)
            }
            Reach::Endpoint(endpoint) => {
                let action = Action::Dial { url: endpoint.url.value.to_string(), addresses };
                (action, vec![&endpoint.url], &endpoint.headers)
            }
            Reach::OfFile | Reach::Broken => return None,
        };
        let texts = texts.into_iter().chain(pairs.iter().map(|pair| &pair.value));
        Some(power(&section.name.at, of, action, self.read_by(texts)))
    }

    fn of_file(
        &self,
        name: &str,
        at: &Spot,
        (used, written): (&server::Transport, &server::Transport),
        settings: Option<&McpSettings>,
    ) -> Power {
        if let server::Reach::Program { command, args, working_dir, .. } = used.reach() {
            let words: Vec<_> =
                std::iter::once(command.to_owned()).chain(args.iter().cloned()).collect();
            let dir = working_dir.unwrap_or(self.project);
            self.note(&words, dir, dir);
        }
        let mut reads = BTreeSet::new();
        let mut read = |text: &str| reads.extend(variables(text));
        let action = match written.reach() {
            server::Reach::Program { command, args, env, working_dir } => {
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
                    sets: env.iter().map(|(name, _)| name.clone()).collect(),
                }
            }
            server::Reach::Endpoint { url, headers } => {
                read(url);
                headers.iter().for_each(|(_, value)| read(value));
                let nets = settings.map(|settings| addresses(&settings.allow_addresses));
                Action::Dial { url: url.to_owned(), addresses: nets.unwrap_or_default() }
            }
            _ => Action::Read,
        };
        power(at, format!("MCP server `{name}`"), action, reads)
    }

    fn hub(&self, hub: &HubSection) -> Vec<Power> {
        let of = format!("hub `{}`", hub.name.value);
        let reads = self.read_by(hub.secret_texts());
        let calls =
            hub.call.iter().map(|call| (call.http.url.as_ref(), &call.http.allow_addresses));
        let all = std::iter::once((hub.url.as_ref(), &hub.allow_addresses)).chain(calls);
        all.filter_map(|(url, nets)| {
            let url = url?.value.to_string();
            let action = Action::Dial { url, addresses: addresses(nets) };
            Some(power(&hub.name.at, of.clone(), action, reads.clone()))
        })
        .collect()
    }

    fn tool(&self, tool: &ToolSection, root: &Root) -> Option<Power> {
        let name = tool.name.as_ref().map(|name| name.value.as_str()).unwrap_or_default();
        let of = format!("tool `{name}`");
        match &tool.kind {
            Kind::Command(command) => Some(self.command(tool, command, of, root)),
            Kind::Http(http) => self.http(tool, http, of),
            Kind::Sql(_) | Kind::Unknown => None,
        }
    }

    fn command(
        &self,
        tool: &ToolSection,
        command: &CommandSection,
        of: String,
        root: &Root,
    ) -> Power {
        let words = command.program.iter().map(|program| &program.value);
        let words = words.chain(command.args.iter().map(|arg| &arg.value.value));
        let words: Vec<_> = words.map(ToString::to_string).collect();
        let dir = command.working_dir.as_ref().map(|dir| dir.value.to_string());
        let full = dir.as_ref().map_or_else(|| root.path().to_owned(), |dir| root.path().join(dir));
        self.note(&words, root.path(), &full);
        let mut reads = self.read_by(command.env.iter().map(|variable| &variable.value));
        reads.extend(command.inherit_env.iter().map(|name| name.value.to_string()));
        let action = Action::Start {
            unpinned: unpinned(&words),
            command: words,
            working_dir: dir,
            sets: command.env.iter().map(|variable| variable.name.value.to_string()).collect(),
        };
        power(&tool.at, of, action, reads)
    }

    /// One that sends no secret to the public internet has no authority of the user's.
    fn http(&self, tool: &ToolSection, http: &HttpSection, of: String) -> Option<Power> {
        let reads = self.read_by(http.headers.iter().map(|header| &header.value));
        let addresses = addresses(&http.allow_addresses);
        if reads.is_empty() && addresses.is_empty() {
            return None;
        }
        let url = http.url.as_ref()?.value.to_string();
        Some(power(&tool.at, of, Action::Dial { url, addresses }, reads))
    }

    fn model(&self, model: &ModelSection) -> Option<Power> {
        let vendor = model.vendor?;
        let of = format!("model `{}`", model.name.value);
        let own = model.base_url.as_ref().map(|url| url.value.to_string());
        let reads = match (model.secret(), &own) {
            (Some(secret), _) => self.variables_of([&secret.value]),
            // A base URL of the project's own does not get the key of the environment.
            (None, Some(_)) => BTreeSet::new(),
            (None, None) => of_vendor(vendor),
        };
        let url = own.unwrap_or_else(|| vendor.base_url().to_owned());
        Some(power(&model.name.at, of, Action::Dial { url, addresses: Vec::new() }, reads))
    }

    /// Models of vendors that are named without a section of their own.
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
            let url = vendor.base_url().to_owned();
            let action = Action::Dial { url, addresses: Vec::new() };
            Some(power(&named.at, format!("model `{}`", named.value), action, of_vendor(vendor)))
        })
    }

    fn note(&self, command: &[String], program_dir: &Path, working_dir: &Path) {
        note_programs(command, program_dir, working_dir, self.project, self.reads);
    }

    /// The variables that texts refer to, by their names or as secrets.
    fn read_by<'t>(&self, texts: impl Iterator<Item = &'t Text>) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for text in texts {
            all.extend(variables(&text.value));
            let secrets = references(text);
            all.extend(self.variables_of(secrets.iter().map(|secret| &secret.value)));
        }
        all
    }

    /// The variables in which secrets are.
    fn variables_of<'n>(
        &self,
        secrets: impl IntoIterator<Item = &'n Arc<str>>,
    ) -> BTreeSet<String> {
        let of = |name: &Arc<str>| {
            let section = self.file.secrets.iter().find(|section| section.name.value == *name)?;
            Some(section.env.as_ref()?.value.to_string())
        };
        secrets.into_iter().filter_map(of).collect()
    }
}

fn of_vendor(vendor: Vendor) -> BTreeSet<String> {
    vendor.key_variables().iter().map(|name| (*name).to_owned()).collect()
}

fn addresses(nets: &[Located<Arc<str>>]) -> Vec<String> {
    nets.iter().map(|net| net.value.to_string()).collect()
}

fn names(pairs: &[Pair]) -> Vec<String> {
    pairs.iter().map(|pair| pair.name.value.to_string()).collect()
}

/// A text with the values of variables in it.
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
