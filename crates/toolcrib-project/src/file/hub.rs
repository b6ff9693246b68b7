//! `[hub.NAME]`: a catalog of tools on an HTTP server.

use std::sync::Arc;

use toolcrib_config::{Located, Spot, Table, Value};
use toolcrib_engine::OnFailure;
use toolcrib_tools::hub::HubTable;

use super::remote::{REMOTE_ON_FAILURE, read_on_failure};

/// A section.
#[derive(Debug)]
pub(crate) struct HubSection {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) hub: HubTable,
    pub(crate) on_failure: OnFailure,
    /// Whether its tools are deferred.
    pub(crate) defer: bool,
    /// The hubs that rules may list instead, in order.
    pub(crate) alternatives: Vec<Located<Arc<str>>>,
    /// Whether its definitions are pinned.
    pub(crate) pin: bool,
    /// The rules of the lint whose findings withhold no tool.
    pub(crate) lint_allow: Vec<Located<Arc<str>>>,
}

impl HubSection {
    pub(crate) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(hubs) = file.value("hub").and_then(|value| value.entries("`[hub]`")) else {
            return Vec::new();
        };
        hubs.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "write `[hub.NAME]`, with a name of your choice, and below it `url`";
            value.refuse(format!("`{}` is not a hub", name.value.escape_debug()), help);
            return None;
        }
        let what = format!("`[hub.{}]`", name.value);
        value.table(&what, |table| {
            let others = |table: &Table<'_>| {
                let on_failure = read_on_failure(table).unwrap_or(REMOTE_ON_FAILURE);
                let defer = table.boolean("defer").unwrap_or_default();
                let pin = table.boolean("pin").unwrap_or(true);
                let (alternatives, lint_allow) =
                    (table.texts("alternatives"), table.texts("lint_allow"));
                (on_failure, defer, alternatives, lint_allow, pin)
            };
            let (hub, (on_failure, defer, alternatives, lint_allow, pin)) =
                HubTable::read(&name.value, table, others);
            Self { name, hub, on_failure, defer, alternatives, lint_allow, pin }
        })
    }

    /// The prefix of its tools' names.
    pub(crate) fn prefix(&self) -> Arc<str> {
        self.hub.spec().prefix.as_str().into()
    }

    /// The place of the prefix, where it is written.
    pub(crate) fn prefix_place(&self) -> Option<&Spot> {
        self.hub.spec().source.value("/prefix")
    }
}
