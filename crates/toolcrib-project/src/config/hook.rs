//! `[[hook]]`: a program that decides on calls.

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Located, Table};
use toolcrib_tools::{Declaration, Source, command::DeclaredCommand};

use super::{Input, Kind, ToolSection};

/// Where a hook is called.
const PLACES: [(&str, ()); 1] = [("before_call", ())];

/// The timeout of a decision, unless the section has another.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A section.
#[derive(Debug)]
pub(crate) struct HookSection {
    pub(crate) name: Option<Located<Arc<str>>>,
    /// The tools whose calls it decides on; all if empty.
    pub(crate) tools: Vec<Located<Arc<str>>>,
    pub(crate) timeout: Duration,
    pub(crate) command: DeclaredCommand,
    /// The rest, as of a tool that runs the program.
    pub(crate) tool: ToolSection,
}

impl HookSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let at = table.required("at", "\"before_call\"");
        let is_placed = at.and_then(|at| at.word(&PLACES)).is_some();
        let name = table.required("name", "\"guard\"").and_then(|name| name.text());
        let called = name.as_ref().map(|name| name.value.to_string()).unwrap_or_default();
        let mut declaration = Declaration::new(called, "");
        declaration.source = Source::of(table);
        Self {
            tools: table.texts("tool"),
            timeout: table.duration("timeout").unwrap_or(TIMEOUT),
            command: DeclaredCommand::read_hook(table),
            tool: ToolSection {
                at: table.at().clone(),
                is_complete: is_placed && name.is_some(),
                name: None,
                declaration,
                input: Input::None,
                kind: Kind::Unknown,
            },
            name,
        }
    }
}
