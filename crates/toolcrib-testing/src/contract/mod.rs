//! Checks that hold an implementation to its contract.

mod asking;
mod body;
mod cap;
mod generate;
mod provider;
mod schema;
mod shape;
mod tool;

use std::{collections::BTreeSet, error::Error, fmt};

pub use self::{
    provider::{ProviderCheck, check_provider},
    tool::{ToolCheck, check_tool},
};

/// How many violations of one clause are reported; further ones say nothing new.
const MOST_OF_A_CLAUSE: usize = 3;

/// What a contract demands, clause by clause. [`check_provider()`] and [`check_tool()`] say of each
/// whether they could try it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Clause {
    /// Of a provider: its id and its path are there and always the same.
    IdStable,
    /// Of a provider: it answers, and in time.
    Answers,
    /// Of a provider: it does not offer two tools of one name, unless the later one declares
    /// `on_collision`.
    NamesUnique,
    /// Of a provider: the same context gives the same list, in order, tool by tool: name,
    /// description, schema, and what else is declared. What the list held before plays no part.
    SameList,
    /// Of a provider: what the list held before comes back in front, as it was.
    KeepsTheList,
    /// Of a provider: listings at the same time, in the same and in different contexts, each come
    /// to what they come to alone.
    Reentrant,
    /// Of a provider: when cancelled, it fails as cancelled or answers, and does not blame its
    /// source.
    SaysCancelled,
    /// Of a provider: a listing that was dropped, cancelled or answered leaves no task behind, and
    /// the next one works.
    LeavesNothing,
    /// Of a provider, or of a tool's body: what waits when the token fires ends soon after.
    StopsWhenCancelled,
    /// Of a provider, or of a tool's body: it does not panic.
    NeverPanics,
    /// Of a tool: its schema is one, and can be enforced.
    SchemaEnforceable,
    /// Of a tool: its schema accepts the arguments that it should.
    SchemaAccepts,
    /// Of a tool: its schema rejects the arguments that it should.
    SchemaRejects,
    /// Of a tool: made a second time, it is the same to a model, byte for byte.
    SameDefinition,
    /// Of a tool's body: it ends within the tool's own `timeout`, else within the engine's.
    EndsInTime,
    /// Of a tool's body: a result has a text, or blocks that stand for one, so that a model can
    /// react to it.
    HasText,
    /// Of a tool's body: a result keeps within the tool's own `max_result_chars`, or can be cut to
    /// it with something left: a text of more than the marker, and the data whole.
    FitsItsCap,
    /// Of a tool's body: it is `read_only`, so the same call twice gives the same result.
    Repeatable,
    /// Of a tool's body: the texts of its errors do not repeat values of arguments; a model has
    /// no need of them, and they may be somebody's secret or instruction. Looked for are texts of 8
    /// characters or more that the schema itself does not hold.
    ErrorsWithoutValues,
    /// Of a tool's body: it does not panic on, and does not hang over, whatever its schema accepts.
    TakesWhatItsSchemaTakes,
}

/// What is demanded; a [`Violation`] says behind it what is instead.
impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IdStable => "id and path must be there and stay the same",
            Self::Answers => "it must answer",
            Self::NamesUnique => "names must be unique",
            Self::SameList => "the same context must give the same list",
            Self::KeepsTheList => "what the list held before must come back in front",
            Self::Reentrant => "listings at the same time must not disturb each other",
            Self::SaysCancelled => "when cancelled, it must say so",
            Self::LeavesNothing => "a listing must leave nothing behind",
            Self::StopsWhenCancelled => "it must stop when cancelled",
            Self::NeverPanics => "it must not panic",
            Self::SchemaEnforceable => "it must be possible to enforce the schema",
            Self::SchemaAccepts => "the schema must accept each sample",
            Self::SchemaRejects => "the schema must reject what `rejects` lists",
            Self::SameDefinition => "made again, it must be the same tool to a model",
            Self::EndsInTime => "it must end within its timeout",
            Self::HasText => "a result must have a text",
            Self::FitsItsCap => "a result must keep within its cap, or be such that it can be cut",
            Self::Repeatable => "it is read-only, so the same call must give the same result",
            Self::ErrorsWithoutValues => "errors must not repeat values of arguments",
            Self::TakesWhatItsSchemaTakes => "it must take whatever its schema takes",
        })
    }
}

/// A clause that was broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What was demanded.
    pub clause: Clause,
    /// What was found instead.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.clause, self.found)
    }
}

/// All that an implementation breaks of its contract; at most three of each clause. `Debug` is
/// readable too, so that `unwrap` shows what is wrong.
#[derive(Clone, PartialEq, Eq)]
pub struct Violations {
    subject: String,
    list: Vec<Violation>,
}

impl Violations {
    /// Each, in the order in which they were found. There is at least one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Violation> {
        self.list.iter()
    }

    /// The clauses that are broken, each once.
    pub fn clauses(&self) -> BTreeSet<Clause> {
        self.list.iter().map(|violation| violation.clause).collect()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} breaks its contract:", self.subject)?;
        self.list.iter().try_for_each(|violation| write!(f, "\n- {violation}"))
    }
}

impl fmt::Debug for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Violations {}

/// What a check that found nothing wrong has tried. A clause that it could not try is not in it:
/// a provider that answers at once cannot be cancelled while it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    tried: BTreeSet<Clause>,
}

impl Checked {
    /// Whether a clause was tried.
    pub fn tried(&self, clause: Clause) -> bool {
        self.tried.contains(&clause)
    }

    /// The clauses that were tried.
    pub fn clauses(&self) -> &BTreeSet<Clause> {
        &self.tried
    }
}

/// What a check finds on its way.
#[derive(Debug)]
struct Findings {
    subject: String,
    without: BTreeSet<Clause>,
    tried: BTreeSet<Clause>,
    list: Vec<Violation>,
}

impl Findings {
    fn new(subject: String, without: BTreeSet<Clause>) -> Self {
        Self { subject, without, tried: BTreeSet::new(), list: Vec::new() }
    }

    /// A clause was tried and holds.
    fn holds(&mut self, clause: Clause) {
        if !self.without.contains(&clause) {
            self.tried.insert(clause);
        }
    }

    /// A clause was tried and is broken.
    fn broken(&mut self, clause: Clause, found: impl Into<String>) {
        self.holds(clause);
        let violation = Violation { clause, found: found.into() };
        let so_far = self.list.iter().filter(|violation| violation.clause == clause).count();
        if self.tried.contains(&clause)
            && so_far < MOST_OF_A_CLAUSE
            && !self.list.contains(&violation)
        {
            self.list.push(violation);
        }
    }

    /// A clause was tried.
    fn hold(&mut self, clause: Clause, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.holds(clause),
            Err(found) => self.broken(clause, found),
        }
    }

    fn end(self) -> Result<Checked, Violations> {
        if self.list.is_empty() {
            Ok(Checked { tried: self.tried })
        } else {
            Err(Violations { subject: self.subject, list: self.list })
        }
    }
}
