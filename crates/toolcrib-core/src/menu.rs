//! The tools that a model sees in one iteration.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use crate::{digest::Digest, name::ToolName, registry::AlreadyRegisteredError, tool::Tool};

/// The offered tools of one iteration: immutable, ordered, unique by name. Calls run only against a
/// menu; a tool outside the menu cannot be called by any name.
///
/// [Deferred](Self::deferred) tools can be called, and are not part of the definitions: a model
/// finds them with `search_tools`.
///
/// Menus with the same content have the same fingerprint and the same rendering, byte for byte, so
/// that a model provider's prompt cache stays valid.
#[derive(Debug)]
pub struct Menu {
    tools: Vec<Tool>,
    deferred: Vec<Tool>,
    by_name: HashMap<ToolName, usize>,
    fingerprint: Digest,
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
        let digests: Vec<Digest> = tools.iter().map(|tool| tool.digest()).collect();
        Ok(Self {
            fingerprint: Digest::of_all(&digests),
            tools,
            deferred,
            by_name,
            rendering: OnceLock::new(),
        })
    }

    /// The offered tools that a model reads, in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The deferred tools: offered, and absent from [`tools`](Self::tools), the
    /// [names](Self::names), the fingerprint and the rendering.
    pub fn deferred(&self) -> &[Tool] {
        &self.deferred
    }

    /// The offered tool with exactly this name, deferred or not.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        let position = self.by_name.get(name)?;
        at(&self.tools, &self.deferred, *position)
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
            deferred: Vec::new(),
            by_name: HashMap::new(),
            fingerprint: Digest::of_all([]),
            rendering: OnceLock::new(),
        }
    }
}
