//! `[[hook]]`: a program that decides on calls.

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Located, Table};
use toolcrib_tools::{Declaration, Source, command::DeclaredCommand};

use super::{Input, ToolSection};

/// The place where a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookPlace {
    BeforeTurn,
    BeforeIteration,
    BeforeCall,
    AfterIteration,
    AfterTurn,
}

impl HookPlace {
    const ALL: [(&'static str, Self); 5] = [
        ("before_turn", Self::BeforeTurn),
        ("before_iteration", Self::BeforeIteration),
        ("before_call", Self::BeforeCall),
        ("after_iteration", Self::AfterIteration),
        ("after_turn", Self::AfterTurn),
    ];

    pub(crate) fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, place)| *place == self).map_or("", |(word, _)| word)
    }
}

/// The timeout of a decision, unless the section has another.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A section.
#[derive(Debug)]
pub(crate) struct HookSection {
    pub(crate) place: HookPlace,
    pub(crate) name: Option<Located<Arc<str>>>,
    /// The tools whose calls it decides on; all if empty.
    pub(crate) tools: Vec<Located<Arc<str>>>,
    pub(crate) timeout: Duration,
    pub(crate) command: DeclaredCommand,
    /// The rest, as of a tool that runs the program.
    pub(crate) tool: ToolSection,
}

impl HookSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let at = table.required("at", "\"before_call\"");
        let place = at.and_then(|at| at.word(&HookPlace::ALL)).map(|place| place.value);
        let tools = table.texts("tool");
        if let (Some(first), Some(place)) = (tools.first(), place)
            && place != HookPlace::BeforeCall
        {
            let message = format!("a hook at `{}` decides on no call", place.word());
            table.refuse_at(&first.at, &message, "leave out `tool`, or write at = \"before_call\"");
        }
        let name = table.required("name", "\"guard\"").and_then(|name| name.text());
        let called = name.as_ref().map(|name| name.value.to_string()).unwrap_or_default();
        let mut declaration = Declaration::new(called, "");
        declaration.source = Source::of(table);
        Self {
            place: place.unwrap_or(HookPlace::BeforeCall),
            tools,
            timeout: table.duration("timeout").unwrap_or(TIMEOUT),
            command: DeclaredCommand::read_hook(table),
            tool: ToolSection {
                at: table.at().clone(),
                is_complete: place.is_some() && name.is_some(),
                name: None,
                declaration,
                input: Input::None,
                kind: None,
            },
            name,
        }
    }
}
