//! The report on the sandboxes that this machine enforces.

use std::sync::Arc;

use serde::Serialize;
use toolcrib_capabilities::process::{Attempt, SandboxTier, SelfTest};
use toolcrib_project::ServerFinding;

use super::{
    print::say,
    text::{BAD, DIM, GOOD, STRONG, safe},
};

/// The results of all self-tests.
pub(crate) struct Checkup {
    pub(crate) tiers: [&'static SelfTest; SandboxTier::ALL.len()],
    /// Whether the number of processes is limited, else why not.
    pub(crate) processes: Result<(), String>,
}

impl Checkup {
    /// Whether everything is enforced.
    pub(crate) fn is_complete(&self) -> bool {
        self.processes.is_ok() && self.tiers.iter().all(|test| test.verdict.is_ok())
    }
}

/// Prints each tier with the acts that it adds to the tier before.
pub(crate) fn checkup(checkup: &Checkup, quiet: bool) {
    let mut earlier: &[Attempt] = &[];
    for test in checkup.tiers {
        line(test.tier.as_str(), meaning(test.tier), test.verdict.as_ref().err());
        let is_new = |attempt: &&Attempt| earlier.iter().all(|known| known.act != attempt.act);
        let new = test.attempts.iter().filter(is_new);
        for attempt in new.filter(|attempt| !quiet || !attempt.is_as_required) {
            act(attempt);
        }
        earlier = &test.attempts;
    }
    line(
        "processes",
        "their number is limited in every tier but `none`",
        checkup.processes.as_ref().err(),
    );
}

/// The properties of the store's server, or why it cannot be reached.
pub(crate) type StoreCheckup = Result<Vec<ServerFinding>, String>;

pub(crate) fn is_store_fine(store: &StoreCheckup) -> bool {
    store.as_ref().is_ok_and(|found| found.iter().all(|one| one.problem.is_none()))
}

/// Prints each property with what to do about it.
pub(crate) fn store_checkup(store: &StoreCheckup, quiet: bool) {
    match store {
        Err(error) => say!("{BAD}✗{BAD:#} {STRONG}store{STRONG:#}  {}", safe(error)),
        Ok(found) => {
            for one in found.iter().filter(|one| !quiet || one.problem.is_some()) {
                let (mark, style) =
                    if one.problem.is_none() { ("✓", GOOD) } else { ("✗", BAD) };
                let (name, found) = (one.name, safe(&one.found));
                say!("{style}{mark}{style:#} {STRONG}store: {name}{STRONG:#}  {DIM}{found}{DIM:#}");
                if let Some(problem) = one.problem {
                    say!("    {problem}");
                }
            }
        }
    }
}

fn meaning(tier: SandboxTier) -> &'static str {
    match tier {
        SandboxTier::None => "not confined",
        SandboxTier::Tree => "all processes end with the program, which has no capabilities",
        SandboxTier::Files => "also: reads and writes granted folders only",
        SandboxTier::Full => "also: no network but a proxy to granted hosts, fewer system calls",
    }
}

fn line(name: &str, meaning: &str, missing: Option<&impl ToString>) {
    let (mark, style) = if missing.is_none() { ("✓", GOOD) } else { ("✗", BAD) };
    say!("{style}{mark}{style:#} {STRONG}{name}{STRONG:#}  {DIM}{meaning}{DIM:#}");
    if let Some(missing) = missing {
        say!("    not enforced: {}", safe(&missing.to_string()));
    }
}

fn act(attempt: &Attempt) {
    let style = if attempt.is_as_required { GOOD } else { BAD };
    match &attempt.outcome {
        Ok(()) => say!("    {style}permitted{style:#}  {}", attempt.act),
        Err(answer) => {
            say!("    {style}denied{style:#}     {}  {DIM}{}{DIM:#}", attempt.act, safe(answer));
        }
    }
}

/// The output of `doctor --json`.
#[derive(Serialize)]
pub(crate) struct DoctorJson<'a> {
    /// Whether everything is enforced.
    ok: bool,
    tiers: Vec<TierJson<'a>>,
    processes: FeatureJson,
    /// Why approvals are advisory in the project; null without a project that loads.
    approvals_advisory: Option<&'a [Arc<str>]>,
    /// The database of the project's store; null without one.
    store: Option<StoreJson<'a>>,
}

#[derive(Serialize)]
struct StoreJson<'a> {
    ok: bool,
    /// Why it cannot be reached.
    error: Option<&'a str>,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    name: &'a str,
    ok: bool,
    found: &'a str,
    /// The problem, and what to do.
    problem: Option<&'a str>,
}

impl<'a> StoreJson<'a> {
    fn new(store: &'a StoreCheckup) -> Self {
        let findings = store.iter().flatten().map(|one| FindingJson {
            name: one.name,
            ok: one.problem.is_none(),
            found: &one.found,
            problem: one.problem,
        });
        Self {
            ok: is_store_fine(store),
            error: store.as_ref().err().map(String::as_str),
            findings: findings.collect(),
        }
    }
}

#[derive(Serialize)]
struct TierJson<'a> {
    tier: &'a str,
    ok: bool,
    /// The missing feature, and how to get it.
    error: Option<String>,
    acts: Vec<ActJson<'a>>,
}

#[derive(Serialize)]
struct ActJson<'a> {
    act: &'a str,
    /// `denied` or `permitted`.
    required: &'a str,
    outcome: &'a str,
    ok: bool,
    /// The system's answer to a denied act.
    answer: Option<&'a str>,
}

#[derive(Serialize)]
struct FeatureJson {
    ok: bool,
    error: Option<String>,
}

impl<'a> DoctorJson<'a> {
    pub(crate) fn new(
        checkup: &'a Checkup,
        advisory: Option<&'a [Arc<str>]>,
        store: Option<&'a StoreCheckup>,
    ) -> Self {
        Self {
            ok: checkup.is_complete() && store.is_none_or(is_store_fine),
            store: store.map(StoreJson::new),
            tiers: checkup.tiers.iter().map(|test| TierJson::new(test)).collect(),
            processes: FeatureJson {
                ok: checkup.processes.is_ok(),
                error: checkup.processes.clone().err(),
            },
            approvals_advisory: advisory,
        }
    }
}

impl<'a> TierJson<'a> {
    fn new(test: &'a SelfTest) -> Self {
        let word = |denied| if denied { "denied" } else { "permitted" };
        let acts = test.attempts.iter().map(|attempt| ActJson {
            act: attempt.act,
            required: word(attempt.must_fail),
            outcome: word(attempt.outcome.is_err()),
            ok: attempt.is_as_required,
            answer: attempt.outcome.as_ref().err().map(String::as_str),
        });
        Self {
            tier: test.tier.as_str(),
            ok: test.verdict.is_ok(),
            error: test.verdict.as_ref().err().map(ToString::to_string),
            acts: acts.collect(),
        }
    }
}
