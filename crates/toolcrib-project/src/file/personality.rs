//! `[[personality]]`: a name, and the maximum that a run with it can reach.

use std::sync::Arc;

use toolcrib_config::{Located, Spot, Table, Value};

use super::settings::SystemText;

/// `[[personality]]`. An absent list allows everything of its kind, an empty one nothing.
#[derive(Debug)]
pub(crate) struct PersonalitySection {
    pub(crate) at: Spot,
    pub(crate) name: Option<Located<Arc<str>>>,
    pub(crate) system: Option<SystemText>,
    pub(crate) model: Option<Located<Arc<str>>>,
    pub(crate) exclude: Vec<Located<Arc<str>>>,
    pub(crate) toolset: Option<Names>,
    pub(crate) mcp_servers: Option<Names>,
    pub(crate) plugins: Option<Names>,
    pub(crate) network: NetworkSection,
    pub(crate) files: Option<Names>,
}

/// `network = { allow, deny }`.
#[derive(Debug, Default)]
pub(crate) struct NetworkSection {
    /// Its position, if present.
    pub(crate) at: Option<Spot>,
    pub(crate) allow: Option<Names>,
    pub(crate) deny: Names,
}

type Names = Vec<Located<Arc<str>>>;

impl PersonalitySection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        Self {
            at: table.at().clone(),
            name: table.required("name", "\"support\"").and_then(|name| name.text()),
            system: SystemText::read(table),
            model: table.text("model"),
            exclude: table.texts("exclude"),
            toolset: names(table, "toolset"),
            mcp_servers: names(table, "mcp_servers"),
            plugins: names(table, "plugins"),
            network: table
                .value("network")
                .and_then(|value| {
                    let at = Some(value.at());
                    value.table("`network`", |table| NetworkSection {
                        at,
                        allow: names(table, "allow"),
                        deny: names(table, "deny").unwrap_or_default(),
                    })
                })
                .unwrap_or_default(),
            files: names(table, "files"),
        }
    }
}

/// One name or a list of names, which may be empty.
fn names(table: &Table<'_>, key: &'static str) -> Option<Names> {
    let value = table.value(key)?;
    if value.is_text() {
        return Some(value.text().into_iter().collect());
    }
    Some(value.items().iter().flatten().filter_map(Value::text).collect())
}
