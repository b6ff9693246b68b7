//! Conditions of reliability rules.

use std::{
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use super::{CheckError, ReliabilityState, Stage};
use crate::{internal::panic_text::panic_text, policy::Glob};

/// A condition on a failure. Unset fields match everything; all set fields must match, and of a
/// list at least one item.
#[derive(Debug, Clone, Default)]
pub struct FailureConditions {
    /// The stage that failed.
    pub stage: Option<Stage>,
    /// Patterns, one of which matches the failed name, or the leaf of a source.
    pub providers: Vec<Glob>,
    /// The error class.
    pub error_classes: Vec<Arc<str>>,
    /// The error name.
    pub error_names: Vec<Arc<str>>,
    /// The source's error code, or a tool's code.
    pub codes: Vec<Arc<str>>,
    /// A substring of the message; case-sensitive.
    pub message_contains: Option<Arc<str>>,
    /// The HTTP status.
    pub http_statuses: Vec<StatusRange>,
    /// Whether it is a complete but unusable response.
    pub validation_error: Option<bool>,
    /// Fewer attempts than this.
    pub attempt_below: Option<u32>,
    /// Less time since the first attempt began.
    pub elapsed_below: Option<Duration>,
    /// The run has used fewer tokens than this.
    pub tokens_below: Option<u64>,
    /// The run has cost less than this, in US dollars. If the cost is unknown the condition fails,
    /// and does not match.
    pub cost_usd_below: Option<f64>,
    check: Option<Check>,
}

const COST_NOT_KNOWN: &str = "the cost for `cost_usd_below` is unknown: a \
    model has no price and does not report the cost of its responses; use `tokens_below`";

type CheckFn = dyn Fn(&ReliabilityState<'_>) -> Result<bool, CheckError> + Send + Sync;

#[derive(Clone)]
struct Check(Arc<CheckFn>);

crate::internal::debug_fields!(Check);

impl FailureConditions {
    /// Adds a condition in code; see [`ReliabilityRule::when`](super::ReliabilityRule::when).
    #[must_use]
    pub fn and<F, H>(mut self, check: F) -> Self
    where
        F: Fn(&ReliabilityState<'_>) -> H + Send + Sync + 'static,
        H: IntoCondition,
    {
        let before = self.check.take();
        self.check = Some(Check(Arc::new(move |state| {
            if let Some(Check(before)) = &before
                && !before(state)?
            {
                return Ok(false);
            }
            check(state).into_result()
        })));
        self
    }

    /// Whether the condition matches a failure.
    ///
    /// # Errors
    /// The error or panic of its code, or an unknown cost if
    /// [`cost_usd_below`](Self::cost_usd_below) is set and all else matches.
    pub fn matches(
        &self,
        state: &ReliabilityState<'_>,
    ) -> Result<bool, Box<dyn Error + Send + Sync>> {
        if !self.data_matches(state) {
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

    fn data_matches(&self, state: &ReliabilityState<'_>) -> bool {
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

/// Return types of a condition in code: a `bool`, or a `Result` of it.
pub trait IntoCondition {
    /// Whether the condition matches.
    ///
    /// # Errors
    /// The condition's own failure.
    fn into_result(self) -> Result<bool, Box<dyn Error + Send + Sync>>;
}

impl IntoCondition for bool {
    fn into_result(self) -> Result<bool, Box<dyn Error + Send + Sync>> {
        Ok(self)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> IntoCondition for Result<bool, E> {
    fn into_result(self) -> Result<bool, Box<dyn Error + Send + Sync>> {
        self.map_err(Into::into)
    }
}

/// An inclusive range of HTTP statuses: `429`, `5xx`, `500-503`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    from: u16,
    to: u16,
}

impl StatusRange {
    /// Whether a status is in the range.
    pub fn contains(self, status: u16) -> bool {
        (self.from..=self.to).contains(&status)
    }
}

/// A text that is not a range of HTTP statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("HTTP statuses are written as `429`, `5xx` or `500-503`, from 100 to 599")]
pub struct InvalidStatusRangeError;

impl FromStr for StatusRange {
    type Err = InvalidStatusRangeError;

    fn from_str(text: &str) -> Result<Self, InvalidStatusRangeError> {
        let number = |text: &str| text.parse::<u16>().map_err(|_| InvalidStatusRangeError);
        let (from, to) = match (text.strip_suffix("xx"), text.split_once('-')) {
            (Some(hundred), _) => {
                let from = number(hundred)?.saturating_mul(100);
                (from, from.saturating_add(99))
            }
            (None, Some((from, to))) => (number(from)?, number(to)?),
            (None, None) => (number(text)?, number(text)?),
        };
        if from < 100 || from > to || to > 599 {
            return Err(InvalidStatusRangeError);
        }
        Ok(Self { from, to })
    }
}

impl From<u16> for StatusRange {
    fn from(status: u16) -> Self {
        Self { from: status, to: status }
    }
}
