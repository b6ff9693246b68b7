//! When a rule holds.

use std::{
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use super::{CheckError, ReliabilityState, Stage};
use crate::{panic_text::panic_text, policy::Glob};

/// A condition on a failure. What is left out holds for everything; all that is given must hold, and
/// of a list one.
#[derive(Debug, Clone, Default)]
pub struct WhenFailed {
    /// Where it failed.
    pub stage: Option<Stage>,
    /// Patterns of which one matches who failed, or the leaf of a source.
    pub providers: Vec<Glob>,
    /// The class of the error.
    pub error_classes: Vec<Arc<str>>,
    /// The name of the error.
    pub error_names: Vec<Arc<str>>,
    /// What a source calls the error, or a tool's code.
    pub codes: Vec<Arc<str>>,
    /// A part of the message, letter case included.
    pub message_contains: Option<Arc<str>>,
    /// The status of the HTTP answer.
    pub http_statuses: Vec<StatusRange>,
    /// Whether it is an answer that came whole and is of no use.
    pub validation_error: Option<bool>,
    /// There were fewer attempts than this.
    pub attempt_below: Option<u32>,
    /// Less time has passed since the first attempt began.
    pub elapsed_below: Option<Duration>,
    /// The run has used fewer tokens.
    pub tokens_below: Option<u64>,
    /// The run has cost less, in US dollars. Where the cost is not known the rule fails, and does not
    /// hold.
    pub cost_usd_below: Option<f64>,
    check: Option<Check>,
}

const COST_NOT_KNOWN: &str = "it cannot be known whether the run cost less than `cost_usd_below`: a \
    model does not say what its answers cost; use `tokens_below`";

type Checking = dyn Fn(&ReliabilityState<'_>) -> Result<bool, CheckError> + Send + Sync;

#[derive(Clone)]
struct Check(Arc<Checking>);

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Check(..)")
    }
}

impl WhenFailed {
    /// Adds a condition in code; see [`ReliabilityRule::when`](super::ReliabilityRule::when).
    #[must_use]
    pub fn and<F, H>(mut self, check: F) -> Self
    where
        F: Fn(&ReliabilityState<'_>) -> H + Send + Sync + 'static,
        H: IntoHolds,
    {
        let before = self.check.take();
        self.check = Some(Check(Arc::new(move |state| {
            if let Some(Check(before)) = &before
                && !before(state)?
            {
                return Ok(false);
            }
            check(state).into_holds()
        })));
        self
    }

    /// Whether it holds.
    ///
    /// # Errors
    /// What its code failed with, or panicked with; or that the cost is not known that
    /// [`cost_usd_below`](Self::cost_usd_below) looks at, where all else holds.
    pub fn holds(
        &self,
        state: &ReliabilityState<'_>,
    ) -> Result<bool, Box<dyn Error + Send + Sync>> {
        if !self.data_holds(state) {
            return Ok(false);
        }
        if let Some(bound) = self.cost_usd_below {
            match state.cost_usd {
                Some(cost) if cost < bound => {}
                Some(_) => return Ok(false),
                None => return Err(COST_NOT_KNOWN.into()),
            }
        }
        let Some(Check(check)) = &self.check else {
            return Ok(true);
        };
        catch_unwind(AssertUnwindSafe(|| check(state)))
            .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic)).into()))
    }

    fn data_holds(&self, state: &ReliabilityState<'_>) -> bool {
        let is_one = |words: &[Arc<str>], is: Option<&str>| {
            words.is_empty() || is.is_some_and(|is| words.iter().any(|word| **word == *is))
        };
        let is_who = |glob: &Glob| glob.matches(state.provider) || glob.matches(state.leaf);
        let has_status =
            |range: &StatusRange| state.http_status.is_some_and(|status| range.contains(status));
        self.stage.is_none_or(|stage| stage == state.stage)
            && (self.providers.is_empty() || self.providers.iter().any(is_who))
            && is_one(&self.error_classes, Some(state.error_class))
            && is_one(&self.error_names, Some(state.error_name()))
            && is_one(&self.codes, state.code)
            && self.message_contains.as_ref().is_none_or(|part| state.message.contains(&**part))
            && (self.http_statuses.is_empty() || self.http_statuses.iter().any(has_status))
            && self.validation_error.is_none_or(|is| is == state.validation_error.is_some())
            && self.attempt_below.is_none_or(|bound| state.attempt < bound)
            && self.elapsed_below.is_none_or(|bound| state.elapsed < bound)
            && self.tokens_below.is_none_or(|bound| state.tokens < bound)
    }
}

/// What a condition in code may give: whether it holds, or a `Result` of that.
pub trait IntoHolds {
    /// Whether it holds.
    ///
    /// # Errors
    /// The condition's own failure.
    fn into_holds(self) -> Result<bool, Box<dyn Error + Send + Sync>>;
}

impl IntoHolds for bool {
    fn into_holds(self) -> Result<bool, Box<dyn Error + Send + Sync>> {
        Ok(self)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> IntoHolds for Result<bool, E> {
    fn into_holds(self) -> Result<bool, Box<dyn Error + Send + Sync>> {
        self.map_err(Into::into)
    }
}

/// HTTP statuses from one to another, both included: `429`, `5xx`, `500-503`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    from: u16,
    to: u16,
}

impl StatusRange {
    /// Whether a status is among them.
    pub fn contains(self, status: u16) -> bool {
        (self.from..=self.to).contains(&status)
    }
}

/// A text that names no HTTP statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("HTTP statuses are written as `429`, `5xx` or `500-503`, from 100 to 599")]
pub struct InvalidStatusRange;

impl FromStr for StatusRange {
    type Err = InvalidStatusRange;

    fn from_str(text: &str) -> Result<Self, InvalidStatusRange> {
        let number = |text: &str| text.parse::<u16>().map_err(|_| InvalidStatusRange);
        let (from, to) = match (text.strip_suffix("xx"), text.split_once('-')) {
            (Some(hundred), _) => {
                let from = number(hundred)?.saturating_mul(100);
                (from, from.saturating_add(99))
            }
            (None, Some((from, to))) => (number(from)?, number(to)?),
            (None, None) => (number(text)?, number(text)?),
        };
        if from < 100 || from > to || to > 599 {
            return Err(InvalidStatusRange);
        }
        Ok(Self { from, to })
    }
}

impl From<u16> for StatusRange {
    fn from(status: u16) -> Self {
        Self { from: status, to: status }
    }
}
