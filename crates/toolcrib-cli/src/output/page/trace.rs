//! The page of a trace.

use std::sync::Arc;

use minijinja::{
    Environment, Error, State, context,
    value::{Serde, Value},
};
use parking_lot::Mutex;
use toolcrib_core::{Arguments, Usage};

use super::{
    super::{
        sessions::without_fence,
        text::one_line,
        trace::{interrupted, spent, written},
    },
    text::Budget,
};
use crate::trace::{Interruption, Note, Trace, TracedIteration, TracedMenu, TracedStep};

/// The room for the menus of a page, in bytes of HTML.
const MENU_ROOM: usize = 300 * 1024;

/// The HTML of one withheld tool, about, in bytes.
const WITHHELD_ROW: usize = 300;

/// The page. A page of 100 calls has less than 2 MB: long texts are cut.
pub(crate) fn trace_page(trace: &Trace) -> Result<String, Error> {
    let environment = environment(Budget::of(trace))?;
    let title = format!("Run {}: {}", trace.run, one_line(&trace.message, 60));
    environment.get_template("trace.html")?.render(context! {
        head => super::head(&environment, &title)?,
        stopped => trace.stopped(),
        error => trace.error(),
        duration_ms => trace.duration_ms(),
        calls => trace.calls().count(),
        rows => rows(trace),
        parts => trace.iterations.iter().map(parts).collect::<Vec<_>>(),
        marks => trace.interruptions.iter().map(mark).collect::<Vec<_>>(),
        steps => trace.iterations.iter().map(|i| i.requests.len() + i.calls.len()).sum::<usize>(),
        whole_ms => whole_ms(trace),
        ..Serde(trace)
    })
}

fn environment(budget: Budget) -> Result<Environment<'static>, Error> {
    let mut environment = super::environment()?;
    environment.add_filter("by_reason", |menu: Serde<TracedMenu>| {
        Value::from(Serde(menu.withheld_by_reason()))
    });
    environment.add_filter("events", events);
    environment.add_filter("spent", |usage: Serde<Usage>| spent(&usage));
    environment.add_filter("without_fence", without_fence);
    environment.add_filter("written", |arguments: Option<Serde<Arguments>>| {
        arguments.map(|arguments| written(&arguments)).unwrap_or_default()
    });
    // A text within its share of the page.
    let budget = Arc::new(Mutex::new(budget));
    let texts = Arc::clone(&budget);
    environment
        .add_filter("text", move |text: &str| Value::from_safe_string(texts.lock().spend(text)));
    environment.add_function("has_cut", move || budget.lock().has_cut());
    environment.add_template("events.html", include_str!("events.html"))?;
    environment.add_template("trace.html", include_str!("trace.html"))?;
    Ok(environment)
}

/// The HTML of a list of events. Not a macro: their feature would change the scripted model too.
fn events(state: &mut State<'_, '_>, Serde(notes): Serde<Vec<Note>>) -> Result<Value, Error> {
    let news = notes.into_iter().filter(Note::is_news);
    let events: Vec<_> = news
        .map(|note| context! { name => &note.name, at_ms => note.at_ms, words => note.words() })
        .collect();
    let html = state.env().get_template("events.html")?.render(context! { events })?;
    Ok(Value::from_safe_string(html))
}

/// The steps of an iteration, in the order of time.
fn parts(iteration: &TracedIteration) -> Vec<Value> {
    let steps = iteration.steps().into_iter().map(|step| match step {
        TracedStep::Note(_) => context! { kind => "note" },
        TracedStep::Request(request) => {
            context! { kind => "request", of => Value::from(Serde(request)) }
        }
        TracedStep::Text(text) => context! { kind => "text", of => text },
        TracedStep::Call(at, call) => {
            context! { kind => "call", at, of => Value::from(Serde(call)) }
        }
        TracedStep::Interruption(found) => context! { kind => "mark", of => mark(found) },
    });
    steps.collect()
}

/// Where a process ended before the run did.
fn mark(found: &Interruption) -> Value {
    let (label, words) = interrupted(found);
    let resumed_ms = found.resumed_ms.unwrap_or(found.at_ms);
    context! { label, words, at_ms => found.at_ms, resumed_ms }
}

/// The number of withheld tools that are listed in each menu.
fn rows(trace: &Trace) -> usize {
    let menus = trace.iterations.iter().filter_map(|iteration| iteration.menu.as_ref());
    let listed = menus.filter(|menu| menu.changed).count();
    (MENU_ROOM / WITHHELD_ROW / listed.max(1)).clamp(5, 200)
}

/// The end of the last request or call, or the beginning of the last process.
fn whole_ms(trace: &Trace) -> u64 {
    let requests = trace.iterations.iter().flat_map(|iteration| &iteration.requests);
    let requests = requests.map(|r| (r.at_ms, r.response.as_ref().map(|r| r.duration_ms)));
    let calls = trace.calls().map(|c| (c.at_ms, c.end.as_ref().map(|end| end.duration_ms)));
    let marks = trace.iterations.iter().flat_map(|iteration| &iteration.interruptions);
    let marks = marks.map(|mark| (mark.resumed_ms.unwrap_or(mark.at_ms), None));
    let ends = requests.chain(calls).chain(marks);
    ends.map(|(at, ms)| at.saturating_add(ms.unwrap_or_default())).max().unwrap_or_default().max(1)
}
