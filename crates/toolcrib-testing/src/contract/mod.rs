//! Contract checks for implementations.

mod asking;
mod body;
mod cap;
mod generate;
mod provider;
mod reducer;
mod schema;
mod shape;
mod tool;

use std::{collections::BTreeSet, error::Error, fmt};

pub use self::{
    provider::{ProviderCheck, check_provider},
    reducer::assert_reducer,
    tool::{ToolCheck, check_tool},
};

/// The maximum number of reported violations per clause.
const MOST_OF_A_CLAUSE: usize = 3;

/// The clauses of the contracts. [`check_provider()`] and [`check_tool()`] report for each whether
/// they could test it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Clause {
    /// Provider: id and path are not blank and never change.
    IdStable,
    /// Provider: it responds in time.
    Answers,
    /// Provider: it does not offer two tools of one name, unless the later one declares
    /// `on_collision`.
    NamesUnique,
    /// Provider: the same context gives the same list, in order, tool by tool: name, description,
    /// schema, and the rest of the declaration.
    SameList,
    /// Provider: concurrent listings, in the same and in different contexts, have the same results
    /// as listings alone.
    Reentrant,
    /// Provider: when cancelled, it fails as cancelled or responds, and does not report a failure
    /// of its source.
    SaysCancelled,
    /// Provider: a listing that was dropped, cancelled or finished leaves no task running, and the
    /// next one works.
    LeavesNothing,
    /// Provider or tool body: a wait ends soon after the token fires.
    StopsWhenCancelled,
    /// Provider or tool body: it does not panic.
    NeverPanics,
    /// Tool: its schema is valid and can be enforced.
    SchemaEnforceable,
    /// Tool: its schema accepts the arguments that it should.
    SchemaAccepts,
    /// Tool: its schema rejects the arguments that it should.
    SchemaRejects,
    /// Tool: made a second time, it is the same for a model, byte for byte.
    SameDefinition,
    /// Tool body: it ends within the tool's own `timeout`, else within the engine's.
    EndsInTime,
    /// Tool body: a result has a text or blocks, so that a model can react to it.
    HasText,
    /// Tool body: a result is within the tool's `max_result_chars`, or can be truncated to it with
    /// readable text left (more than the marker) and complete data.
    FitsItsCap,
    /// Tool body: if it is `read_only`, repeating a call gives the same result.
    Repeatable,
    /// Tool body: the texts of its errors do not repeat values of arguments; a model does not need
    /// them, and they may contain a secret or an injected instruction. Checked are texts of 8
    /// characters or more that do not appear in the schema.
    ErrorsWithoutValues,
    /// Tool body: it neither panics nor hangs on arguments that its schema accepts.
    TakesWhatItsSchemaTakes,
}

/// The requirement; a [`Violation`] adds the actual behavior.
impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IdStable => "id and path must not be blank or change",
            Self::Answers => "it must answer",
            Self::NamesUnique => "names must be unique",
            Self::SameList => "the same context must give the same list",
            Self::Reentrant => "concurrent listings must not affect each other",
            Self::SaysCancelled => "when cancelled, it must report the cancellation",
            Self::LeavesNothing => "a listing must not leave tasks running",
            Self::StopsWhenCancelled => "it must stop when cancelled",
            Self::NeverPanics => "it must not panic",
            Self::SchemaEnforceable => "the schema must be enforceable",
            Self::SchemaAccepts => "the schema must accept each sample",
            Self::SchemaRejects => "the schema must reject the arguments of `rejects`",
            Self::SameDefinition => "made again, it must be the same tool for a model",
            Self::EndsInTime => "it must end within its timeout",
            Self::HasText => "a result must have a text",
            Self::FitsItsCap => "a result must be within its cap, or readable after truncation",
            Self::Repeatable => "it is read-only, so the same call must give the same result",
            Self::ErrorsWithoutValues => "errors must not repeat values of arguments",
            Self::TakesWhatItsSchemaTakes => "it must accept whatever its schema accepts",
        })
    }
}

/// A violated clause with details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violated clause.
    pub clause: Clause,
    /// The actual behavior.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.clause, self.found)
    }
}

/// All violations of a contract; at most three per clause. `Debug` is readable too, so that
/// `unwrap` shows the violations.
#[derive(Clone, PartialEq, Eq)]
pub struct Violations {
    subject: String,
    list: Vec<Violation>,
}

impl Violations {
    /// The violations, in the order in which they were found. At least one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Violation> {
        self.list.iter()
    }

    /// The violated clauses, each once.
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

/// The clauses tested by a successful check. A clause that could not be tested is missing: a
/// provider with an immediate listing cannot be cancelled while it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    tried: BTreeSet<Clause>,
}

impl CheckReport {
    /// Whether a clause was tested.
    pub fn tried(&self, clause: Clause) -> bool {
        self.tried.contains(&clause)
    }

    /// The clauses that the check tested.
    pub fn clauses(&self) -> &BTreeSet<Clause> {
        &self.tried
    }
}

/// The findings of a check.
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

    /// Records that a clause was tested and is satisfied.
    fn holds(&mut self, clause: Clause) {
        if !self.without.contains(&clause) {
            self.tried.insert(clause);
        }
    }

    /// Records a violation of a clause.
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

    /// Records the outcome of a test of a clause.
    fn hold(&mut self, clause: Clause, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.holds(clause),
            Err(found) => self.broken(clause, found),
        }
    }

    fn end(self) -> Result<CheckReport, Violations> {
        if self.list.is_empty() {
            Ok(CheckReport { tried: self.tried })
        } else {
            Err(Violations { subject: self.subject, list: self.list })
        }
    }
}
