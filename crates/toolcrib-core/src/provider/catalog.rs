//! The tools that a provider lists: offered and withheld.

mod builder;

use std::{borrow::Cow, sync::Arc};

use parking_lot::Mutex;

pub use self::builder::CatalogBuilder;
pub(crate) use self::builder::LastCatalog;
use super::listing_info::ListingInfo;
use crate::{
    names::name::SkillId,
    secrets::secret::Redact,
    tool::{Redaction, Tool, missing_reason::MissingReason},
};

/// The gate that withholds definitions with known secrets.
const SECRETS_GATE: &str = "secrets";

/// The reason to withhold a tool. Kept as data; formatted only on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A text of the gate's author.
    Text(Cow<'static, str>),
    /// A shared text.
    Shared(Arc<str>),
    /// The tool's definition prevents that it is offered: the fixed text for a client, and the whole
    /// reason for the operator, which may quote the definition.
    Definition(MissingReason, Arc<str>),
    /// The tool requires this skill to be the most recently activated one.
    NeedsSkill(SkillId),
}

impl Reason {
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(Cow::Borrowed(a)), Self::Text(Cow::Borrowed(b)))
                if std::ptr::eq(*a, *b) =>
            {
                true
            }
            (Self::Shared(a), Self::Shared(b)) if Arc::ptr_eq(a, b) => true,
            (Self::Definition(of, a), Self::Definition(other, b)) if Arc::ptr_eq(a, b) => {
                of == other
            }
            _ => self == other,
        }
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<Arc<str>> for Reason {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Shared(text) | Self::Definition(_, text) => f.write_str(text),
            Self::NeedsSkill(skill) => write!(f, "needs skill `{skill}` as the active one"),
        }
    }
}

/// A tool withheld by a provider.
#[derive(Debug, Clone)]
pub struct WithheldByProvider {
    /// The tool.
    pub tool: Tool,
    /// The gate that withheld it.
    pub gate: Arc<str>,
    /// The reason.
    pub reason: Reason,
}

impl WithheldByProvider {
    fn same(&self, other: &Self) -> bool {
        self.is_of(&other.tool, &other.gate, &other.reason)
    }

    /// Whether this tool is withheld for this reason. Texts are compared only if they are not the
    /// same instance: a gate gives one text for many tools, listing after listing.
    fn is_of(&self, tool: &Tool, gate: &Arc<str>, reason: &Reason) -> bool {
        self.tool.same(tool)
            && (Arc::ptr_eq(&self.gate, gate) || self.gate == *gate)
            && self.reason.same(reason)
    }
}

/// The tools that a provider lists, in order: offered and withheld. Cloning shares the list; a change
/// copies it first if a clone shares it. So a provider of an unchanged list keeps it and returns
/// clones: listing then allocates nothing, and engines recognize the list without comparing tools.
///
/// ```
/// use toolcrib_core::{Catalog, Tool};
///
/// # let tool = Tool::builder("t").description("d")
/// #     .handler(|_: serde_json::Value, _: toolcrib_core::ToolContext| async { "" }).unwrap();
/// let catalog = Catalog::from(vec![tool]);
/// assert!(catalog.clone().same(&catalog));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// `None` if empty.
    tools: Option<Arc<Tools>>,
    listing_info: ListingInfo,
}

#[derive(Debug, Clone, Default)]
struct Tools {
    offered: Vec<Tool>,
    withheld_by_provider: Vec<WithheldByProvider>,
    last_redaction: LastRedaction,
}

/// The last redaction of a list: the version of the secrets, and the list without them; `None` if it
/// contains none.
#[derive(Debug, Default)]
struct LastRedaction(Mutex<Option<(u64, Option<Arc<Tools>>)>>);

impl Clone for LastRedaction {
    /// A copy is made to change it.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Catalog {
    /// Creates a catalog without tools.
    pub fn new() -> Self {
        Self::default()
    }

    fn tools_mut(&mut self) -> &mut Tools {
        let tools = Arc::make_mut(self.tools.get_or_insert_default());
        tools.last_redaction = LastRedaction::default();
        tools
    }

    /// The same list without known secrets: they are redacted in free texts, and a tool is withheld
    /// if calls depend on the part of its definition that contains one, such as its name or a value
    /// of `enum`. `version` identifies the secrets that `redact` knows, among all of this process;
    /// 0 if it knows none. The same list is redacted once for each version.
    #[must_use]
    pub fn redacted(self, redact: &dyn Redact, version: u64) -> Self {
        let Some(tools) = self.tools.as_ref().filter(|_| version != 0) else { return self };
        let last = tools.last_redaction.0.lock().clone();
        match last {
            Some((at, None)) if at == version => return self,
            Some((at, redacted)) if at == version => return Self { tools: redacted, ..self },
            _ => {}
        }
        let (mut is_same, mut clean) = (true, Tools::default());
        for tool in &tools.offered {
            let tool = match tool.redacted_at(redact, version) {
                Redaction::Clean => tool.clone(),
                Redaction::Redacted(tool) => {
                    is_same = false;
                    tool
                }
                Redaction::Withheld(tool, reason) => {
                    is_same = false;
                    let (gate, reason) =
                        (SECRETS_GATE.into(), Reason::Definition(MissingReason::Refused, reason));
                    clean.withheld_by_provider.push(WithheldByProvider { tool, gate, reason });
                    continue;
                }
            };
            clean.offered.push(tool);
        }
        for held in &tools.withheld_by_provider {
            let mut held = held.clone();
            if let Redaction::Redacted(tool) | Redaction::Withheld(tool, _) =
                held.tool.redacted_at(redact, version)
            {
                is_same = false;
                held.tool = tool;
            }
            clean.withheld_by_provider.push(held);
        }
        clean.last_redaction = LastRedaction(Mutex::new(Some((version, None))));
        let redacted = (!is_same).then(|| Arc::new(clean));
        let replaced = tools.last_redaction.0.lock().replace((version, redacted.clone()));
        // Outside the lock: tools may do anything when they are dropped.
        drop(replaced);
        match redacted {
            Some(redacted) => Self { tools: Some(redacted), ..self },
            None => self,
        }
    }

    /// Appends an offered tool.
    pub fn offer(&mut self, tool: Tool) {
        self.tools_mut().offered.push(tool);
    }

    /// Appends a withheld tool.
    pub fn withhold(&mut self, tool: Tool, gate: Arc<str>, reason: impl Into<Reason>) {
        let withheld = WithheldByProvider { tool, gate, reason: reason.into() };
        self.tools_mut().withheld_by_provider.push(withheld);
    }

    /// The tools that the provider offers.
    pub fn offered(&self) -> &[Tool] {
        self.tools.as_ref().map_or(&[], |tools| &tools.offered)
    }

    /// The tools that the provider withholds, with its reasons.
    pub fn withheld_by_provider(&self) -> &[WithheldByProvider] {
        self.tools.as_ref().map_or(&[], |tools| &tools.withheld_by_provider)
    }

    /// Whether no tool is listed, neither offered nor withheld.
    pub fn is_empty(&self) -> bool {
        self.offered().is_empty() && self.withheld_by_provider().is_empty()
    }

    /// The same list with this record of how it was listed.
    #[must_use]
    pub fn with_listing_info(self, listing_info: ListingInfo) -> Self {
        Self { listing_info, ..self }
    }

    /// The record of how it was listed: cache status, age and error.
    pub fn listing_info(&self) -> &ListingInfo {
        &self.listing_info
    }

    /// Whether both lists contain the same tool instances in the same order, withheld for the same
    /// reasons.
    pub fn same(&self, other: &Self) -> bool {
        self.shares(other)
            || self.offered().len() == other.offered().len()
                && self.withheld_by_provider().len() == other.withheld_by_provider().len()
                && self.offered().iter().zip(other.offered()).all(|(a, b)| a.same(b))
                && self
                    .withheld_by_provider()
                    .iter()
                    .zip(other.withheld_by_provider())
                    .all(|(a, b)| a.same(b))
    }

    /// Whether both are the same instance of a list.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        match (&self.tools, &other.tools) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
}

impl From<Vec<Tool>> for Catalog {
    /// A list that offers these tools, in order.
    fn from(offered: Vec<Tool>) -> Self {
        let tools = Tools { offered, ..Tools::default() };
        Self { tools: Some(Arc::new(tools)), ..Self::default() }
    }
}

impl<const N: usize> From<[Tool; N]> for Catalog {
    /// A list that offers these tools, in order.
    fn from(offered: [Tool; N]) -> Self {
        Vec::from(offered).into()
    }
}

impl FromIterator<Tool> for Catalog {
    /// A list that offers these tools, in order.
    fn from_iter<T: IntoIterator<Item = Tool>>(tools: T) -> Self {
        tools.into_iter().collect::<Vec<_>>().into()
    }
}
