//! `[[reliability]]`, `[breaker]` and `[retry_budget]`.

use std::sync::Arc;

use toolcrib_config::{Located, Spot, Table, Value, suggest};
use toolcrib_core::{
    BreakerConfig, FailureConditions, Glob, ReliabilityState, Retry, Stage, StatusRange,
};
use toolcrib_engine::RetryBudget;

/// The maximum of attempts of one rule; an engine makes no more, whatever the rules are.
const MAX_ATTEMPTS: u32 = 50;
/// The limit of retries at once, and per second.
const MAX_BURST: u32 = 10_000;

/// The file's rules for failures.
#[derive(Debug, Default)]
pub(crate) struct ReliabilitySection {
    pub(crate) rules: Vec<ReliabilityRuleSection>,
    pub(crate) breakers: Vec<(Stage, BreakerConfig)>,
    pub(crate) budget: Option<RetryBudget>,
}

/// `[[reliability]]`.
#[derive(Debug)]
pub(crate) struct ReliabilityRuleSection {
    pub(crate) at: Spot,
    pub(crate) when: FailureConditions,
    /// The position of `cost_usd_below`, if the rule has it.
    pub(crate) cost_at: Option<Spot>,
    pub(crate) then: Option<Located<Verb>>,
    pub(crate) kind: Option<Arc<str>>,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) retry: Retry,
    /// The model of a fallback.
    pub(crate) model: Option<Located<Arc<str>>>,
}

/// The action of a rule, without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Ok,
    Continue,
    Retry,
    RetryOther,
    Fallback,
    FailFast,
}

const VERBS: [(&str, Verb); 6] = [
    ("retry", Verb::Retry),
    ("retry_other", Verb::RetryOther),
    ("fallback", Verb::Fallback),
    ("fail_fast", Verb::FailFast),
    ("ok", Verb::Ok),
    ("continue", Verb::Continue),
];

const STAGES: [(&str, Stage); 3] =
    [("discover", Stage::Discover), ("model", Stage::Model), ("tool", Stage::Tool)];

impl ReliabilitySection {
    pub(crate) fn read(file: &Table<'_>) -> Self {
        Self {
            rules: file.tables("reliability", ReliabilityRuleSection::read),
            breakers: file.table("breaker", read_breakers).unwrap_or_default(),
            budget: file.table("retry_budget", read_budget),
        }
    }
}

impl ReliabilityRuleSection {
    fn read(table: &Table<'_>) -> Self {
        let when = table.value("when").and_then(|when| {
            when.table("`when`", |table| {
                (read_when(table), table.value("cost_usd_below").map(|cost| cost.at()))
            })
        });
        let (when, cost_at) = when.unwrap_or_default();
        let then = table.required("then", "\"retry\"").and_then(|then| then.word(&VERBS));
        let verb = then.as_ref().map(|then| then.value);
        for key in ["attempts", "base", "cap"] {
            only_with(table, key, "retry", verb == Some(Verb::Retry), then.is_none());
        }
        only_with(table, "model", "fallback", verb == Some(Verb::Fallback), then.is_none());
        if let Some(then) = &then {
            check_stage(table, then, when.stage);
        }
        let default = Retry::default();
        let retry = Retry {
            attempts: table.integer("attempts", 1..=MAX_ATTEMPTS).unwrap_or(default.attempts),
            base: table.duration("base").unwrap_or(default.base),
            cap: table.duration("cap").unwrap_or(default.cap),
        };
        Self {
            at: table.at().clone(),
            when,
            cost_at,
            kind: table.text("kind").map(|kind| kind.value),
            label: table.text("label").map(|label| label.value),
            retry,
            model: match verb {
                Some(Verb::Fallback) => {
                    table.required("model", "\"openai:gpt-5-mini\"").and_then(|model| model.text())
                }
                _ => table.text("model"),
            },
            then,
        }
    }
}

/// Refuses a key that belongs to another action.
fn only_with(table: &Table<'_>, key: &'static str, verb: &str, fits: bool, unknown: bool) {
    if let Some(value) = table.value(key)
        && !fits
        && !unknown
    {
        table.refuse_at(
            &value.at(),
            format!("`{key}` has no effect here: it is for then = \"{verb}\""),
            format!("remove it, or write then = \"{verb}\""),
        );
    }
}

/// Refuses actions that are impossible at the rule's stage.
fn check_stage(table: &Table<'_>, then: &Located<Verb>, stage: Option<Stage>) {
    let (word, only, why) = match then.value {
        Verb::RetryOther => (
            "retry_other",
            [Stage::Model, Stage::Discover].as_slice(),
            "only models and sources have alternatives",
        ),
        Verb::Fallback => {
            ("fallback", [Stage::Model].as_slice(), "the fallback of a project is a model")
        }
        _ => return,
    };
    if let Some(stage) = stage.filter(|stage| !only.contains(stage)) {
        let stages: Vec<_> = only.iter().map(|stage| format!("stage = \"{stage}\"")).collect();
        table.refuse_at(
            &then.at,
            format!("then = \"{word}\" has no effect at the stage `{stage}`: {why}"),
            format!("write {} in `when`, or another `then`", stages.join(" or ")),
        );
    }
}

fn read_when(table: &Table<'_>) -> FailureConditions {
    let stage = table.value("stage").and_then(|stage| stage.word(&STAGES));
    let stage = stage.map(|stage| stage.value);
    let stages = stage.map_or(Stage::ALL.to_vec(), |stage| vec![stage]);
    let classes: Vec<_> = stages.into_iter().flat_map(Stage::error_classes).collect();
    let mut when = FailureConditions::default();
    when.stage = stage;
    when.providers = values(table, "provider").into_iter().map(Glob::new).collect();
    when.error_classes = words(table, "error_class", &classes);
    when.error_names = words(table, "error_name", &ReliabilityState::ERROR_NAMES);
    when.codes = values(table, "code");
    when.message_contains = table.text("message_contains").map(|text| text.value);
    when.http_statuses =
        table.value("http_status").map(|value| statuses(&value)).unwrap_or_default();
    when.validation_error = table.boolean("validation_error");
    when.attempt_below = table.integer("attempt_below", 2..=MAX_ATTEMPTS);
    when.elapsed_below = table.duration("elapsed_below");
    when.tokens_below = table.integer("tokens_below", 1..);
    when.cost_usd_below = table.number("cost_usd_below", 0.0..);
    when
}

fn values(table: &Table<'_>, key: &'static str) -> Vec<Arc<str>> {
    table.texts(key).into_iter().map(|text| text.value).collect()
}

/// Words, each from a list of known ones.
fn words(table: &Table<'_>, key: &'static str, known: &[&str]) -> Vec<Arc<str>> {
    let texts = table.texts(key);
    for text in &texts {
        if !known.contains(&&*text.value) {
            let message = format!("`{key}` cannot be {}", suggest::quoted([&*text.value]));
            let help = suggest::help(&text.value, "values", known.iter().copied());
            table.refuse_at(&text.at, message, help);
        }
    }
    texts.into_iter().map(|text| text.value).collect()
}

/// One or several of `429`, `"5xx"`, `"500-503"`.
fn statuses(value: &Value<'_>) -> Vec<StatusRange> {
    if value.is_list() {
        return value.items().unwrap_or_default().iter().filter_map(status).collect();
    }
    status(value).into_iter().collect()
}

fn status(value: &Value<'_>) -> Option<StatusRange> {
    if !value.is_text() {
        return value.integer(100..=599_u16).map(|status| status.value.into());
    }
    let text = value.text()?;
    let range = text.value.parse();
    if range.is_err() {
        let message = format!("`http_status` cannot be {}", suggest::quoted([&*text.value]));
        value.refuse(message, "write 429, \"5xx\" or \"500-503\", from 100 to 599");
    }
    range.ok()
}

fn read_breakers(table: &Table<'_>) -> Vec<(Stage, BreakerConfig)> {
    let default = BreakerConfig::default();
    let config = BreakerConfig {
        failures: table.integer("failures", 1..=1_000_u32).unwrap_or(default.failures),
        open_for: table.duration("open_for").unwrap_or(default.open_for),
    };
    let stages = table.value("stages").and_then(|stages| stages.items()).map(|stages| {
        stages.iter().filter_map(|stage| stage.word(&STAGES)).map(|stage| stage.value).collect()
    });
    let stages: Vec<_> = stages.unwrap_or_else(|| Stage::ALL.to_vec());
    stages.into_iter().map(|stage| (stage, config)).collect()
}

fn read_budget(table: &Table<'_>) -> RetryBudget {
    let default = RetryBudget::default();
    let per_second = table.number("per_second", 0.0..=f64::from(MAX_BURST));
    RetryBudget {
        share: table.number("share", 0.0..=10.0).unwrap_or(default.share),
        per_second: per_second.unwrap_or(default.per_second),
        burst: table.integer("burst", 0..=MAX_BURST).unwrap_or(default.burst),
    }
}
