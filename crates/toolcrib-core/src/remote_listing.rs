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

/// One listing of somebody else's tools, sorted by their own names: the order of a list decides nothing.
/// For providers of what others describe; what a project has itself is a
/// [`ToolRegistry`](crate::ToolRegistry).
///
/// Nothing of a list is lost: what cannot be offered is held back with the reason. That is so for all but
/// the first of one name, of those in the order of their contents, for definitions of more than 64 KiB, and
/// for those that a [check](DefinitionCheck) refuses. Texts of the others are made
/// [harmless](Tool::sanitised), as results are.
#[derive(Debug)]
pub struct RemoteListing<D> {
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
        mut descriptions: Vec<D>,
        before: Option<&Self>,
        origin: &Arc<str>,
        check: Option<&DefinitionCheck>,
        mut make: impl FnMut(&D) -> Option<(Tool, Option<Reason>)>,
    ) -> Self {
        descriptions.sort_by(|a, b| a.name().cmp(&b.name()));
        for twins in descriptions.chunk_by_mut(|a, b| a.name() == b.name()) {
            if twins.len() > 1 {
                twins.sort_by_cached_key(D::content);
            }
        }
        let mut made = Self { offered: Vec::new(), held_back: Vec::new(), known: Vec::new() };
        for description in descriptions {
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
                None => made.offered.push(tool.clone()),
                Some(reason) => made.held_back.push(HeldBack {
                    tool: tool.clone(),
                    gate: Arc::clone(origin),
                    reason,
                }),
            }
            made.known.push(Known { description, tool, withheld });
        }
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

    /// Whether both hold the very same tools.
    pub fn same(&self, other: &Self) -> bool {
        self.known.len() == other.known.len()
            && self.known.iter().zip(&other.known).all(|(a, b)| a.tool.same(&b.tool))
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
