//! `[team.NAME]`: personalities that share a memory.

use std::sync::Arc;

use toolcrib_config::{Located, Table, Value};

/// A declared team.
#[derive(Debug)]
pub(crate) struct TeamSection {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) members: Vec<Located<Arc<str>>>,
}

impl TeamSection {
    pub(crate) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let teams = file.value("team").and_then(|value| value.entries("`[team]`"));
        let Some(teams) = teams else { return Vec::new() };
        teams.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "write `[team.NAME]`, and below it `members`, a list of personalities";
            value.refuse(format!("`{}` is not a team", name.value.escape_debug()), help);
            return None;
        }
        let what = format!("`[team.{}]`", name.value);
        value.table(&what, |table| {
            let members = table.required("members", "[\"support\"]");
            Self { members: members.map(|members| members.texts()).unwrap_or_default(), name }
        })
    }
}
