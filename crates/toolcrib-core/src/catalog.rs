//! What providers fill: the tools they offer and those they hold back.

use std::{borrow::Cow, cell::Cell, convert::Infallible, sync::Arc};

use crate::{answered::Answered, name::SkillId, tool::Tool};

/// Why a provider holds a tool back. Kept as data; rendered to words only when somebody asks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The words of whoever wrote the gate.
    Text(Cow<'static, str>),
    /// The same, shared.
    Shared(Arc<str>),
    /// What somebody else wrote of the tool may not reach a model.
    Definition(Arc<str>),
    /// The tool is only there while this skill is the one activated last.
    NeedsSkill(SkillId),
}

impl Reason {
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(Cow::Borrowed(a)), Self::Text(Cow::Borrowed(b)))
                if std::ptr::eq(*a, *b) =>
            {
                true
            }
            (Self::Shared(a), Self::Shared(b)) | (Self::Definition(a), Self::Definition(b))
                if Arc::ptr_eq(a, b) =>
            {
                true
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
            Self::Shared(text) | Self::Definition(text) => f.write_str(text),
            Self::NeedsSkill(skill) => write!(f, "needs skill `{skill}` as the active one"),
        }
    }
}

/// A tool that a provider knows and holds back.
#[derive(Debug, Clone)]
pub struct HeldBack {
    /// The tool.
    pub tool: Tool,
    /// The gate that held it back.
    pub gate: Arc<str>,
    /// Its reason.
    pub reason: Reason,
}

impl HeldBack {
    /// Whether both hold the same tool back, for the same reason. Texts are compared only where they
    /// are not the very same: a gate gives one text for many tools, listing after listing.
    fn same(&self, other: &Self) -> bool {
        self.tool.same(&other.tool)
            && (Arc::ptr_eq(&self.gate, &other.gate) || self.gate == other.gate)
            && self.reason.same(&other.reason)
    }
}

/// The list that providers fill, in order: a buffer that goes in and comes out, so that listing
/// an unchanged set allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    offered: Vec<Tool>,
    held_back: Vec<HeldBack>,
    answered: Answered,
}

impl Catalog {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Offers a tool, after those that are there.
    pub fn offer(&mut self, tool: Tool) {
        self.offered.push(tool);
    }

    /// Offers tools, in order.
    pub fn offer_all<'a>(&mut self, tools: impl IntoIterator<Item = &'a Tool>) {
        self.offered.extend(tools.into_iter().cloned());
    }

    /// Records a tool that is known and held back.
    pub fn hold_back(&mut self, tool: Tool, gate: Arc<str>, reason: impl Into<Reason>) {
        self.held_back.push(HeldBack { tool, gate, reason: reason.into() });
    }

    /// What is offered.
    pub fn offered(&self) -> &[Tool] {
        &self.offered
    }

    /// What is held back.
    pub fn held_back(&self) -> &[HeldBack] {
        &self.held_back
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.offered.clear();
        self.held_back.clear();
        self.answered = Answered::default();
    }

    /// Notes how what was added to it came about. Of several notes the one that tells most counts:
    /// an older answer before one that was fetched, and that before a fresh one of a cache.
    pub fn note_answered(&mut self, answered: Answered) {
        self.answered.merge(answered);
    }

    /// Takes the note out. For engines, which ask for it after each source, so that the next one
    /// begins without.
    pub fn take_answered(&mut self) -> Answered {
        std::mem::take(&mut self.answered)
    }

    /// Puts what another list holds behind this one, and leaves that as it is; its note is not taken
    /// over.
    pub fn extend_from(&mut self, other: &Self) {
        self.offered.extend_from_slice(&other.offered);
        self.held_back.extend_from_slice(&other.held_back);
    }

    /// Puts another list behind this one.
    pub fn append(&mut self, mut other: Self) {
        self.offered.append(&mut other.offered);
        self.held_back.append(&mut other.held_back);
        self.answered.merge(other.answered);
    }

    /// Holds every tool back for which there is a reason.
    pub fn hold_back_where(
        &mut self,
        gate: &Arc<str>,
        mut reason: impl FnMut(&Tool) -> Option<Reason>,
    ) {
        let Ok(()) = self.gate_from::<Infallible>(0, gate, |tool| Ok(reason(tool)));
    }

    /// Puts every tool offered from position `start` on through a decision: `None` offers it, or what
    /// the decision put in its place; a reason holds it back. On an error the tools not yet decided are gone: nothing passes a
    /// gate that failed.
    pub(crate) fn gate_from<E>(
        &mut self,
        start: usize,
        gate: &Arc<str>,
        mut decide: impl FnMut(&mut Tool) -> Result<Option<Reason>, E>,
    ) -> Result<(), E> {
        // What the decision said of the tool that is about to come out.
        let (verdict, mut failed) = (Cell::new(None), false);
        let start = start.min(self.offered.len());
        let taken_out = self.offered.extract_if(start.., |tool| {
            if !failed {
                match decide(tool) {
                    Ok(None) => return false,
                    Ok(Some(reason)) => verdict.set(Some(Ok(reason))),
                    Err(error) => {
                        failed = true;
                        verdict.set(Some(Err(error)));
                    }
                }
            }
            true
        });
        let mut outcome = Ok(());
        for tool in taken_out {
            match verdict.take() {
                Some(Ok(reason)) => {
                    self.held_back.push(HeldBack { tool, gate: Arc::clone(gate), reason });
                }
                Some(Err(error)) => outcome = Err(error),
                // Behind the one that the gate failed on.
                None => {}
            }
        }
        outcome
    }

    /// Puts another tool in place of each from the given positions on.
    pub(crate) fn map_from(
        &mut self,
        offered: usize,
        held_back: usize,
        mut map: impl FnMut(&Tool) -> Tool,
    ) {
        let held_back = self.held_back.iter_mut().skip(held_back).map(|held| &mut held.tool);
        for tool in self.offered.iter_mut().skip(offered).chain(held_back) {
            *tool = map(tool);
        }
    }

    /// Whether both lists hold the same tools (not merely alike) in the same order, held back
    /// for the same reasons.
    pub fn same(&self, other: &Self) -> bool {
        self.offered.len() == other.offered.len()
            && self.held_back.len() == other.held_back.len()
            && self.offered.iter().zip(&other.offered).all(|(a, b)| a.same(b))
            && self.held_back.iter().zip(&other.held_back).all(|(a, b)| a.same(b))
    }
}

impl FromIterator<Tool> for Catalog {
    /// A list that offers these tools, in order.
    fn from_iter<T: IntoIterator<Item = Tool>>(tools: T) -> Self {
        Self { offered: tools.into_iter().collect(), ..Self::default() }
    }
}
