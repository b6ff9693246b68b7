//! The tools that a model sees in one iteration.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use crate::{digest::Digest, name::ToolName, registry::AlreadyRegisteredError, tool::Tool};

/// The offered tools of one iteration: immutable, ordered, unique by name. Calls run only against a
/// menu; a tool outside the menu cannot be called by any name.
///
/// Menus with the same content have the same fingerprint and the same rendering, byte for byte, so
/// that a model provider's prompt cache stays valid.
#[derive(Debug)]
pub struct Menu {
    tools: Vec<Tool>,
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
        let mut by_name = HashMap::with_capacity(tools.len());
        for (position, tool) in tools.iter().enumerate() {
            if let Some(first) = by_name.insert(tool.name().clone(), position) {
                // The position is an earlier one.
                let first = tools.get(first).unwrap_or(tool);
                return Err(AlreadyRegisteredError::between(first, tool));
            }
        }
        let digests: Vec<Digest> = tools.iter().map(|tool| tool.digest()).collect();
        Ok(Self {
            fingerprint: Digest::of_all(&digests),
            tools,
            by_name,
            rendering: OnceLock::new(),
        })
    }

    /// The offered tools, in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The offered tool with exactly this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name).and_then(|position| self.tools.get(*position))
    }

    /// The names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ToolName> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// The number of offered tools.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether no tool is offered.
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

impl Default for Menu {
    /// An empty menu.
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            by_name: HashMap::new(),
            fingerprint: Digest::of_all([]),
            rendering: OnceLock::new(),
        }
    }
}
