//! What the project declares itself, and each of its plugins: the same things, from a folder each.

use std::{collections::HashMap, net::SocketAddr, path::Path, sync::Arc};

use toolcrib_artifacts::ARTIFACT_TOOLS;
use toolcrib_config::{Diagnostic, Document, Located, Problems, Spot};
use toolcrib_engine::SKILL_TOOLS;
use toolcrib_scope::http::AllowedAddress;

use super::{
    mcp::McpFiles,
    names::{Names, REMOTE, REMOTE_TOOLSET, is_declared, is_remote, values},
    tools::parse_address,
};
use crate::{
    PLUGIN_FILE,
    config::{
        Declared, HubSection, McpSection, PluginFile, PluginSection, ProjectFile, ToolSection,
    },
    root::{FileError, MAX_TEXT, Root},
    skills::SkillFolders,
};

/// What lies in one folder: the project's own, or a plugin's.
pub(crate) struct Part {
    /// What it may reach outside its folder; `None` of the project itself, which may all.
    pub(crate) grant: Option<Arc<Grant>>,
    pub(crate) root: Root,
    pub(crate) declared: Declared,
    pub(crate) skills: SkillFolders,
}

/// What the project lets a plugin reach outside its folder.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) plugin: Arc<str>,
    programs: bool,
    secrets: Vec<Arc<str>>,
    databases: Vec<Arc<str>>,
    addresses: Vec<AllowedAddress>,
}

impl Part {
    /// The project's own part, then its plugins in the order of the file; what is wrong with one is
    /// recorded.
    pub(crate) fn all(
        file: &mut ProjectFile,
        skills: SkillFolders,
        root: &Root,
        problems: &Problems,
    ) -> Vec<Self> {
        let declared = std::mem::take(&mut file.declared);
        let own = Self { grant: None, root: root.clone(), declared, skills };
        let mut parts = vec![own];
        for section in &file.plugins {
            parts.push(Self::plugin(section, root, &parts, problems));
        }
        parts
    }

    /// A plugin; an empty one where its file cannot be read.
    fn plugin(
        section: &PluginSection,
        project: &Root,
        earlier: &[Self],
        problems: &Problems,
    ) -> Self {
        let grant = Some(Arc::new(Grant::of(section, problems)));
        let read = section.path.as_ref().and_then(|path| read(path, project, earlier, problems));
        let Some((root, file)) = read else {
            let (declared, skills) = Default::default();
            return Self { grant, root: project.clone(), declared, skills };
        };
        let start = Spot::start_of(root.shown(PLUGIN_FILE));
        let skills = SkillFolders::read(&root, file.skill_folder.as_ref(), &start, problems);
        Self { grant, root, declared: file.declared, skills }
    }

    /// The plugin's id; `None` of the project itself.
    pub(crate) fn plugin_id(&self) -> Option<&Arc<str>> {
        self.grant.as_ref().map(|grant| &grant.plugin)
    }

    pub(crate) fn tools(parts: &[Self]) -> impl Iterator<Item = &ToolSection> + Clone {
        parts.iter().flat_map(|part| &part.declared.tools)
    }

    /// The hubs, each with its plugin.
    pub(crate) fn hubs(parts: &[Self]) -> impl Iterator<Item = (Option<&Arc<str>>, &HubSection)> {
        parts
            .iter()
            .flat_map(|part| part.declared.hubs.iter().map(move |hub| (part.plugin_id(), hub)))
    }
}

/// The folder of a plugin and its file.
fn read(
    path: &Located<Arc<str>>,
    project: &Root,
    earlier: &[Part],
    problems: &Problems,
) -> Option<(Root, PluginFile)> {
    let refuse = |error: FileError| {
        let help = project.near(&error, &path.value);
        let message = format!("`{}` {error}", path.value.escape_debug());
        problems.push(Diagnostic::error(&path.at, message).help(help));
    };
    let root = project.of_plugin(&path.value).map_err(refuse).ok()?;
    if root.path() == project.path() {
        let message = format!("`{}` is the project's own folder", path.value.escape_debug());
        let help = "give the plugin a folder of its own, such as \"plugins/crm\"";
        problems.push(Diagnostic::error(&path.at, message).help(help));
        return None;
    }
    let of_other = earlier.iter().find(|part| part.root.path() == root.path());
    if let Some(other) = of_other.and_then(Part::plugin_id) {
        let message =
            format!("`{}` is the folder of the plugin `{other}`", path.value.escape_debug());
        let help = "give each plugin a folder of its own, or leave one of the two out";
        problems.push(Diagnostic::error(&path.at, message).help(help));
        return None;
    }
    let text = match root.text(PLUGIN_FILE, MAX_TEXT) {
        Ok(text) => text,
        Err(error) => {
            let file = Path::new(&*path.value).join(PLUGIN_FILE);
            let message = format!("`{}` {error}", file.display());
            let help = "a plugin's folder holds one that says what it adds";
            problems.push(Diagnostic::error(&path.at, message).help(help));
            return None;
        }
    };
    let document = Document::new(root.shown(PLUGIN_FILE), text);
    PluginFile::read(&document, problems).map(|file| (root, file))
}

impl Grant {
    fn of(section: &PluginSection, problems: &Problems) -> Self {
        Self {
            plugin: Arc::clone(&section.name.value),
            programs: section.programs,
            secrets: values(&section.secrets),
            databases: values(&section.databases),
            addresses: section
                .allow_addresses
                .iter()
                .filter_map(|address| parse_address(address, problems))
                .collect(),
        }
    }

    pub(crate) fn secrets(&self) -> &[Arc<str>] {
        &self.secrets
    }

    pub(crate) fn has_database(&self, name: &str) -> bool {
        self.databases.iter().any(|granted| **granted == *name)
    }

    /// Whether it may allow this, in these words: what lies in a net is another matter, since some
    /// addresses are only meant when they are named.
    pub(crate) fn may_allow(&self, address: &AllowedAddress) -> bool {
        self.addresses.contains(address)
    }

    /// Whether something that was granted allows to dial this address.
    pub(crate) fn has_address(&self, address: SocketAddr) -> bool {
        self.addresses.iter().any(|granted| granted.allows(address))
    }

    /// Records a program where none was granted.
    pub(crate) fn check_program(&self, at: &Spot, problems: &Problems) {
        if !self.programs {
            self.refuse(at, "runs programs", "programs = true", problems);
        }
    }

    /// Records variables of the environment that a plugin wants to read.
    pub(crate) fn refuse_variable(&self, at: &Spot, problems: &Problems) {
        let message = format!(
            "the plugin `{}` reads no variable of the environment: secrets stand there",
            self.plugin
        );
        let help = "write \"secret:NAME\" in `env` or `headers`, and let the project grant it";
        problems.push(Diagnostic::error(at, message).help(help));
    }

    /// Records what was not granted: what the plugin does, and what the project would have to write.
    pub(crate) fn refuse(&self, at: &Spot, does: &str, write: &str, problems: &Problems) {
        let plugin = &self.plugin;
        let message = format!("the plugin `{plugin}` {does}, which the project does not grant it");
        let help = format!("if that is meant, write below [plugin.{plugin}]: {write}");
        problems.push(Diagnostic::error(at, message).help(help));
    }
}

/// Records what a section grants that there is not, and ids that are taken.
pub(crate) fn check_plugins(
    file: &ProjectFile,
    of_code: &[Arc<str>],
    names: &Names,
    problems: &Problems,
) {
    let databases: Vec<_> =
        file.databases.iter().map(|database| Arc::clone(&database.name.value)).collect();
    for section in &file.plugins {
        for secret in &section.secrets {
            is_declared(secret, "secret", &names.secrets, problems);
        }
        for database in &section.databases {
            is_declared(database, "database", &databases, problems);
        }
        if of_code.contains(&section.name.value) {
            let message = format!("a plugin `{}` is added in code already", section.name.value);
            problems.push(Diagnostic::error(&section.name.at, message).help("rename one of them"));
        }
    }
}

/// Records what two parts have one name for: MCP servers, hubs and skills. What one file declares
/// twice is recorded where it is read.
pub(crate) fn report_taken_names(parts: &[Part], mcp: &McpFiles, problems: &Problems) {
    let of_files = mcp.servers.iter().map(|declared| &declared.server);
    let mut servers: HashMap<_, _> =
        of_files.map(|server| (Arc::clone(&server.name), server.at.clone())).collect();
    let (mut hubs, mut skills) = (HashMap::new(), HashMap::new());
    for part in parts {
        let of_plugin = part.grant.is_some();
        let take =
            |taken: &mut HashMap<Arc<str>, Spot>, kind, name: &Arc<str>, at: Spot| match taken
                .get(name)
                .filter(|_| of_plugin)
            {
                Some(first) => {
                    let message = format!("there is {kind} `{name}` already, at {first}");
                    problems.push(Diagnostic::error(&at, message).help("rename one of them"));
                }
                None => drop(taken.insert(Arc::clone(name), at)),
            };
        for McpSection { name, .. } in &part.declared.mcp {
            take(&mut servers, "an MCP server", &name.value, name.at.clone());
        }
        for HubSection { name, .. } in &part.declared.hubs {
            take(&mut hubs, "a hub", &name.value, name.at.clone());
        }
        for (name, at) in part.skills.places(&part.root) {
            take(&mut skills, "a skill", name, at);
        }
    }
}

/// Records hubs of plugins that would take names of others for their own: of which plugin a tool of a
/// hub is, is told by what its name begins with.
pub(crate) fn report_captured_names(parts: &[Part], problems: &Problems) {
    for (part, plugin) in parts.iter().filter_map(|part| Some((part, part.plugin_id()?))) {
        for hub in &part.declared.hubs {
            let prefix = hub.prefix();
            let others = parts.iter().filter(|other| other.plugin_id() != Some(plugin));
            let taken = others
                .flat_map(|other| {
                    let names = other.declared.tools.iter().filter_map(|tool| tool.name.as_ref());
                    let names = names.map(|name| Arc::from(name.value.as_str()));
                    names.chain(other.declared.hubs.iter().map(HubSection::prefix))
                })
                .chain(SKILL_TOOLS.into_iter().chain(ARTIFACT_TOOLS).chain([REMOTE]).map(Arc::from))
                .find(|name: &Arc<str>| name.starts_with(&*prefix));
            let Some(taken) = taken.filter(|_| !is_remote(&prefix)) else { continue };
            let message = format!(
                "`{taken}` begins with the prefix `{prefix}` of the hub `{}` and is not of the \
                 plugin `{plugin}`",
                hub.name.value
            );
            let at = hub.prefix_place().unwrap_or(&hub.name.at);
            let help = format!("write another, such as prefix = \"{plugin}_\"");
            problems.push(Diagnostic::error(at, message).help(help));
        }
    }
}

/// Records tools and hubs whose names or toolsets are those of MCP servers: rules name servers so.
pub(crate) fn report_false_origins(parts: &[Part], problems: &Problems) {
    let names = format!("the names of tools of MCP servers begin with `{REMOTE}`, and no others");
    let toolset = format!("`{REMOTE_TOOLSET}` is the toolset of the tools of MCP servers");
    for part in parts {
        for tool in &part.declared.tools {
            let Some(name) = &tool.name else { continue };
            if is_remote(name.value.as_str()) {
                problems.push(Diagnostic::error(&name.at, &*names).help("rename the tool"));
            }
            if tool.toolset.as_deref() == Some(REMOTE_TOOLSET) {
                let help = format!("give `{}` another toolset", name.value);
                problems.push(Diagnostic::error(&name.at, &*toolset).help(help));
            }
        }
        for hub in &part.declared.hubs {
            if is_remote(&hub.prefix()) {
                let at = hub.prefix_place().unwrap_or(&hub.name.at);
                let help = part.plugin_id().map_or("hub", |plugin| plugin);
                let help = format!("write another, such as prefix = \"{help}_\"");
                problems.push(Diagnostic::error(at, &*names).help(help));
            }
            if *hub.name.value == *REMOTE_TOOLSET {
                let help = "rename the hub; its tools have its name as their toolset";
                problems.push(Diagnostic::error(&hub.name.at, &*toolset).help(help));
            }
        }
    }
}
