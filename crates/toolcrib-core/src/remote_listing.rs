//! What a server or a catalogue lists, made into tools.

use std::{fmt, sync::Arc};

use crate::{
    catalog::{Catalog, HeldBack, Reason},
    digest::Digest,
    tool::Tool,
};

/// The largest definition that is offered, in bytes of what the model reads.
const LARGEST: usize = 64 * 1024;

/// Decides whether a definition that somebody else wrote may be offered; asked once per definition, on
/// the definition as it was written.
#[derive(Clone)]
pub struct DefinitionCheck(Arc<Refusal>);

/// The reason to hold a tool back, if there is one.
type Refusal = dyn Fn(&Tool) -> Option<Arc<str>> + Send + Sync;

impl DefinitionCheck {
    /// A check that gives the reason to hold a tool back, or none.
    pub fn new(check: impl Fn(&Tool) -> Option<Arc<str>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

impl fmt::Debug for DefinitionCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DefinitionCheck")
    }
}

/// A tool as somebody else describes it; nothing of it is believed yet.
pub trait RemoteDescription: PartialEq {
    /// Its own name; none where it was given none.
    fn name(&self) -> Option<&str>;

    /// What is said of it beside the name.
    fn content(&self) -> Digest;
}

/// In which order the tools of a listing are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListOrder {
    /// By their own names: a source that lists the same tools in another order changes nothing, and
    /// the model's prompt cache holds.
    #[default]
    ByName,
    /// As the source lists them: for one that ranks its tools, and keeps to an order.
    AsGiven,
}

/// One listing of somebody else's tools, in the order of their own names unless it is to be
/// [`ListOrder::AsGiven`]. For providers of what others describe; what a project has itself is a
/// [`ToolRegistry`](crate::ToolRegistry).
///
/// Nothing of a list is lost: what cannot be offered is held back with the reason. That is so for all but
/// the first of one name, of those in the order of their contents, for definitions of more than 64 KiB, and
/// for those that a [check](DefinitionCheck) refuses. Texts of the others are made
/// [harmless](Tool::sanitised), as results are.
#[derive(Debug)]
pub struct RemoteListing<D> {
    /// In the order that was asked for; all else is sorted by name.
    offered: Vec<Tool>,
    held_back: Vec<HeldBack>,
    known: Vec<Known<D>>,
}

/// A description, and what was made of it.
#[derive(Debug)]
struct Known<D> {
    description: D,
    tool: Tool,
    /// Why the tool is held back, whatever else is listed.
    withheld: Option<Reason>,
}

impl<D: RemoteDescription> RemoteListing<D> {
    /// Makes tools of what was listed, each with the reason to hold it back if there is one; what is
    /// none at all, and cannot be shown as one, is left out. What holds tools back is called `origin`.
    ///
    /// A tool whose description did not change is the very one that it was in `before`, so that an
    /// unchanged menu stays the same to the byte.
    pub fn new(
        descriptions: Vec<D>,
        order: ListOrder,
        before: Option<&Self>,
        origin: &Arc<str>,
        check: Option<&DefinitionCheck>,
        mut make: impl FnMut(&D) -> Option<(Tool, Option<Reason>)>,
    ) -> Self {
        let mut descriptions: Vec<_> = descriptions.into_iter().enumerate().collect();
        descriptions.sort_by(|(_, a), (_, b)| a.name().cmp(&b.name()));
        for twins in descriptions.chunk_by_mut(|(_, a), (_, b)| a.name() == b.name()) {
            if twins.len() > 1 {
                twins.sort_by_cached_key(|(_, description)| description.content());
            }
        }
        let mut made = Self { offered: Vec::new(), held_back: Vec::new(), known: Vec::new() };
        let mut offered = Vec::new();
        for (position, description) in descriptions {
            let known = before.and_then(|before| before.find(&description));
            let known = known.map(|known| (known.tool.clone(), known.withheld.clone()));
            let Some((tool, withheld)) = known.or_else(|| {
                let (tool, withheld) = make(&description)?;
                Some(match withheld.or_else(|| too_large(&tool)) {
                    Some(reason) => (tool, Some(reason)),
                    None => as_offered(tool, check),
                })
            }) else {
                continue;
            };
            let name = description.name();
            let last = made.known.last();
            let is_twin =
                name.is_some() && last.is_some_and(|last| last.description.name() == name);
            let twin = || is_twin.then(|| "another tool of the same name is listed".into());
            match withheld.clone().or_else(twin) {
                None => offered.push((position, tool.clone())),
                Some(reason) => made.held_back.push(HeldBack {
                    tool: tool.clone(),
                    gate: Arc::clone(origin),
                    reason,
                }),
            }
            made.known.push(Known { description, tool, withheld });
        }
        if order == ListOrder::AsGiven {
            offered.sort_by_key(|(position, _)| *position);
        }
        made.offered = offered.into_iter().map(|(_, tool)| tool).collect();
        made
    }

    /// What is offered.
    pub fn offered(&self) -> &[Tool] {
        &self.offered
    }

    /// What is held back.
    pub fn held_back(&self) -> &[HeldBack] {
        &self.held_back
    }

    /// Puts what is offered and what is held back into a list; texts are shared, not copied.
    pub fn fill(&self, catalog: &mut Catalog) {
        catalog.offer_all(&self.offered);
        for held in &self.held_back {
            catalog.hold_back(held.tool.clone(), Arc::clone(&held.gate), held.reason.clone());
        }
    }

    /// Whether both hold the very same tools, and offer them in the same order.
    pub fn same(&self, other: &Self) -> bool {
        let known = self.known.iter().zip(&other.known);
        let offered = self.offered.iter().zip(&other.offered);
        self.known.len() == other.known.len()
            && self.offered.len() == other.offered.len()
            && known.map(|(a, b)| (&a.tool, &b.tool)).chain(offered).all(|(a, b)| a.same(b))
    }

    /// The own names of all that is listed, held back or not.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.known.iter().filter_map(|known| known.description.name())
    }

    /// What was made of the same description.
    fn find(&self, description: &D) -> Option<&Known<D>> {
        let name = description.name();
        let first = self.known.partition_point(|known| known.description.name() < name);
        let mut twins =
            self.known.get(first..)?.iter().take_while(|known| known.description.name() == name);
        twins.find(|known| known.description == *description)
    }
}

/// The tool as it is offered, else why it is held back.
fn as_offered(tool: Tool, check: Option<&DefinitionCheck>) -> (Tool, Option<Reason>) {
    if let Some(reason) = check.and_then(|check| (check.0)(&tool)) {
        return (tool, Some(Reason::Definition(reason)));
    }
    match tool.sanitised() {
        Ok(clean) => (clean, None),
        Err(reason) => (tool, Some(Reason::Definition(reason.into()))),
    }
}

fn too_large(tool: &Tool) -> Option<Reason> {
    let bytes = tool.rendering().len();
    (bytes > LARGEST)
        .then(|| format!("its definition has {bytes} bytes; {LARGEST} are the most").into())
}
