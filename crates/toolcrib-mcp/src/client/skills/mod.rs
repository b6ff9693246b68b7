//! The skills of a server (SEP-2640): listed with its tools, and offered as one tool that loads them.
//!
//! Nothing that a skill says is trusted. Its entry is linted, sanitized, bounded and pinned like a
//! tool's definition; its files are verified when they are read, and never read before. It can only
//! withhold tools of the same server.
//!
//! ```text
//! format.rs       an entry of a list, and the limits of the format
//! load.rs         the tool's body: reads and verifies files
//! frontmatter.rs  compares the beginning of a `SKILL.md` with the entry
//! ```

mod format;
mod frontmatter;
mod load;

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolcrib_core::{
    Annotations, Catalog, InvalidToolError, ListOrder, PinKind, Reason, RemoteDefinition,
    RemoteListing, Tool, ToolBody, ToolName, harmless,
};

use self::format::RemoteSkill;
pub use self::format::{MOST_SKILL_BYTES, MOST_SKILL_DESCRIPTION, MOST_SKILL_FILES, is_skill_name};
pub(super) use self::load::LoadSkill;
use super::listed::Definitions;

/// The limit of skills that a server's tool names, and of the characters of their descriptions: each
/// model request contains them.
const MOST_NAMED: usize = 100;
const MOST_NAMED_CHARS: usize = 16 * 1024;

/// The limit of reported names in `allowed-tools` that are not tools of the server, and their length.
const MOST_FOREIGN: usize = 20;
const LONGEST_FOREIGN: usize = 64;

/// The name of the tool that loads skills, on its server.
pub(super) const LOAD_SKILL: &str = "load_skill";

const SCHEME: &str = "skill:";

/// A server's answer to `skills/list`, or why there is none.
pub(super) struct ListedSkills {
    pub(super) entries: Result<Arc<[Map<String, Value>]>, String>,
    pub(super) ttl: Option<Duration>,
}

/// The skills of one listing.
pub(super) struct SkillList {
    /// Each entry, as a tool that is never offered.
    listing: RemoteListing<RemoteSkill>,
    /// The offered skills.
    offered: Arc<[Arc<RemoteSkill>]>,
    /// The tool that loads them; else why there is none.
    load: Result<Tool, (Tool, Arc<str>)>,
    /// The skills beyond the limits of the tool's description.
    left_out: Vec<Tool>,
    /// The tools that are offered after one of these skills is loaded, with the reason until then.
    gates: BTreeMap<ToolName, Gate>,
    /// The names in `allowed-tools` that are not tools of the server.
    foreign: Vec<Arc<str>>,
    /// The beginnings of the URIs of all skills' files.
    roots: Vec<String>,
}

#[derive(PartialEq, Eq)]
struct Gate {
    skills: Vec<Arc<str>>,
    reason: Arc<str>,
}

impl SkillList {
    /// The skills of a listing, and the tool that loads them. `tools` are the server's.
    ///
    /// # Errors
    /// Why the source must not be used, if its pins say so.
    pub(super) fn new<B: ToolBody>(
        definitions: &Definitions<'_>,
        listed: ListedSkills,
        before: Option<&Self>,
        tools: &Catalog,
        body: impl FnOnce(Arc<[Arc<RemoteSkill>]>) -> B,
    ) -> Result<Self, Arc<str>> {
        let settings = definitions.settings;
        let (entries, problem) = match listed.entries {
            Ok(entries) => (entries, None),
            Err(problem) => (Arc::default(), Some(problem)),
        };
        let skills: Vec<_> = entries.iter().map(|entry| RemoteSkill::read(entry.clone())).collect();
        let roots = skills.iter().filter_map(|skill| skill.root().map(str::to_owned)).collect();
        let listing = RemoteListing::new(
            skills,
            ListOrder::ByName,
            before.map(|before| &before.listing),
            definitions.origin,
            settings.definition_check.as_ref(),
            |skill| stand_in(definitions, skill),
        )?;
        let (mut offered, mut left_out, mut room) = (Vec::new(), Vec::new(), MOST_NAMED_CHARS);
        let mut description = format!(
            "Loads a skill of MCP server `{}`: returns its instructions, as the server wrote them. \
             Skills:",
            definitions.server
        );
        for (skill, tool) in listing.offered() {
            let says = tool.description().split_whitespace().collect::<Vec<_>>().join(" ");
            let chars = says.chars().count();
            if offered.len() == MOST_NAMED || chars > room {
                left_out.push(tool.clone());
                continue;
            }
            room -= chars;
            let _ = write!(description, "\n- {}: {says}", skill.name().unwrap_or_default());
            offered.push(Arc::new(skill.clone()));
        }
        let (gates, foreign) = gates(definitions, &offered, tools);
        let problem = problem.or_else(|| {
            offered.is_empty().then(|| match roots_are_empty(&listing) {
                true => "the server has no skills".to_owned(),
                false => "none of the server's skills can be offered".to_owned(),
            })
        });
        let offered: Arc<[_]> = offered.into();
        let made = load_tool(definitions, &description, &offered, body(Arc::clone(&offered)))
            .map_err(|error| error.to_string())?;
        let load = match problem {
            // The same instance, if nothing has changed: then the menu is the same.
            None => Ok(before
                .filter(|before| before.offered == offered)
                .and_then(|before| before.load.as_ref().ok().cloned())
                .unwrap_or(made)),
            Some(problem) => Err((made, problem.into())),
        };
        Ok(Self { listing, offered, load, left_out, gates, foreign, roots })
    }

    /// The server's tools with the one that loads skills, and with what is withheld.
    pub(super) fn merged(&self, tools: &Catalog, origin: &Arc<str>) -> Catalog {
        let (load, problem) = match &self.load {
            Ok(load) => (load, None),
            Err((load, problem)) => (load, Some(problem)),
        };
        let mut merged = Catalog::new();
        let mut taken = None;
        for tool in tools.offered() {
            match tool.name() == load.name() {
                true => taken = Some(tool.clone()),
                false => merged.offer(tool.clone()),
            }
        }
        match problem {
            None => merged.offer(load.clone()),
            Some(problem) => merged.withhold(load.clone(), Arc::clone(origin), Arc::clone(problem)),
        }
        if let Some(tool) = taken {
            let reason = "with `skills = true` this is the name of the tool that loads skills";
            merged.withhold(tool, Arc::clone(origin), reason);
        }
        let of_skills = self.listing.catalog().withheld_by_provider();
        for held in tools.withheld_by_provider().iter().chain(of_skills) {
            merged.withhold(held.tool.clone(), Arc::clone(&held.gate), held.reason.clone());
        }
        for tool in &self.left_out {
            let reason =
                "the server's other skills fill the description of the tool that loads them";
            merged.withhold(tool.clone(), Arc::clone(origin), reason);
        }
        merged
    }

    pub(super) fn has_gates(&self) -> bool {
        !self.gates.is_empty()
    }

    /// The tools without those whose skills are not loaded.
    pub(super) fn gated(&self, catalog: &Catalog, loaded: &HashSet<Arc<str>>) -> Catalog {
        let mut gated = Catalog::new();
        let mut held = Vec::new();
        for tool in catalog.offered() {
            let gate = self.gates.get(tool.name());
            match gate.filter(|gate| !gate.skills.iter().any(|skill| loaded.contains(skill))) {
                Some(gate) => held.push((tool, &gate.reason)),
                None => gated.offer(tool.clone()),
            }
        }
        for held in catalog.withheld_by_provider() {
            gated.withhold(held.tool.clone(), Arc::clone(&held.gate), held.reason.clone());
        }
        for (tool, reason) in held {
            gated.withhold(tool.clone(), Arc::clone(tool.shared_origin()), Arc::clone(reason));
        }
        gated
    }

    pub(super) fn foreign(&self) -> &[Arc<str>] {
        &self.foreign
    }

    /// Whether a URI is one of a skill's file.
    pub(super) fn contains(&self, uri: &str) -> bool {
        self.roots.iter().any(|root| uri.starts_with(root))
    }
}

/// Whether a URI has the scheme of skills.
pub(super) fn is_of_scheme(uri: &str) -> bool {
    uri.get(..SCHEME.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(SCHEME))
}

fn roots_are_empty(listing: &RemoteListing<RemoteSkill>) -> bool {
    listing.catalog().withheld_by_provider().is_empty() && listing.catalog().offered().is_empty()
}

/// A skill as a tool, so that it is checked like one, and the reason to withhold it.
fn stand_in(definitions: &Definitions<'_>, skill: &RemoteSkill) -> Option<(Tool, Option<Reason>)> {
    let name = skill.name().unwrap_or("unnamed");
    let name = definitions.server.tool_name(&format!("skill-{name}"));
    let is_pinned = definitions.settings.pins().is_some();
    let flaw = skill.flaw().or_else(|| {
        let flaw = "its files have no digests, so it cannot be pinned; `pin = false` of the server \
                    permits it";
        (skill.is_dynamic() && is_pinned).then_some(flaw)
    });
    let description = flaw.map_or_else(|| skill.description(), |_| "A skill.");
    let tool = definitions
        .common(Tool::builder(name).description(description))
        .handler(|_: Value, _| async { "" });
    match tool {
        Ok(tool) => Some((tool, flaw.map(|flaw| harmless(flaw).into_owned().into()))),
        Err(_) => None,
    }
}

/// The tools of the server that skills list, each with the skills, and the names that are none.
fn gates(
    definitions: &Definitions<'_>,
    skills: &[Arc<RemoteSkill>],
    tools: &Catalog,
) -> (BTreeMap<ToolName, Gate>, Vec<Arc<str>>) {
    let (mut gates, mut foreign) = (BTreeMap::<ToolName, Gate>::new(), Vec::<Arc<str>>::new());
    let load = definitions.server.tool_name(LOAD_SKILL);
    let prefix = format!("mcp__{}__", definitions.server);
    for skill in skills {
        for listed in skill.allowed_tools() {
            let own = listed.strip_prefix(&prefix).unwrap_or(listed);
            let exposed = match own.starts_with("mcp__") {
                true => own.to_owned(),
                false => definitions.tool_name(own),
            };
            let own = tools.offered().iter().find(|tool| *tool.name() == *exposed);
            let Some(own) = own.filter(|_| exposed != load) else {
                let shown: String = harmless(listed).chars().take(LONGEST_FOREIGN).collect();
                let is_known = foreign.iter().any(|known| **known == *shown);
                if !is_known && foreign.len() < MOST_FOREIGN {
                    foreign.push(shown.into());
                }
                continue;
            };
            let name: Arc<str> = skill.name().unwrap_or_default().into();
            let gate = gates
                .entry(own.name().clone())
                .or_insert_with(|| Gate { skills: Vec::new(), reason: Arc::default() });
            if !gate.skills.contains(&name) {
                gate.skills.push(name);
            }
        }
    }
    for gate in gates.values_mut() {
        let skills: Vec<_> = gate.skills.iter().map(|skill| format!("`{skill}`")).collect();
        gate.reason = format!(
            "it is offered after `{load}` has loaded a skill that lists it: {}",
            skills.join(", ")
        )
        .into();
    }
    (gates, foreign)
}

/// The tool that loads these skills.
fn load_tool<B: ToolBody>(
    definitions: &Definitions<'_>,
    description: &str,
    skills: &[Arc<RemoteSkill>],
    body: B,
) -> Result<Tool, InvalidToolError> {
    let names: Vec<_> = skills.iter().filter_map(|skill| skill.name()).collect();
    let mut name = json!({ "type": "string", "description": "The skill." });
    if let (Some(name), false) = (name.as_object_mut(), names.is_empty()) {
        name.insert("enum".to_owned(), json!(names));
    }
    let mut properties = Map::from_iter([("name".to_owned(), name)]);
    // Without files, the property would only cost tokens in every request.
    if skills.iter().any(|skill| skill.has_files()) {
        let path = json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "description": "Reads this file of the skill instead of its instructions.",
        });
        properties.insert("path".to_owned(), path);
    }
    let builder = Tool::builder(definitions.server.tool_name(LOAD_SKILL))
        .description(description)
        .input_schema(json!({
            "type": "object",
            "properties": properties,
            "required": ["name"],
            "additionalProperties": false,
        }))
        .annotations(Annotations { read_only: true, idempotent: true, ..Annotations::default() });
    definitions.common(builder).body(body)
}

impl RemoteDefinition for RemoteSkill {
    const KIND: PinKind = PinKind::Skill;

    fn name(&self) -> Option<&str> {
        self.name()
    }

    fn definition(&self) -> Value {
        Value::Object(self.entry().clone())
    }
}
