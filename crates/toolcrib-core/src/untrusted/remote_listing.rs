//! Converts the tools that a server or a catalog lists.

use std::{borrow::Cow, fmt, sync::Arc};

use icu_normalizer::ComposingNormalizerBorrowed;
use serde_json::Value;

use crate::{
    json::digest::Digest,
    provider::catalog::{Catalog, Reason},
    secrets::secret::Redact,
    tool::{Redaction, Tool, missing_reason::MissingReason},
};

/// The maximum size of an offered definition, in bytes of the model's text.
const LARGEST: usize = 64 * 1024;

/// Decides whether a remote definition may be offered: a function that is called once per
/// definition, with the original one, and the [pins](DefinitionPins) of earlier definitions.
#[derive(Clone, Default)]
pub struct DefinitionCheck {
    refusal: Option<Arc<Refusal>>,
    pins: Option<Arc<dyn DefinitionPins>>,
    redact: Option<Arc<dyn Redact>>,
}

/// The reason to withhold a tool, if any.
type Refusal = dyn Fn(&Tool) -> Option<Arc<str>> + Send + Sync;

impl DefinitionCheck {
    /// A check that returns the reason to withhold a tool, or none.
    pub fn new(check: impl Fn(&Tool) -> Option<Arc<str>> + Send + Sync + 'static) -> Self {
        Self { refusal: Some(Arc::new(check)), ..Self::default() }
    }

    /// Also compares each definition with the one that was pinned under its name. Default: no pins.
    #[must_use]
    pub fn with_pins(mut self, pins: Arc<dyn DefinitionPins>) -> Self {
        self.pins = Some(pins);
        self
    }

    /// Also redacts known secrets in definitions, before anything else reads them; the pins compare
    /// the original ones. Default: only the engine redacts them.
    #[must_use]
    pub fn with_redaction(mut self, redact: Arc<dyn Redact>) -> Self {
        self.redact = Some(redact);
        self
    }

    /// The pins, if there are any.
    pub fn pins(&self) -> Option<&Arc<dyn DefinitionPins>> {
        self.pins.as_ref()
    }
}

/// The kind of a pinned definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PinKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A source's instructions for models.
    Instructions,
    /// A skill: its name, its description, and the digests of its files.
    Skill,
}

impl PinKind {
    /// Its word: `tool`, `prompt`, `instructions` or `skill`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Instructions => "instructions",
            Self::Skill => "skill",
        }
    }
}

impl fmt::Display for PinKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A definition as its source describes it.
#[derive(Debug, Clone)]
pub struct PinnedDefinition {
    /// The source's own name of it.
    pub name: Arc<str>,
    /// The description that a model or a client could receive.
    pub definition: Value,
    /// Whether it would be offered. Others are compared, and not pinned.
    pub is_offered: bool,
}

/// Why pins withhold a definition: the fixed text for clients, and the reason for the operator.
pub type PinRefusal = (MissingReason, Arc<str>);

/// Compares definitions of remote sources with those that were pinned at their first use, so that a
/// source cannot change them unseen.
pub trait DefinitionPins: Send + Sync + 'static {
    /// The reason to withhold each of these definitions, in their order, with its fixed text for
    /// clients: [`New`](MissingReason::New) or [`Changed`](MissingReason::Changed); none offers it. A
    /// definition without a pin is pinned if it would be offered. Called for each list. `source` is
    /// the origin of its tools, such as `mcp:git`. Each definition is made when it is read. It may
    /// read and write a small file.
    ///
    /// # Errors
    /// Why the source must not be used at all.
    fn check(
        &self,
        source: &str,
        kind: PinKind,
        definitions: &mut dyn Iterator<Item = PinnedDefinition>,
    ) -> Result<Vec<Option<PinRefusal>>, Arc<str>>;
}

crate::internal::debug_fields!(DefinitionCheck);

/// The definition of a remote tool, not yet validated.
pub trait RemoteDefinition: PartialEq {
    /// The kind under which it is [pinned](DefinitionPins).
    const KIND: PinKind = PinKind::Tool;

    /// The remote name; `None` if it has none.
    fn name(&self) -> Option<&str>;

    /// The definition without the name: everything that a model or a client could receive of it.
    fn definition(&self) -> Value;
}

/// The order of a listing's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListOrder {
    /// By remote name: a source that lists the same tools in another order changes nothing, and the
    /// model's prompt cache stays valid.
    #[default]
    ByName,
    /// In the source's order: for a source that ranks its tools and keeps a stable order.
    AsGiven,
}

/// One listing of remote tools, ordered by remote name unless it is [`ListOrder::AsGiven`]. For
/// providers of remote definitions; for a project's own tools use a
/// [`ToolRegistry`](crate::ToolRegistry).
///
/// Every listed tool is kept: one that cannot be offered is withheld with the reason. This applies
/// to all but the first of several definitions with the same name, in order of their contents, to
/// definitions of more than 64 KiB, and to those that a [check](DefinitionCheck) refuses. Texts of
/// the others are made [harmless](Tool::sanitized), as results are.
#[derive(Debug)]
pub struct RemoteListing<D> {
    /// The offered tools in the requested order; everything else is sorted by name.
    catalog: Catalog,
    known: Vec<KnownTool<D>>,
}

/// A description and the tool made of it.
#[derive(Debug)]
struct KnownTool<D> {
    description: D,
    tool: Tool,
    /// The reason to withhold the tool, independent of the other tools listed.
    withheld: Option<Reason>,
}

impl<D: RemoteDefinition> RemoteListing<D> {
    /// Converts the listed definitions into tools, each with the reason to withhold it, if any; a
    /// definition that cannot be represented as a tool at all is left out. `origin` is the name
    /// that withholds.
    ///
    /// A tool with an unchanged description is the same instance as in `before`, so that an
    /// unchanged menu stays identical to the byte.
    ///
    /// # Errors
    /// Why the source must not be used, if its [pins](DefinitionPins) say so.
    pub fn new(
        descriptions: Vec<D>,
        order: ListOrder,
        before: Option<&Self>,
        origin: &Arc<str>,
        check: Option<&DefinitionCheck>,
        mut make: impl FnMut(&D) -> Option<(Tool, Option<Reason>)>,
    ) -> Result<Self, Arc<str>> {
        let mut made = Self { catalog: Catalog::new(), known: Vec::new() };
        let (mut offered, mut others) = (Vec::new(), Vec::new());
        for (position, description) in by_name(descriptions) {
            let known = before.and_then(|before| before.find(&description));
            let known = known.map(|known| (known.tool.clone(), known.withheld.clone()));
            let Some((tool, withheld)) = known.or_else(|| {
                let (tool, withheld) = make(&description)?;
                let (tool, secret) = without_secrets(tool, description.name(), check);
                Some(match secret.or(withheld).or_else(|| too_large(&tool)) {
                    Some(reason) => (tool, Some(reason)),
                    None => as_offered(tool, check),
                })
            }) else {
                continue;
            };
            let name = description.name();
            let last = made.known.last();
            let is_twin = name.is_some()
                && last.is_some_and(|last| one_name(&last.description) == one_name(&description));
            let place = made.known.len();
            match withheld.clone() {
                None if !is_twin => offered.push((position, place)),
                Some(reason) if !is_twin && name.is_some() => others.push((place, reason)),
                reason => {
                    let reason = reason.unwrap_or_else(|| {
                        let text = "another listed tool has the same name";
                        Reason::Definition(MissingReason::SameName, text.into())
                    });
                    made.catalog.withhold(tool.clone(), Arc::clone(origin), reason);
                }
            }
            made.known.push(KnownTool { description, tool, withheld });
        }
        if order == ListOrder::AsGiven {
            offered.sort_by_key(|(position, _)| *position);
        }
        let offered = offered.into_iter().map(|(_, place)| (place, None));
        let others = others.into_iter().map(|(place, reason)| (place, Some(reason)));
        made.settle(offered.chain(others), origin, check)?;
        Ok(made)
    }

    /// Offers or withholds the tools at these places, each with its flaw, once their definitions
    /// were compared with the pins.
    fn settle(
        &mut self,
        places: impl Iterator<Item = (usize, Option<Reason>)>,
        origin: &Arc<str>,
        check: Option<&DefinitionCheck>,
    ) -> Result<(), Arc<str>> {
        let Self { catalog, known } = self;
        let all: Vec<_> =
            places.filter_map(|(place, reason)| Some((known.get(place)?, reason))).collect();
        let changed = match check.and_then(DefinitionCheck::pins) {
            Some(pins) => pins.check(origin, D::KIND, &mut definitions(&all))?,
            None => Vec::new(),
        };
        let mut changed = changed.into_iter();
        for (known, reason) in all {
            // A change is reported first: another flaw may be a part of it.
            let changed = changed.next().flatten().map(|(of, text)| Reason::Definition(of, text));
            let reason = match reason {
                // The operator does not want it, whatever its definition.
                Some(unwanted) if !matches!(unwanted, Reason::Definition(..)) => Some(unwanted),
                flaw => changed.or(flaw),
            };
            match reason {
                None => catalog.offer(known.tool.clone()),
                Some(reason) => catalog.withhold(known.tool.clone(), Arc::clone(origin), reason),
            }
        }
        Ok(())
    }

    /// The offered and withheld tools; clones share one list.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The definitions of the offered tools, each with its tool, in order.
    pub fn offered(&self) -> impl Iterator<Item = (&D, &Tool)> {
        self.catalog.offered().iter().filter_map(|tool| {
            let known = self.known.iter().find(|known| known.tool.same(tool))?;
            Some((&known.description, tool))
        })
    }

    /// Whether both contain the same tool instances and offer them in the same order.
    pub fn same(&self, other: &Self) -> bool {
        let known = self.known.iter().zip(&other.known);
        let (offered, others) = (self.catalog.offered(), other.catalog.offered());
        self.known.len() == other.known.len()
            && offered.len() == others.len()
            && known
                .map(|(a, b)| (&a.tool, &b.tool))
                .chain(offered.iter().zip(others))
                .all(|(a, b)| a.same(b))
    }

    /// The remote names of all listed tools, offered or withheld.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.known.iter().filter_map(|known| known.description.name())
    }

    /// The tool made of an equal description.
    fn find(&self, description: &D) -> Option<&KnownTool<D>> {
        let name = one_name(description);
        let first = self.known.partition_point(|known| one_name(&known.description) < name);
        let mut twins = self
            .known
            .get(first..)?
            .iter()
            .take_while(|known| one_name(&known.description) == name);
        twins.find(|known| known.description == *description)
    }
}

/// Descriptions with their positions, in the order of their names, and those of one name in that of
/// their contents.
fn by_name<D: RemoteDefinition>(descriptions: Vec<D>) -> Vec<(usize, D)> {
    let mut descriptions: Vec<_> = descriptions.into_iter().enumerate().collect();
    descriptions.sort_by(|(_, a), (_, b)| one_name(a).cmp(&one_name(b)));
    for twins in descriptions.chunk_by_mut(|(_, a), (_, b)| one_name(a) == one_name(b)) {
        if twins.len() > 1 {
            twins.sort_by_cached_key(|(_, one)| Digest::of_json(&one.definition()));
        }
    }
    descriptions
}

fn one_name(description: &impl RemoteDefinition) -> Option<Cow<'_, str>> {
    description.name().map(composed)
}

/// A name in Unicode's form C: names that differ only by their form look the same, and are one name.
pub fn composed(name: &str) -> Cow<'_, str> {
    match name.is_ascii() {
        true => name.into(),
        false => ComposingNormalizerBorrowed::new_nfc().normalize(name),
    }
}

fn definitions<D: RemoteDefinition>(
    known: &[(&KnownTool<D>, Option<Reason>)],
) -> impl Iterator<Item = PinnedDefinition> {
    let definition = |(known, withheld): &(&KnownTool<D>, Option<Reason>)| PinnedDefinition {
        name: known.description.name().unwrap_or_default().into(),
        definition: known.description.definition(),
        is_offered: withheld.is_none(),
    };
    known.iter().map(definition)
}

/// The tool as offered, or the reason to withhold it.
fn as_offered(tool: Tool, check: Option<&DefinitionCheck>) -> (Tool, Option<Reason>) {
    if let Some(reason) = check.and_then(|check| check.refusal.as_ref()?(&tool)) {
        return (tool, Some(Reason::Definition(MissingReason::Refused, reason)));
    }
    match tool.sanitized() {
        Ok(clean) => (clean, None),
        Err(reason) => (tool, Some(Reason::Definition(MissingReason::Refused, reason.into()))),
    }
}

/// The tool without known secrets, and the reason to withhold it if its definition depends on one.
fn without_secrets(
    tool: Tool,
    name: Option<&str>,
    check: Option<&DefinitionCheck>,
) -> (Tool, Option<Reason>) {
    let Some(redact) = check.and_then(|check| check.redact.as_deref()) else { return (tool, None) };
    match tool.redaction(redact, name) {
        Redaction::Clean => (tool, None),
        Redaction::Redacted(tool) => (tool, None),
        Redaction::Withheld(tool, reason) => {
            (tool, Some(Reason::Definition(MissingReason::Refused, reason)))
        }
    }
}

fn too_large(tool: &Tool) -> Option<Reason> {
    let bytes = tool.rendering().len();
    (bytes > LARGEST).then(|| {
        let text = format!("its definition has {bytes} bytes; the limit is {LARGEST}");
        Reason::Definition(MissingReason::Invalid, text.into())
    })
}
