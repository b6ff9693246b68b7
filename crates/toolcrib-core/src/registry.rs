//! A mutable, ordered set of tools.

use std::sync::Arc;

use indexmap::{IndexMap, map::Entry};

use crate::{
    catalog::Catalog,
    context_list::ListContext,
    name::ToolName,
    provider::{Listing, ToolProvider},
    tool::Tool,
};

/// A mutable, insertion-ordered set of tools with unique names.
///
/// An engine has one as its baseline; every turn works on its own copy, so edits never reach a
/// concurrent or a later turn. It is a [`ToolProvider`] like any other. Neighbour:
/// [`static_tools`](crate::static_tools) is a fixed list.
#[derive(Debug, Clone, Default)]
pub struct ToolRegistry {
    tools: IndexMap<ToolName, Tool>,
    /// Whether there may be an ephemeral tool, so that the usual registry need not be searched.
    ephemeral: bool,
}

/// A name that is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "tool `{name}` is already registered: it comes from {existing}, and again from {incoming}; \
     rename one of them, or use `overwrite`"
)]
pub struct AlreadyRegistered {
    /// The name.
    pub name: ToolName,
    /// Where the tool that was there comes from.
    pub existing: Arc<str>,
    /// Where the one that was refused comes from.
    pub incoming: Arc<str>,
}

impl ToolRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. No tool's `on_collision` is asked here.
    ///
    /// # Errors
    /// [`AlreadyRegistered`] when the name is taken; the registry is unchanged.
    pub fn register(&mut self, tool: Tool) -> Result<(), AlreadyRegistered> {
        match self.tools.entry(tool.name().clone()) {
            Entry::Occupied(taken) => Err(AlreadyRegistered {
                name: taken.key().clone(),
                existing: taken.get().comes_from().into(),
                incoming: tool.comes_from().into(),
            }),
            Entry::Vacant(free) => {
                self.ephemeral |= tool.ephemeral().is_some();
                free.insert(tool);
                Ok(())
            }
        }
    }

    /// Adds a tool in place of one with its name, whose place in the order it takes.
    /// Returns the replaced tool: put it back yourself if an ephemeral one only stands in for it.
    pub fn overwrite(&mut self, tool: Tool) -> Option<Tool> {
        self.ephemeral |= tool.ephemeral().is_some();
        self.tools.insert(tool.name().clone(), tool)
    }

    /// Takes a tool out; the others keep their order. An unknown name does nothing.
    pub fn unregister(&mut self, name: &str) -> Option<Tool> {
        self.tools.shift_remove(name)
    }

    /// Keeps the tools for which the answer is yes; they keep their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&Tool) -> bool) {
        self.tools.retain(|_, tool| keep(tool));
    }

    /// The tools of a toolset, in their order, as a registry of its own. Empty where there is no such
    /// toolset.
    #[must_use]
    pub fn for_toolset(&self, toolset: &str) -> Self {
        let of_toolset = self.iter().filter(|tool| tool.toolset() == Some(toolset)).cloned();
        let tools: IndexMap<_, _> = of_toolset.map(|tool| (tool.name().clone(), tool)).collect();
        let ephemeral = tools.values().any(|tool| tool.ephemeral().is_some());
        Self { tools, ephemeral }
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// Whether there is a tool of that name.
    pub fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// Whether there may be an ephemeral tool: `false` is certain.
    pub fn has_ephemeral(&self) -> bool {
        self.ephemeral
    }

    /// A fresh list of all tools, in the order in which they came.
    pub fn all(&self) -> Vec<Tool> {
        self.iter().cloned().collect()
    }

    /// All tools, in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Tool> {
        self.tools.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

impl TryFrom<Vec<Tool>> for ToolRegistry {
    type Error = AlreadyRegistered;

    fn try_from(tools: Vec<Tool>) -> Result<Self, AlreadyRegistered> {
        let mut registry = Self::new();
        for tool in tools {
            registry.register(tool)?;
        }
        Ok(registry)
    }
}

impl ToolProvider for ToolRegistry {
    fn id(&self) -> &str {
        "registry"
    }

    fn list(self: Arc<Self>, _cx: &ListContext, mut into: Catalog) -> Listing {
        into.offer_all(self.iter());
        Listing::now(into)
    }
}
