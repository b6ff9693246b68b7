//! The rule for failed requests of models.

use std::time::Duration;

use toolcrib_core::{ModelErrorClass, ReliabilityAction, ReliabilityRule, Retry, Stage};

/// The statuses of failures that pass by themselves.
const STATUSES: [u16; 7] = [408, 429, 500, 502, 503, 504, 529];

/// The same failures by their class: an error in a stream, and a lost connection, have no status.
/// The class of a status may exclude it, such as an exhausted quota with 429.
const CLASSES: [ModelErrorClass; 5] = [
    ModelErrorClass::RateLimit,
    ModelErrorClass::Overloaded,
    ModelErrorClass::Server,
    ModelErrorClass::Network,
    ModelErrorClass::EmptyAnswer,
];

/// Limits are mostly per minute, so vendors request waits of up to a minute.
const RETRY: Retry =
    Retry { attempts: 3, base: Duration::from_millis(500), cap: Duration::from_secs(60) };

/// The rule for each failed request of a model that no rule of the engine is about.
pub(super) fn default_rule() -> ReliabilityRule {
    let rule = ReliabilityRule::new(ReliabilityAction::Retry(RETRY))
        .label("the default rule")
        .stage(Stage::Model)
        .when(|state| state.http_status.is_none_or(|status| STATUSES.contains(&status)));
    CLASSES.into_iter().fold(rule, |rule, class| rule.error_class(class.as_str()))
}
