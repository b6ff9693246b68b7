//! The trace of a run, and the list of runs, as text.

use serde::Serialize;
use toolcrib_core::{Arguments, StoredRun, Usage};

use super::{
    print::say,
    sessions::{end_of_list, ended, time, without_fence},
    text::{BAD, DIM, GOOD, STRONG, WARN, count, grouped, one_line, safe},
};
use crate::trace::{
    InterruptedCalls, Interruption, InterruptionReason, Note, OK, Trace, TracedCall,
    TracedDiscovery, TracedEnd, TracedIteration, TracedMenu, TracedRequest, TracedStep,
    first_names,
};

/// The length limit of arguments, results and texts without `-v`, in characters.
const SHORT: usize = 300;

/// The number of reasons for withheld tools that are listed without `-v`.
const SHORT_LIST: usize = 3;

/// The output of `runs --json`.
#[derive(Serialize)]
pub(crate) struct RunsJson<'a> {
    pub(crate) runs: &'a [StoredRun],
}

/// The list of runs.
pub(crate) fn runs(runs: &[StoredRun], limit: usize, of_gateway: bool, quiet: bool) {
    for run in runs {
        let name = format!("{}/{}", run.session, run.turn.number);
        if quiet {
            say!("{name}");
            continue;
        }
        let title = one_line(&run.turn.title, 60);
        say!("{GOOD}{name}{GOOD:#}  {STRONG}{title}{STRONG:#}");
        let named = run.name.as_ref().map(|name| format!(" of {}", safe(name)));
        say!(
            "    {DIM}{}{}, {}, {}, {}, {}{DIM:#}",
            time(run.turn.began_ms),
            named.unwrap_or_default(),
            safe(ended(&run.turn.state)),
            safe(&run.turn.model),
            count(run.calls, "call"),
            spent(&run.turn.usage)
        );
    }
    if !quiet {
        let if_empty = match of_gateway {
            true => "no calls are stored; `toolcrib serve --store-calls` stores them",
            false => "no runs are stored; `toolcrib run` stores one",
        };
        end_of_list(runs.len(), limit, if_empty);
    }
}

/// Tokens and money.
pub(super) fn spent(usage: &Usage) -> String {
    let cached = cached(usage);
    format!(
        "{} tokens in{cached}, {} out, {}",
        grouped(usage.input_tokens),
        grouped(usage.output_tokens),
        money(usage.cost_usd)
    )
}

/// The input tokens that the vendor read from its prompt cache or wrote to it, in parentheses.
pub(super) fn cached(usage: &Usage) -> String {
    let part =
        |tokens: u64, what: &str| (tokens > 0).then(|| format!("{} {what}", grouped(tokens)));
    let read = part(usage.cached_input_tokens, "cached");
    let written = part(usage.cache_write_tokens, "written to the cache");
    match read.into_iter().chain(written).collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    }
}

/// An amount, such as `$0.0123`; its absence is unknown, never zero.
pub(super) fn money(usd: Option<f64>) -> String {
    match usd {
        None => "unknown cost".to_owned(),
        Some(0.0) => "$0".to_owned(),
        Some(usd) if usd < 0.01 => format!("${usd:.6}"),
        Some(usd) => format!("${usd:.4}"),
    }
}

/// Milliseconds, such as `12 ms` or `3.2 s`.
pub(super) fn took(ms: u64) -> String {
    super::text::duration(std::time::Duration::from_millis(ms.max(1)))
}

/// A number of bytes, such as `3,461 B`.
pub(super) fn bytes(bytes: u64) -> String {
    format!("{} B", grouped(bytes))
}

/// Arguments as the model wrote them.
pub(crate) fn written(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Text(text) => text.clone(),
        Arguments::Json(json) => json.to_string(),
    }
}

/// Where a process of a run ended before the run did: the event, and what followed.
pub(super) fn interrupted(mark: &Interruption) -> (&'static str, String) {
    let at = took(mark.at_ms);
    let (label, mut words) = match mark.why {
        InterruptionReason::Died => ("died", format!("the process of the run, after {at}")),
        InterruptionReason::AwaitingApproval => {
            ("waited", format!("the run, for approval of a call, after {at}"))
        }
        InterruptionReason::Open => {
            ("no end", format!("after {at}: the run goes on, or its process died"))
        }
    };
    match (mark.resumed_ms, mark.why) {
        (Some(resumed), _) => {
            words += &format!("; another process went on after {}", took(resumed));
            let InterruptedCalls { ended, lost, repeated, begun } = &mark.calls;
            let calls = [
                (ended, "kept"),
                (repeated, "made once more"),
                (begun, "begun"),
                (lost, "without a result"),
            ];
            let calls = calls.iter().filter(|(ids, _)| !ids.is_empty());
            let calls: Vec<_> =
                calls.map(|(ids, word)| format!("{} {word}", count(ids.len(), "call"))).collect();
            if !calls.is_empty() {
                words += &format!(": {}", calls.join(", "));
            }
        }
        (None, InterruptionReason::Died) => words += "; no process went on",
        (None, _) => {}
    }
    (label, words)
}

/// The way of a text through the stages: `150 B from the tool, fence 245 B`.
pub(super) fn stages(end: &TracedEnd) -> String {
    let mut way = format!("{} produced", bytes(end.produced_bytes));
    for stage in &end.stages {
        way += &format!(", {} {}", stage.stage, bytes(stage.bytes));
    }
    way
}

/// The trace of a run.
pub(crate) fn trace(trace: &Trace, verbose: bool) {
    let took = trace.duration_ms().map(|ms| format!(", {}", took(ms)));
    let stopped = match trace.stopped() {
        stopped @ ("answered" | "max_iterations") => format!("{GOOD}{}{GOOD:#}", safe(stopped)),
        stopped => format!("{BAD}{}{BAD:#}", safe(stopped)),
    };
    say!(
        "{STRONG}run{STRONG:#} {}  {stopped}  {DIM}{}{}{DIM:#}",
        trace.run,
        time(trace.began_ms),
        took.unwrap_or_default()
    );
    let iterations = trace.iterations.iter().filter(|i| i.number.is_some()).count();
    say!(
        "  {DIM}{}, {}, {}{DIM:#}",
        safe(&trace.model),
        count(iterations, "iteration"),
        count(trace.calls().count(), "call"),
    );
    say!("  {DIM}{}{DIM:#}", spent(&trace.usage));
    say!("  {DIM}user{DIM:#}      {}", shortened(&trace.message, verbose));
    if trace.is_partial {
        say!(
            "  {WARN}partial{WARN:#}   events are missing: an older program made the run, or it has \
             too many of them"
        );
    }
    trace.notes.iter().for_each(|note| self::note(note, verbose));
    trace.interruptions.iter().for_each(interruption);
    for iteration in &trace.iterations {
        self::iteration(iteration, verbose);
    }
    if let Some(error) = trace.error() {
        say!("\n{BAD}error{BAD:#}  {}", safe(error));
    }
    if let Some(answer) = &trace.answer {
        say!("\n{STRONG}answer{STRONG:#}  {}", shortened(answer, verbose));
    }
    if let Some(end) = &trace.end {
        say!("");
        note(end, verbose);
    }
}

fn iteration(iteration: &TracedIteration, verbose: bool) {
    let at = format!("{DIM}+{}{DIM:#}", took(iteration.at_ms));
    match iteration.number {
        Some(number) => say!("\n{STRONG}iteration {number}{STRONG:#}  {at}"),
        None => say!("\n{STRONG}wrap-up{STRONG:#}  {at}"),
    }
    discovery(&iteration.discovery, verbose);
    if let Some(menu) = &iteration.menu {
        self::menu(menu, verbose);
    }
    for step in iteration.steps() {
        match step {
            TracedStep::Note(note) => self::note(note, verbose),
            TracedStep::Request(request) => self::request(request),
            TracedStep::Text(text) => say!("  {DIM}text{DIM:#}      {}", shortened(text, verbose)),
            TracedStep::Call(_, call) => self::call(call, verbose),
            TracedStep::Interruption(mark) => interruption(mark),
        }
    }
}

fn interruption(mark: &Interruption) {
    let (label, words) = interrupted(mark);
    say!("  {BAD}{label:<9}{BAD:#} {words}");
}

/// The sources in one line, each with its duration.
fn discovery(sources: &[TracedDiscovery], verbose: bool) {
    if sources.is_empty() {
        return;
    }
    let in_words = |source: &TracedDiscovery| {
        let cache = match (&*source.cache, source.age_ms) {
            ("" | "none", _) => String::new(),
            (cache, None) => format!(" {DIM}(cache: {}){DIM:#}", safe(cache)),
            (cache, Some(age)) => {
                format!(" {DIM}(cache: {}, {} old){DIM:#}", safe(cache), self::took(age))
            }
        };
        let tools = count(source.tool_count, "tool");
        format!("{}: {tools} in {}{cache}", safe(&source.provider), self::took(source.duration_ms))
    };
    let shown = if verbose { sources.len() } else { SHORT_LIST };
    let mut listed: Vec<_> = sources.iter().take(shown).map(in_words).collect();
    if sources.len() > shown {
        listed.push(format!(
            "{DIM}{}; -v lists all{DIM:#}",
            count(sources.len() - shown, "more source")
        ));
    }
    say!("  {DIM}discovery{DIM:#} {}", listed.join("; "));
}

fn menu(menu: &TracedMenu, verbose: bool) {
    let short: String = menu.fingerprint.chars().take(8).collect();
    let changed = if menu.changed { "" } else { ", as before" };
    let deferred = match menu.deferred {
        0 => String::new(),
        deferred => format!(", {deferred} deferred"),
    };
    say!(
        "  {DIM}menu{DIM:#}      {} offered{deferred}, {} withheld {DIM}({short}{changed}){DIM:#}",
        count(menu.tools.len(), "tool"),
        menu.withheld
    );
    if verbose {
        say!("  {DIM}offered{DIM:#}   {}", safe(&menu.tools.join(", ")));
    }
    if !(menu.changed || verbose) {
        return;
    }
    let groups = menu.withheld_by_reason();
    let shown = if verbose { groups.len() } else { SHORT_LIST };
    for (by, reason, names) in groups.iter().take(shown) {
        let names = if verbose { names.join(", ") } else { first_names(names) };
        say!("  {DIM}withheld{DIM:#}  {}: {} {DIM}({by}){DIM:#}", safe(&names), safe(reason));
    }
    let missing = groups.len().saturating_sub(shown);
    if missing > 0 {
        say!("            {DIM}{}; -v lists all{DIM:#}", count(missing, "more reason"));
    }
}

fn request(request: &TracedRequest) {
    let sent = format!(
        "{}: {} and {} sent, {}",
        safe(&request.model),
        count(request.messages, "message"),
        count(request.tools, "tool"),
        bytes(request.request_bytes)
    );
    let Some(response) = &request.response else {
        return say!("  {DIM}model{DIM:#}     {sent}; {BAD}no response{BAD:#}");
    };
    let first = response.first_ms.map(|ms| format!(" (first piece after {})", took(ms)));
    let back = match &response.error {
        Some(error) => {
            format!("{BAD}failed{BAD:#} after {}: {}", took(response.duration_ms), safe(error))
        }
        None => format!(
            "{} back in {}{}",
            bytes(response.bytes),
            took(response.duration_ms),
            first.unwrap_or_default()
        ),
    };
    say!("  {DIM}model{DIM:#}     {sent}; {back}; {}", spent(&response.usage));
}

fn call(call: &TracedCall, verbose: bool) {
    let state = match call.outcome.as_deref() {
        Some(OK) => format!("{GOOD}ok{GOOD:#}"),
        other => format!("{BAD}{}{BAD:#}", safe(other.unwrap_or("no end"))),
    };
    let arguments = call.arguments.as_ref().map(written).unwrap_or_default();
    let arguments = if verbose { safe(&arguments) } else { one_line(&arguments, SHORT) };
    let took = call.end.as_ref().map(|end| format!(" in {}", took(end.duration_ms)));
    let via = call.called.as_ref().map(|called| format!(" {DIM}through {}{DIM:#}", safe(called)));
    let kind = match call.read_only {
        Some(true) => "reads",
        Some(false) => "writes",
        None => "not made",
    };
    let kind = match (&call.outcome, &call.end) {
        // Its process died before the rest was stored.
        (Some(_), None) => format!("{kind}, from the journal"),
        _ => kind.to_owned(),
    };
    let cut_off = match call.cut_off {
        0 => String::new(),
        times => format!(", {} cut off", count(times, "attempt")),
    };
    say!(
        "  {STRONG}call{STRONG:#}      {STRONG}{}{STRONG:#}{} {arguments}  {state}{} {DIM}({kind}{cut_off}){DIM:#}",
        safe(&call.tool),
        via.unwrap_or_default(),
        took.unwrap_or_default()
    );
    if let Some(ran) = &call.ran_with {
        say!("  {DIM}ran with{DIM:#}  {}", one_line(&ran.to_string(), SHORT));
    }
    for decision in &call.policy {
        if verbose || decision.effect != "allow" || decision.rule != "policy_default" {
            let (rule, effect) = (safe(&decision.rule), safe(&decision.effect));
            say!(
                "  {DIM}policy{DIM:#}    {rule}: {effect} {DIM}({}){DIM:#}",
                safe(&decision.stage)
            );
        }
    }
    call.notes.iter().for_each(|note| self::note(note, verbose));
    if let Some(end) = &call.end {
        say!("  {DIM}bytes{DIM:#}     {}", stages(end));
        if let Some(cost) = end.cost_usd {
            say!("  {DIM}cost{DIM:#}      {}", money(Some(cost)));
        }
        if let Some(cause) = &end.cause {
            say!("  {DIM}cause{DIM:#}     {}", shortened(cause, verbose));
        }
    }
    if let Some(result) = &call.result {
        say!("  {DIM}result{DIM:#}    {}", shortened(&without_fence(result), verbose));
    }
}

fn note(note: &Note, verbose: bool) {
    if verbose || note.is_news() {
        let words = note.words();
        let words = if verbose { safe(&words) } else { one_line(&words, SHORT) };
        say!(
            "  {DIM}event{DIM:#}     {} {DIM}+{}{DIM:#}  {words}",
            safe(&note.name),
            took(note.at_ms)
        );
    }
}

fn shortened(text: &str, verbose: bool) -> String {
    if verbose { safe(text).replace('\n', "\n            ") } else { one_line(text, SHORT) }
}
