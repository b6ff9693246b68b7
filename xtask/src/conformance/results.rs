//! The results of the suite, as `run.mjs` prints them.

use tinyjson::JsonValue;

use crate::{
    example::{field, items, text},
    problem::Problem,
};

/// One requirement set in one column of the matrix.
pub(crate) struct Run {
    pub(crate) set: String,
    pub(crate) column: String,
    pub(crate) scenarios: Vec<Scenario>,
}

pub(crate) struct Scenario {
    pub(crate) name: String,
    /// Whether the requirement set demands it; the others are run for information.
    pub(crate) scored: bool,
    /// The suite's verdict.
    pub(crate) ok: bool,
    /// Checks that passed and failed, as JSON has them.
    pub(crate) passed: f64,
    pub(crate) failed: f64,
}

impl Run {
    /// The scored scenarios that passed, and all of them.
    pub(crate) fn score(&self) -> (usize, usize) {
        let scored = || self.scenarios.iter().filter(|scenario| scenario.scored);
        (scored().filter(|scenario| scenario.ok).count(), scored().count())
    }

    pub(crate) fn scenario(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| scenario.name == name)
    }
}

pub(crate) fn parse(text: &str) -> Result<Vec<Run>, Problem> {
    text.parse().ok().and_then(|json: JsonValue| runs(&json)).ok_or_else(|| {
        Problem::new(
            format!("run.mjs printed other results than expected:\n{text}"),
            "fix xtask/conformance/run.mjs",
        )
    })
}

fn runs(json: &JsonValue) -> Option<Vec<Run>> {
    let run = |json: &JsonValue| {
        Some(Run {
            set: text(json, "set")?.to_owned(),
            column: text(json, "column")?.to_owned(),
            scenarios: items(json, "scenarios").map(scenario).collect::<Option<_>>()?,
        })
    };
    json.get::<Vec<JsonValue>>()?.iter().map(run).collect()
}

fn scenario(json: &JsonValue) -> Option<Scenario> {
    Some(Scenario {
        name: text(json, "scenario")?.to_owned(),
        scored: *field(json, "scored")?.get()?,
        ok: *field(json, "ok")?.get()?,
        passed: *field(json, "passed")?.get()?,
        failed: *field(json, "failed")?.get()?,
    })
}
