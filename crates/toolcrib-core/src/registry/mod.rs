//! A mutable, ordered set of tools.

mod diff;
mod merge;
mod slots;

use std::{fmt, sync::Arc};

use parking_lot::{Mutex, MutexGuard};

pub use self::diff::RegistryDiff;
use self::slots::{Slot, Slots};
pub use crate::tool::OnCollision;
use crate::{
    names::name::ToolName,
    provider::{Listing, ToolProvider, catalog::Catalog, context_list::ListContext},
    tool::{Tool, definition::Lifetime},
    turn::signals::{AckSubscription, TurnSignals},
};

/// A mutable, insertion-ordered set of tools with unique names.
///
/// An engine has one as its baseline; every turn works on its own copy, so edits never reach a
/// concurrent or a later turn. A copy and its first edit cost the same regardless of the number of
/// tools. Middleware and executors edit a shared registry through `&self`; each call is atomic by
/// itself.
///
/// It is a [`ToolProvider`]: it offers its [visible](Self::visible) tools and withholds the
/// [hidden](Self::hide) ones. Neighbor: [`static_tools`](crate::static_tools) is a fixed list.
///
/// ```
/// use toolcrib_core::{Tool, ToolContext, ToolRegistry};
///
/// # fn tool(name: &str) -> Result<Tool, toolcrib_core::InvalidToolError> {
/// #     Tool::builder(name).description("x").handler(|_: serde_json::Value, _: ToolContext| async { "" })
/// # }
/// let baseline = ToolRegistry::try_from(vec![tool("read")?, tool("write")?])?;
/// let turn = baseline.clone();
/// turn.register(tool("undo")?)?;
/// turn.hide("write");
/// assert_eq!(turn.visible().iter().map(|tool| tool.name().as_str()).collect::<Vec<_>>(), ["read", "undo"]);
/// assert_eq!(baseline.visible().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct ToolRegistry {
    /// Shared only with the contexts that it is bound to.
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Clone, Default)]
struct State {
    slots: Slots,
    changes: u64,
    /// The list, and the number of changes when it was made.
    listed: Option<(u64, Catalog)>,
}

/// Two tools with the same name, without a rule for the collision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "tool `{name}` is already registered: it comes from {existing}, and again from {incoming}; \
     rename one of them; in a registry use `overwrite`, between sources declare `on_collision` on \
     the second"
)]
pub struct AlreadyRegisteredError {
    /// The name.
    pub name: ToolName,
    /// The origin of the existing tool.
    pub existing: Arc<str>,
    /// The origin of the refused tool.
    pub incoming: Arc<str>,
}

impl AlreadyRegisteredError {
    /// The code of this error.
    pub const CODE: &str = "E_TOOL_ALREADY_REGISTERED";

    /// A collision of an existing and an incoming tool.
    pub(crate) fn between(existing: &Tool, incoming: &Tool) -> Self {
        Self {
            name: incoming.name().clone(),
            existing: existing.origin_label().into(),
            incoming: incoming.origin_label().into(),
        }
    }
}

impl ToolRegistry {
    /// Creates a registry without tools.
    pub fn new() -> Self {
        Self::default()
    }

    fn of(slots: Slots) -> Self {
        Self { state: Arc::new(Mutex::new(State { slots, ..State::default() })) }
    }

    /// No user code runs while the lock is held.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Appends a tool to the registry. `on_collision` is not applied.
    ///
    /// # Errors
    /// [`AlreadyRegisteredError`] if the name is taken; the registry is unchanged.
    pub fn register(&self, tool: Tool) -> Result<(), AlreadyRegisteredError> {
        let mut state = self.state();
        if let Some(taken) = state.slots.get(tool.name()) {
            return Err(AlreadyRegisteredError::between(&taken.tool, &tool));
        }
        state.slots.put(Slot { tool, hidden: false });
        state.changes += 1;
        Ok(())
    }

    /// Adds a tool and replaces one with the same name, at its position, and hidden if that was
    /// hidden. Returns the replaced tool: put it back yourself if an ephemeral one replaces it
    /// temporarily.
    pub fn overwrite(&self, tool: Tool) -> Option<Tool> {
        let mut state = self.state();
        let there = state.slots.get(tool.name());
        let hidden = there.is_some_and(|slot| slot.hidden);
        if !there.is_some_and(|slot| slot.tool.same(&tool)) {
            state.changes += 1;
        }
        state.slots.put(Slot { tool, hidden }).map(|slot| slot.tool)
    }

    /// Removes a tool; the others keep their order. An unknown name does nothing. A tool that is
    /// registered again is visible and last.
    pub fn unregister(&self, name: &str) -> Option<Tool> {
        let mut state = self.state();
        let taken = state.slots.take(name)?;
        state.changes += 1;
        Some(taken.tool)
    }

    /// Keeps the tools for which `keep` returns true, in their order.
    pub fn retain(&self, keep: impl Fn(&Tool) -> bool) {
        // Called outside the lock, because it is user code.
        let gone: Vec<_> = self.all().into_iter().filter(|tool| !keep(tool)).collect();
        for tool in gone {
            self.unregister(tool.name());
        }
    }

    /// Removes and returns every tool with the [lifetime](Lifetime) of an iteration, offered or
    /// not. Tools with a longer lifetime end with the turn that owns the registry.
    pub fn prune_ephemeral(&self) -> Vec<Tool> {
        self.state().prune_ephemeral()
    }

    /// [Prunes](Self::prune_ephemeral) when the context is acked, before `ack` returns; immediately
    /// if it is already acked, and never once it is nacked: then the tools can be inspected. Only
    /// [`unsubscribe`](AckSubscription::unsubscribe) cancels it; dropping the handle does not.
    ///
    /// A registry can be bound to any number of contexts, and twice to one. Copies and merges of it
    /// are not bound. The registry of a turn needs no binding: tools of one iteration are removed
    /// with the iteration.
    pub fn bind_context(&self, cx: &impl AsRef<TurnSignals>) -> AckSubscription {
        let state = Arc::downgrade(&self.state);
        cx.as_ref().on_ack(move || {
            if let Some(state) = state.upgrade() {
                let pruned = state.lock().prune_ephemeral();
                drop(pruned);
            }
        })
    }

    /// Hides a tool: it stays registered and is not offered, so it cannot be called. Returns
    /// whether the tool exists; unregistered names are not remembered.
    pub fn hide(&self, name: &str) -> bool {
        self.state().set_hidden(name, true)
    }

    /// Shows a tool again. Returns whether the tool exists.
    pub fn unhide(&self, name: &str) -> bool {
        self.state().set_hidden(name, false)
    }

    /// Shows all tools again.
    pub fn unhide_all(&self) {
        self.set_hidden(std::iter::empty::<&str>());
    }

    /// Hides these tools and shows all others. Unregistered names are ignored.
    pub fn set_hidden(&self, names: impl IntoIterator<Item = impl AsRef<str>>) {
        let names: Vec<_> = names.into_iter().collect();
        let hidden: std::collections::HashSet<&str> = names.iter().map(AsRef::as_ref).collect();
        let mut state = self.state();
        let differ = |slot: &&Slot| slot.hidden != hidden.contains(slot.tool.name().as_str());
        let differing: Vec<_> = state.slots.iter().filter(differ).cloned().collect();
        for slot in differing {
            state.set_hidden(slot.tool.name(), !slot.hidden);
        }
    }

    /// A new registry with the tools of a toolset, in their order. Empty if there is no such
    /// toolset.
    #[must_use]
    pub fn for_toolset(&self, toolset: &str) -> Self {
        let mut slots = Slots::default();
        let state = self.state();
        for slot in state.slots.iter().filter(|slot| slot.tool.toolset() == Some(toolset)) {
            slots.put(slot.clone());
        }
        Self::of(slots)
    }

    /// The tool with this name, hidden or not.
    pub fn get(&self, name: &str) -> Option<Tool> {
        self.state().slots.get(name).map(|slot| slot.tool.clone())
    }

    /// Whether a tool with this name exists, hidden or not.
    pub fn has(&self, name: &str) -> bool {
        self.state().slots.get(name).is_some()
    }

    /// Whether a tool with this name exists and is hidden.
    pub fn is_hidden(&self, name: &str) -> bool {
        self.state().slots.get(name).is_some_and(|slot| slot.hidden)
    }

    /// Whether there is an ephemeral tool.
    pub fn has_ephemeral(&self) -> bool {
        self.state().slots.has_ephemeral()
    }

    /// A new list of all tools, including hidden ones, in insertion order.
    pub fn all(&self) -> Vec<Tool> {
        self.list_of(|_| true)
    }

    /// A new list of the visible tools, in order.
    pub fn visible(&self) -> Vec<Tool> {
        self.list_of(|slot| !slot.hidden)
    }

    /// A new list of the hidden tools, in order.
    pub fn hidden(&self) -> Vec<Tool> {
        self.list_of(|slot| slot.hidden)
    }

    fn list_of(&self, which: impl Fn(&Slot) -> bool) -> Vec<Tool> {
        let state = self.state();
        let listed = state.slots.iter().filter(|slot| which(slot));
        listed.map(|slot| slot.tool.clone()).collect()
    }

    /// The tools as a provider's list: offers the visible ones, and withholds the hidden ones. While
    /// the tools are unchanged, it is the same list; copies share it.
    pub fn catalog(&self) -> Catalog {
        self.state().catalog(self.id())
    }

    /// The number of tools, including hidden ones.
    pub fn len(&self) -> usize {
        self.state().slots.len()
    }

    /// Whether the registry is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of edits. A copy continues from the same number; the result of a merge or of
    /// [`for_toolset`](Self::for_toolset) starts at 0. While the number is unchanged, so are the
    /// tools.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }
}

impl State {
    fn catalog(&mut self, gate: &str) -> Catalog {
        if let Some((changes, catalog)) = &self.listed
            && *changes == self.changes
        {
            return catalog.clone();
        }
        let (hidden, visible): (Vec<_>, Vec<_>) = self.slots.iter().partition(|slot| slot.hidden);
        let mut catalog: Catalog = visible.into_iter().map(|slot| slot.tool.clone()).collect();
        if !hidden.is_empty() {
            let gate: Arc<str> = gate.into();
            for slot in hidden {
                catalog.withhold(slot.tool.clone(), Arc::clone(&gate), "hidden in the registry");
            }
        }
        self.listed = Some((self.changes, catalog.clone()));
        catalog
    }

    fn set_hidden(&mut self, name: &str, hidden: bool) -> bool {
        let Some(slot) = self.slots.get(name) else { return false };
        if slot.hidden != hidden {
            let tool = slot.tool.clone();
            self.slots.put(Slot { tool, hidden });
            self.changes += 1;
        }
        true
    }

    /// Returns the tools, so that they are dropped outside the lock.
    fn prune_ephemeral(&mut self) -> Vec<Tool> {
        if !self.slots.has_ephemeral() {
            return Vec::new();
        }
        let gone = self.slots.retain(|slot| slot.tool.ephemeral() != Some(Lifetime::Iteration));
        self.changes += u64::from(!gone.is_empty());
        gone.into_iter().map(|slot| slot.tool).collect()
    }
}

impl Clone for ToolRegistry {
    /// An independent registry with the same tools.
    fn clone(&self) -> Self {
        let state = self.state().clone();
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

impl TryFrom<Vec<Tool>> for ToolRegistry {
    type Error = AlreadyRegisteredError;

    fn try_from(tools: Vec<Tool>) -> Result<Self, AlreadyRegisteredError> {
        let registry = Self::new();
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

    fn list(self: Arc<Self>, _cx: &ListContext) -> Listing {
        Listing::now(self.catalog())
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let names = state.slots.iter().map(|slot| slot.tool.name());
        f.debug_list().entries(names).finish()
    }
}
