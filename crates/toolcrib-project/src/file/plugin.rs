//! `[plugin.NAME]`, and the `plugin.toml` in the folder that it names.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Document, Located, Problems, Table, Value};
use toolcrib_core::ToolName;

use super::ToolDeclarations;

/// Keys that only the project's file may have. A plugin's file gets a specific message for them,
/// not one about an unknown key.
const OF_THE_PROJECT: [&str; 22] = [
    "agent",
    "artifacts",
    "breaker",
    "convert_text_arguments",
    "database",
    "files",
    "hook",
    "limits",
    "model",
    "name",
    "personality",
    "plugin",
    "policy",
    "policy_default",
    "reliability",
    "retry_budget",
    "role",
    "sandbox",
    "secrets",
    "serve",
    "sessions",
    "tool_search",
];

/// A section: the folder of a plugin, and its access outside the folder.
#[derive(Debug)]
pub(crate) struct PluginSection {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) path: Option<Located<Arc<str>>>,
    pub(crate) programs: bool,
    pub(crate) secrets: Vec<Located<Arc<str>>>,
    pub(crate) databases: Vec<Located<Arc<str>>>,
    pub(crate) files: Vec<Located<Arc<str>>>,
    pub(crate) allow_addresses: Vec<Located<Arc<str>>>,
}

/// A `plugin.toml`.
#[derive(Debug)]
pub(crate) struct PluginFile {
    pub(crate) skill_folder: Option<Located<Arc<str>>>,
    pub(crate) declared: ToolDeclarations,
}

impl PluginSection {
    pub(crate) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(plugins) = file.value("plugin").and_then(|value| value.entries("`[plugin]`"))
        else {
            return Vec::new();
        };
        plugins.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "write `[plugin.NAME]`, with a name of your choice, and below it `path`";
            value.refuse(format!("`{}` is not a plugin", name.value.escape_debug()), help);
            return None;
        }
        if let Err(error) = ToolName::new(Arc::clone(&name.value)) {
            let message = format!("the name of a plugin follows the rules of tool names: {error}");
            value.problems().push(Diagnostic::error(&name.at, message));
        }
        let what = format!("`[plugin.{}]`", name.value);
        value.table(&what, |table| Self {
            path: table.required("path", "\"plugins/crm\"").and_then(|path| path.text()),
            programs: table.boolean("programs").unwrap_or_default(),
            secrets: table.texts("secrets"),
            databases: table.texts("databases"),
            files: table.texts("files"),
            allow_addresses: table.texts("allow_addresses"),
            name,
        })
    }
}

impl PluginFile {
    /// Reads the file. `None` if it is not TOML.
    pub(crate) fn read(document: &Document, problems: &Problems) -> Option<Self> {
        document.read(problems, |file| {
            for key in OF_THE_PROJECT {
                file.explain(
                    key,
                    "a plugin adds tools, skills, MCP servers and hubs; everything else belongs \
                     in the project's own file",
                );
            }
            file.explain("mcp_files", "declare each server here: write `[mcp.NAME]`");
            Self {
                skill_folder: file.table("skills", skill_folder).flatten(),
                declared: ToolDeclarations::read(file),
            }
        })
    }
}

fn skill_folder(table: &Table<'_>) -> Option<Located<Arc<str>>> {
    for key in ["focus", "tools", "list_skills", "deactivate_skill"] {
        table.explain(key, "it applies to all skills, and belongs in the project's own file");
    }
    table.text("folder")
}
