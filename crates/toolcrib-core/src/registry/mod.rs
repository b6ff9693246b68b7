//! A mutable, ordered set of tools.

mod diff;
mod merge;
mod slots;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use self::diff::RegistryDiff;
use self::slots::{Slot, Slots};
use crate::{
    catalog::Catalog,
    context_list::ListContext,
    definition::Lifetime,
    name::ToolName,
    provider::{Listing, ToolProvider},
    signals::{AckSubscription, TurnSignals},
    tool::Tool,
};

/// A mutable, insertion-ordered set of tools with unique names.
///
/// An engine has one as its baseline; every turn works on its own copy, so edits never reach a
/// concurrent or a later turn. A copy, and its first edit, cost the same however many tools there are.
/// Whoever shares one, a middleware, an executor, edits it through `&self`; each call stands for
/// itself.
///
/// It is a [`ToolProvider`] like any other: it offers its [visible](Self::visible) tools and holds back
/// those that are [hidden](Self::hide). Neighbour: [`static_tools`](crate::static_tools) is a fixed
/// list.
///
/// ```
/// use toolcrib_core::{Tool, ToolContext, ToolRegistry};
///
/// # fn tool(name: &str) -> Result<Tool, toolcrib_core::InvalidTool> {
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
    /// Shared with the contexts that it is bound to, and with nothing else.
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Clone, Default)]
struct State {
    slots: Slots,
    changes: u64,
}

/// Two tools under one name, and nothing says which of them yields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "tool `{name}` is already registered: it comes from {existing}, and again from {incoming}; \
     rename one of them; in a registry use `overwrite`, between sources declare `on_collision` on \
     the second"
)]
pub struct AlreadyRegistered {
    /// The name.
    pub name: ToolName,
    /// Where the tool that was there comes from.
    pub existing: Arc<str>,
    /// Where the one that was refused comes from.
    pub incoming: Arc<str>,
}

impl AlreadyRegistered {
    /// What the error is called wherever errors have codes.
    pub const CODE: &str = "E_TOOL_ALREADY_REGISTERED";

    /// One tool is there, and another one comes in.
    pub(crate) fn between(existing: &Tool, incoming: &Tool) -> Self {
        Self {
            name: incoming.name().clone(),
            existing: existing.comes_from().into(),
            incoming: incoming.comes_from().into(),
        }
    }
}

impl ToolRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    fn of(slots: Slots) -> Self {
        Self { state: Arc::new(Mutex::new(State { slots, changes: 0 })) }
    }

    /// No code of others runs while it is held.
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Adds a tool behind the others. No tool's `on_collision` is asked here.
    ///
    /// # Errors
    /// [`AlreadyRegistered`] when the name is taken; the registry is unchanged.
    pub fn register(&self, tool: Tool) -> Result<(), AlreadyRegistered> {
        let mut state = self.state();
        if let Some(taken) = state.slots.get(tool.name()) {
            return Err(AlreadyRegistered::between(&taken.tool, &tool));
        }
        state.slots.put(Slot { tool, hidden: false });
        state.changes += 1;
        Ok(())
    }

    /// Adds a tool in place of one with its name, whose place in the order it takes: hidden if that
    /// was. Returns the replaced tool: put it back yourself if an ephemeral one only stands in for it.
    pub fn overwrite(&self, tool: Tool) -> Option<Tool> {
        let mut state = self.state();
        let there = state.slots.get(tool.name());
        let hidden = there.is_some_and(|slot| slot.hidden);
        if !there.is_some_and(|slot| slot.tool.same(&tool)) {
            state.changes += 1;
        }
        state.slots.put(Slot { tool, hidden }).map(|slot| slot.tool)
    }

    /// Takes a tool out; the others keep their order. An unknown name does nothing. One that comes back
    /// is visible, behind the others.
    pub fn unregister(&self, name: &str) -> Option<Tool> {
        let mut state = self.state();
        let taken = state.slots.take(name)?;
        state.changes += 1;
        Some(taken.tool)
    }

    /// Keeps the tools for which the answer is yes; they keep their order.
    pub fn retain(&self, keep: impl Fn(&Tool) -> bool) {
        // Asked outside of the lock, since it is not ours.
        let gone: Vec<_> = self.all().into_iter().filter(|tool| !keep(tool)).collect();
        for tool in gone {
            self.unregister(tool.name());
        }
    }

    /// Takes out every tool with the [lifetime](Lifetime) of an iteration, offered or not, and gives
    /// back what it took out. Tools with a longer one end with the turn whose registry this is.
    pub fn prune_ephemeral(&self) -> Vec<Tool> {
        self.state().prune_ephemeral()
    }

    /// [Prunes](Self::prune_ephemeral) when that context is acked, before `ack` returns; at once where
    /// it was acked already, and never once it is nacked: then what is there can be looked at. Only
    /// [`unsubscribe`](AckSubscription::unsubscribe) takes it back; dropping the handle does not.
    ///
    /// A registry can be bound to any number of contexts, and twice to one. Copies and merges of it are
    /// not bound. The registry of a turn needs no binding: what it offers for one iteration goes with
    /// that.
    pub fn bind_context(&self, cx: &impl AsRef<TurnSignals>) -> AckSubscription {
        let state = Arc::downgrade(&self.state);
        cx.as_ref().on_ack(move || {
            if let Some(state) = state.upgrade() {
                let pruned = lock(&state).prune_ephemeral();
                drop(pruned);
            }
        })
    }

    /// Hides a tool: it is there and is not offered, so it cannot be called either. Whether there is
    /// such a tool; a name that is not registered is not remembered.
    pub fn hide(&self, name: &str) -> bool {
        self.state().set_hidden(name, true)
    }

    /// Shows a tool again. Whether there is such a tool.
    pub fn unhide(&self, name: &str) -> bool {
        self.state().set_hidden(name, false)
    }

    /// Shows all tools again.
    pub fn unhide_all(&self) {
        self.set_hidden(std::iter::empty::<&str>());
    }

    /// Hides these tools and shows all others. Names that are not registered do nothing.
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

    /// The tools of a toolset, in their order, as a registry of its own. Empty where there is no such
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

    /// The tool of that name, hidden or not.
    pub fn get(&self, name: &str) -> Option<Tool> {
        self.state().slots.get(name).map(|slot| slot.tool.clone())
    }

    /// Whether there is a tool of that name, hidden or not.
    pub fn has(&self, name: &str) -> bool {
        self.state().slots.get(name).is_some()
    }

    /// Whether there is a tool of that name, and it is hidden.
    pub fn is_hidden(&self, name: &str) -> bool {
        self.state().slots.get(name).is_some_and(|slot| slot.hidden)
    }

    /// Whether there is an ephemeral tool.
    pub fn has_ephemeral(&self) -> bool {
        self.state().slots.has_ephemeral()
    }

    /// A fresh list of all tools, hidden ones too, in the order in which they came.
    pub fn all(&self) -> Vec<Tool> {
        self.list_of(|_| true)
    }

    /// A fresh list of the tools that are not hidden, in order.
    pub fn visible(&self) -> Vec<Tool> {
        self.list_of(|slot| !slot.hidden)
    }

    /// A fresh list of the tools that are hidden, in order.
    pub fn hidden(&self) -> Vec<Tool> {
        self.list_of(|slot| slot.hidden)
    }

    fn list_of(&self, which: impl Fn(&Slot) -> bool) -> Vec<Tool> {
        let state = self.state();
        let listed = state.slots.iter().filter(|slot| which(slot));
        listed.map(|slot| slot.tool.clone()).collect()
    }

    /// Adds the tools to a list: it offers those that are visible, and holds back those that are hidden.
    pub fn list_into(&self, into: &mut Catalog) {
        let state = self.state();
        let mut gate: Option<Arc<str>> = None;
        for Slot { tool, hidden } in state.slots.iter() {
            if *hidden {
                let gate = gate.get_or_insert_with(|| self.id().into());
                into.hold_back(tool.clone(), Arc::clone(gate), "it is hidden there");
            } else {
                into.offer(tool.clone());
            }
        }
    }

    /// How many tools there are, hidden ones too.
    pub fn len(&self) -> usize {
        self.state().slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many edits have changed it. A copy counts on from here; what a merge or
    /// [`for_toolset`](Self::for_toolset) made counts from 0. While the number stays, so do the tools.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }
}

impl State {
    fn set_hidden(&mut self, name: &str, hidden: bool) -> bool {
        let Some(slot) = self.slots.get(name) else { return false };
        if slot.hidden != hidden {
            let tool = slot.tool.clone();
            self.slots.put(Slot { tool, hidden });
            self.changes += 1;
        }
        true
    }

    /// The tools come out, so that they are dropped outside of the lock.
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
    /// Another registry with the same tools: what is edited in one is not edited in the other.
    fn clone(&self) -> Self {
        let state = self.state().clone();
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

impl TryFrom<Vec<Tool>> for ToolRegistry {
    type Error = AlreadyRegistered;

    fn try_from(tools: Vec<Tool>) -> Result<Self, AlreadyRegistered> {
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

    fn list(self: Arc<Self>, _cx: &ListContext, mut into: Catalog) -> Listing {
        self.list_into(&mut into);
        Listing::now(into)
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let names = state.slots.iter().map(|slot| slot.tool.name());
        f.debug_list().entries(names).finish()
    }
}

/// A lock that a panicking holder leaves usable; nobody's code runs under it.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
