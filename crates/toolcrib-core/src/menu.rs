//! The tools that a model sees in one iteration.

use std::{
    collections::HashMap,
    slice,
    sync::{Arc, OnceLock},
};

use crate::{
    json::digest::Digest, names::name::ToolName, registry::AlreadyRegisteredError, tool::Tool,
};

/// The offered tools of one iteration: immutable, ordered, unique by name. Calls run only against a
/// menu; a tool outside the menu cannot be called by any name.
///
/// [Deferred](Self::deferred) tools can be called, and are not part of the definitions: a model
/// finds them with `search_tools`, and the found ones are [revealed](Self::revealed).
///
/// Menus with the same content have the same fingerprint and the same rendering, byte for byte, so
/// that a model provider's prompt cache stays valid.
#[derive(Debug)]
pub struct Menu {
    /// The stable tools, then the revealed ones if they are listed.
    tools: Vec<Tool>,
    /// The number of stable tools.
    stable: usize,
    deferred: Arc<[Tool]>,
    revealed: Vec<Tool>,
    /// The positions in the stable tools, and after them in the deferred ones.
    by_name: Arc<HashMap<ToolName, usize>>,
    fingerprint: Digest,
    deferred_digest: Digest,
    rendering: OnceLock<Arc<str>>,
}

impl Menu {
    /// A menu of these tools, in this order.
    ///
    /// # Errors
    /// [`AlreadyRegisteredError`] if two tools have the same name.
    pub fn new(tools: Vec<Tool>) -> Result<Self, AlreadyRegisteredError> {
        Self::with_deferred(tools, Vec::new())
    }

    /// A menu of these tools, in this order, and of deferred ones.
    ///
    /// # Errors
    /// [`AlreadyRegisteredError`] if two tools have the same name.
    pub fn with_deferred(
        tools: Vec<Tool>,
        deferred: Vec<Tool>,
    ) -> Result<Self, AlreadyRegisteredError> {
        let mut by_name = HashMap::with_capacity(tools.len() + deferred.len());
        for (position, tool) in tools.iter().chain(&deferred).enumerate() {
            if let Some(first) = by_name.insert(tool.name().clone(), position) {
                // The position is an earlier one.
                let first = at(&tools, &deferred, first).unwrap_or(tool);
                return Err(AlreadyRegisteredError::between(first, tool));
            }
        }
        Ok(Self {
            fingerprint: fingerprint(&tools),
            deferred_digest: deferred_digest(&deferred),
            stable: tools.len(),
            tools,
            deferred: deferred.into(),
            revealed: Vec::new(),
            by_name: Arc::new(by_name),
            rendering: OnceLock::new(),
        })
    }

    /// This menu with revealed tools, in this order: of the names, those of deferred tools, each
    /// once. If they are `listed`, they are appended to the [tools](Self::tools), which begin as
    /// before.
    #[must_use]
    pub fn reveal<'a>(&self, names: impl IntoIterator<Item = &'a ToolName>, listed: bool) -> Self {
        let mut revealed: Vec<Tool> = Vec::new();
        for name in names {
            let position = self.by_name.get(name).and_then(|at| at.checked_sub(self.stable));
            let tool = position.and_then(|position| self.deferred.get(position));
            if let Some(tool) =
                tool.filter(|tool| revealed.iter().all(|other| other.name() != tool.name()))
            {
                revealed.push(tool.clone());
            }
        }
        let mut tools = self.stable().to_vec();
        if listed {
            tools.extend(revealed.iter().cloned());
        }
        Self {
            fingerprint: fingerprint(&tools),
            deferred_digest: self.deferred_digest,
            stable: self.stable,
            tools,
            deferred: Arc::clone(&self.deferred),
            revealed,
            by_name: Arc::clone(&self.by_name),
            rendering: OnceLock::new(),
        }
    }

    /// The offered tools that a model reads, in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The same, one after the other; `&Menu` iterates over them, too.
    pub fn iter(&self) -> slice::Iter<'_, Tool> {
        self.tools.iter()
    }

    /// The [tools](Self::tools) without those that were revealed: the same after each search.
    pub fn stable(&self) -> &[Tool] {
        self.tools.get(..self.stable).unwrap_or(&self.tools)
    }

    /// The deferred tools, revealed or not: offered, and absent from the [stable](Self::stable)
    /// tools.
    pub fn deferred(&self) -> &[Tool] {
        &self.deferred
    }

    /// A digest of everything that a search reads of the [deferred](Self::deferred) tools, order
    /// included.
    pub fn deferred_digest(&self) -> Digest {
        self.deferred_digest
    }

    /// The deferred tools that searches of the conversation have found, in the order of their
    /// finding. Listed at the end of the [tools](Self::tools), or only for adapters whose vendor
    /// loads such tools itself.
    pub fn revealed(&self) -> &[Tool] {
        &self.revealed
    }

    /// The offered tool with exactly this name, deferred or not.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        let position = self.by_name.get(name)?;
        at(self.stable(), &self.deferred, *position)
    }

    /// The names of the tools that a model reads, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ToolName> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// The number of tools that a model reads.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether a model reads no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// A digest of the rendering, order included.
    pub fn fingerprint(&self) -> Digest {
        self.fingerprint
    }

    /// The vendor-neutral JSON array for the model. Made once per menu.
    pub fn rendering(&self) -> &Arc<str> {
        self.rendering.get_or_init(|| {
            let mut json = String::with_capacity(
                2 + self.tools.iter().map(|tool| tool.rendering().len() + 1).sum::<usize>(),
            );
            json.push('[');
            for (position, tool) in self.tools.iter().enumerate() {
                if position > 0 {
                    json.push(',');
                }
                json.push_str(tool.rendering());
            }
            json.push(']');
            json.into()
        })
    }

    /// The size of the rendering, in characters.
    pub fn chars(&self) -> usize {
        self.rendering().chars().count()
    }

    /// The characters of the definitions that a model does not read: of the deferred tools without
    /// the revealed ones.
    pub fn deferred_chars(&self) -> usize {
        let chars = |tools: &[Tool]| -> usize {
            tools.iter().map(|tool| tool.rendering().chars().count() + 1).sum()
        };
        chars(&self.deferred).saturating_sub(chars(&self.revealed))
    }
}

impl<'a> IntoIterator for &'a Menu {
    type Item = &'a Tool;
    type IntoIter = slice::Iter<'a, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn fingerprint(tools: &[Tool]) -> Digest {
    let digests: Vec<Digest> = tools.iter().map(|tool| tool.digest()).collect();
    Digest::of_all(&digests)
}

fn deferred_digest(tools: &[Tool]) -> Digest {
    let texts = tools.iter().flat_map(|tool| {
        let group =
            [tool.toolset().unwrap_or_default(), "\0", tool.mcp_server().unwrap_or_default()];
        [tool.digest(), Digest::of(group.concat())]
    });
    Digest::of_all(&texts.collect::<Vec<_>>())
}

fn at<'a>(tools: &'a [Tool], deferred: &'a [Tool], position: usize) -> Option<&'a Tool> {
    match position.checked_sub(tools.len()) {
        None => tools.get(position),
        Some(position) => deferred.get(position),
    }
}

impl Default for Menu {
    /// An empty menu.
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            stable: 0,
            deferred: Arc::default(),
            revealed: Vec::new(),
            by_name: Arc::default(),
            fingerprint: fingerprint(&[]),
            deferred_digest: deferred_digest(&[]),
            rendering: OnceLock::new(),
        }
    }
}
