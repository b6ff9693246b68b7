//! `/metrics`: counts of requests and calls, in the text format of Prometheus. They are counted from
//! the entries of the access log, so that both agree.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use toolcrib_core::Digest;
use toolcrib_mcp::McpClient;

use super::{access_log::AccessEntry, log_health::LogHealth, readiness::state_of};

/// The limit of sources of calls with separate series; further ones are counted as `other`.
const MOST_SOURCES: usize = 200;

/// The digits of a configuration's digest that operators compare.
const SHOWN_DIGITS: usize = 16;

/// The limit of identities of an authorization server with separate series; further ones are counted
/// as `other`. Those that the operator has declared are not limited.
const MOST_CALLERS: usize = 100;

/// The limit of pairs of a caller and a tool with separate series; for further ones the tool is
/// `other`.
const MOST_PAIRS: usize = 2_000;

/// The upper bounds of a call's duration, in milliseconds.
const BOUNDS: [u64; 12] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 120_000];

/// The content type of the text format.
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Default)]
pub(crate) struct Metrics {
    counts: Mutex<Counts>,
    reloads: [AtomicU64; 2],
    /// By source, of the last listing.
    withheld: Mutex<BTreeMap<Arc<str>, u64>>,
}

/// Nearly always a constant.
type Outcome = Cow<'static, str>;

#[derive(Default)]
struct Counts {
    /// By method and outcome.
    requests: BTreeMap<(&'static str, Outcome), u64>,
    /// By source and outcome.
    calls: BTreeMap<(Arc<str>, Outcome), u64>,
    durations: BTreeMap<Arc<str>, Histogram>,
    by_caller: CallerCounts,
}

/// Calls by caller and tool.
#[derive(Default)]
struct CallerCounts {
    calls: BTreeMap<(MetricCaller, Arc<str>), BTreeMap<Outcome, u64>>,
    /// The identities of an authorization server among them.
    verified: BTreeSet<MetricCaller>,
}

/// A tenant and a principal; empty if absent, which is the same label for Prometheus.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MetricCaller {
    tenant: Arc<str>,
    principal: Arc<str>,
}

impl CallerCounts {
    fn count(&mut self, entry: &AccessEntry, outcome: Outcome) {
        let caller = MetricCaller {
            tenant: entry.tenant.clone().unwrap_or_default(),
            principal: entry.principal.clone().unwrap_or_default(),
        };
        let has_series = entry.is_declared
            || self.verified.contains(&caller)
            || self.verified.len() < MOST_CALLERS && self.verified.insert(caller.clone());
        let other = || MetricCaller { tenant: Arc::default(), principal: "other".into() };
        let caller = if has_series { caller } else { other() };
        // The client chooses the name of an unknown tool.
        let tool = entry.tool.clone().filter(|_| entry.origin.is_some());
        let mut pair = (caller, tool.unwrap_or_else(|| "unknown".into()));
        if self.calls.len() >= MOST_PAIRS && !self.calls.contains_key(&pair) {
            pair.1 = "other".into();
        }
        *self.calls.entry(pair).or_default().entry(outcome).or_default() += 1;
    }

    fn write(&self, text: &mut String) {
        let name = "toolcrib_calls_by_principal_total";
        family(text, name, "counter", "Calls by tenant, principal, tool and outcome.");
        for ((MetricCaller { tenant, principal }, tool), outcomes) in &self.calls {
            for (outcome, n) in outcomes {
                let labels = [
                    ("tenant", &**tenant),
                    ("principal", &**principal),
                    ("tool", &**tool),
                    ("outcome", &**outcome),
                ];
                sample(text, name, &labels, n);
            }
        }
    }
}

#[derive(Default, Clone)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum_ms: u64,
}

impl Metrics {
    /// Counts an entry of the access log.
    pub(crate) fn count(&self, entry: &AccessEntry) {
        let outcome = outcome(entry);
        let mut counts = self.counts.lock();
        *counts.requests.entry((entry.method, outcome.clone())).or_default() += 1;
        if entry.method != "tools/call" {
            return;
        }
        counts.by_caller.count(entry, outcome.clone());
        let source = entry.origin.clone().unwrap_or_else(|| "unknown".into());
        let is_known = counts.durations.contains_key(&source);
        let source = match is_known || counts.durations.len() < MOST_SOURCES {
            true => source,
            false => "other".into(),
        };
        *counts.calls.entry((Arc::clone(&source), outcome)).or_default() += 1;
        counts.durations.entry(source).or_default().add(entry.duration_ms);
    }

    /// Counts a reload of the configuration.
    pub(crate) fn reloaded(&self, succeeded: bool) {
        let [failed, done] = &self.reloads;
        if succeeded { done } else { failed }.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the tools of a listing that are withheld for their definition or state.
    pub(crate) fn withheld(&self, origins: impl Iterator<Item = Arc<str>>) {
        let mut counts = self.withheld.lock();
        counts.values_mut().for_each(|count| *count = 0);
        for origin in origins {
            let is_known = counts.contains_key(&origin) || counts.len() < MOST_SOURCES;
            *counts.entry(if is_known { origin } else { "other".into() }).or_default() += 1;
        }
    }

    /// The number of them.
    pub(crate) fn withheld_count(&self) -> u64 {
        self.withheld.lock().values().sum()
    }

    /// All series as text.
    pub(crate) fn text(&self, servers: &[McpClient], sessions: usize, running: usize) -> String {
        let mut text = String::new();
        let counts = self.counts.lock();
        let requests = counts.requests.iter();
        family(&mut text, "toolcrib_requests_total", "counter", "Requests by method and outcome.");
        for ((method, outcome), n) in requests {
            let labels = [("method", *method), ("outcome", &**outcome)];
            sample(&mut text, "toolcrib_requests_total", &labels, n);
        }
        family(
            &mut text,
            "toolcrib_calls_total",
            "counter",
            "Calls of tools by source and outcome.",
        );
        for ((source, outcome), n) in &counts.calls {
            let labels = [("source", &**source), ("outcome", &**outcome)];
            sample(&mut text, "toolcrib_calls_total", &labels, n);
        }
        let name = "toolcrib_call_duration_seconds";
        family(&mut text, name, "histogram", "The duration of calls of tools by source.");
        for (source, histogram) in &counts.durations {
            histogram.write(&mut text, name, source);
        }
        counts.by_caller.write(&mut text);
        drop(counts);
        family(&mut text, "toolcrib_calls_running", "gauge", "Requests in progress.");
        sample(&mut text, "toolcrib_calls_running", &[], running);
        family(&mut text, "toolcrib_sessions_open", "gauge", "Open sessions of clients.");
        sample(&mut text, "toolcrib_sessions_open", &[], sessions);
        let help = "Whether an MCP server is usable (1), or starting or failing (0).";
        family(&mut text, "toolcrib_server_up", "gauge", help);
        for server in servers {
            let up = u8::from(state_of(server).is_usable());
            sample(&mut text, "toolcrib_server_up", &[("server", server.name().as_str())], up);
        }
        let name = "toolcrib_tools_withheld";
        let help = "Tools of the last listing that are withheld for their definition or state.";
        family(&mut text, name, "gauge", help);
        for (source, n) in self.withheld.lock().iter() {
            sample(&mut text, name, &[("source", &**source)], n);
        }
        family(&mut text, "toolcrib_reloads_total", "counter", "Reloads of the configuration.");
        for (outcome, n) in ["error", "ok"].iter().zip(&self.reloads) {
            let n = n.load(Ordering::Relaxed);
            sample(&mut text, "toolcrib_reloads_total", &[("outcome", outcome)], n);
        }
        family(&mut text, "toolcrib_build_info", "gauge", "The version of the gateway.");
        let version = env!("CARGO_PKG_VERSION");
        sample(&mut text, "toolcrib_build_info", &[("version", version)], 1);
        text
    }
}

/// The series of what could not be written.
pub(crate) fn losses(text: &mut String, logs: &[LogHealth], unsaved: usize) {
    let name = "toolcrib_lost_log_lines_total";
    family(text, name, "counter", "Lines of logs that could not be written.");
    for log in logs {
        sample(text, name, &[("log", log.name())], log.lost_lines());
    }
    let name = "toolcrib_log_failing";
    family(text, name, "gauge", "Whether the last line of a log could not be written (1).");
    for log in logs {
        sample(text, name, &[("log", log.name())], u8::from(log.is_failing()));
    }
    let name = "toolcrib_unsaved_restrictions_total";
    family(text, name, "counter", "Restrictions of callers that only this process remembers.");
    sample(text, name, &[], unsaved);
}

/// The series of the configuration's digest.
pub(crate) fn config(text: &mut String, digest: Option<&Digest>) {
    let Some(digest) = digest else { return };
    let name = "toolcrib_config_info";
    family(text, name, "gauge", "The digest of the configuration, which replicas should share.");
    sample(text, name, &[("digest", &shown(digest))], 1);
}

/// A digest of a configuration for operators, who compare it.
pub(crate) fn shown(digest: &Digest) -> String {
    digest.to_string().chars().take(SHOWN_DIGITS).collect()
}

impl Histogram {
    fn add(&mut self, ms: u64) {
        for (bucket, bound) in self.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(ms <= bound);
        }
        self.count += 1;
        self.sum_ms += ms;
    }

    fn write(&self, text: &mut String, name: &str, source: &str) {
        let bucket = format!("{name}_bucket");
        for (n, bound) in self.buckets.iter().zip(BOUNDS) {
            let bound = seconds(bound);
            sample(text, &bucket, &[("source", source), ("le", &bound)], n);
        }
        sample(text, &bucket, &[("source", source), ("le", "+Inf")], self.count);
        sample(text, &format!("{name}_sum"), &[("source", source)], seconds(self.sum_ms));
        sample(text, &format!("{name}_count"), &[("source", source)], self.count);
    }
}

/// Milliseconds as a decimal number of seconds.
fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1_000, ms % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `ok`, the code of a failed call, the status of a refusal, or `error`.
fn outcome(entry: &AccessEntry) -> Outcome {
    match (entry.code, entry.status, &entry.error) {
        (Some(code), ..) => code.as_str().into(),
        (None, Some(status), _) => status.to_string().into(),
        (None, None, Some(_)) => "error".into(),
        (None, None, None) => "ok".into(),
    }
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<_> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let _ = match labels.is_empty() {
        true => writeln!(text, "{name} {value}"),
        false => writeln!(text, "{name}{{{}}} {value}", labels.join(",")),
    };
}

#[cfg(test)]
mod tests {
    use toolcrib_core::ErrorCode;

    use super::*;

    #[test]
    fn callers_and_tools_have_bounded_series_and_declared_callers_keep_theirs() {
        let metrics = Metrics::default();
        let call = |principal: &str, tool: &str, is_declared| {
            let mut entry = AccessEntry::new("tools/call", None);
            entry.principal = Some(principal.into());
            (entry.tool, entry.origin) = (Some(tool.into()), Some("mcp:s".into()));
            entry.is_declared = is_declared;
            metrics.count(&entry);
        };
        for at in 0..MOST_CALLERS + 7 {
            call(&format!("stranger {at}"), "t", false);
        }
        for at in 0..MOST_PAIRS * 2 {
            call("stranger 3", &format!("t{at}"), false);
        }
        call("ana", "t", true);
        let mut unknown = AccessEntry::new("tools/call", None);
        unknown.tool = Some("chosen by the client".into());
        metrics.count(&unknown);
        let text = metrics.text(&[], 0, 0);
        let series = "toolcrib_calls_by_principal_total{tenant=\"\",";
        assert!(text.matches(series).count() <= MOST_PAIRS + 3);
        for line in [
            "principal=\"other\",tool=\"t\",outcome=\"ok\"} 7",
            "principal=\"ana\",tool=\"other\",outcome=\"ok\"} 1",
            "principal=\"other\",tool=\"other\",outcome=\"ok\"} 1",
        ] {
            let line = format!("{series}{line}");
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        assert!(!text.contains("chosen"));
    }

    #[test]
    fn counts_have_bounded_series_and_cumulative_buckets() {
        let metrics = Metrics::default();
        for at in 0..u64::try_from(MOST_SOURCES).unwrap() + 5 {
            let mut entry = AccessEntry::new("tools/call", None);
            entry.origin = Some(format!("mcp:s{at}").into());
            entry.duration_ms = at;
            metrics.count(&entry);
        }
        let mut failed = AccessEntry::new("tools/call", None);
        failed.origin = Some("mcp:s7".into());
        failed.code = Some(ErrorCode::Denied);
        metrics.count(&failed);
        let mut refused = AccessEntry::new("http", None);
        refused.status = Some(401);
        metrics.count(&refused);
        metrics.reloaded(true);
        let text = metrics.text(&[], 2, 3);
        assert_eq!(text.matches("toolcrib_call_duration_seconds_count").count(), MOST_SOURCES + 1);
        for line in [
            "toolcrib_calls_total{source=\"other\",outcome=\"ok\"} 5",
            "toolcrib_calls_total{source=\"mcp:s7\",outcome=\"denied\"} 1",
            "toolcrib_requests_total{method=\"http\",outcome=\"401\"} 1",
            "toolcrib_call_duration_seconds_bucket{source=\"mcp:s7\",le=\"0.005\"} 1",
            "toolcrib_call_duration_seconds_bucket{source=\"mcp:s7\",le=\"0.01\"} 2",
            "toolcrib_call_duration_seconds_sum{source=\"mcp:s7\"} 0.007",
            "toolcrib_reloads_total{outcome=\"ok\"} 1",
            "toolcrib_sessions_open 2",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        let mut label = String::new();
        sample(&mut label, "x", &[("a", "q\"\\\n")], 1);
        assert_eq!(label, "x{a=\"q\\\"\\\\\\n\"} 1\n");
    }
}
