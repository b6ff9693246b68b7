//! The trace of a run as one page: no script, no resource, no request. The HTML is in `page.html`.

mod text;

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use minijinja::{
    Environment, Error, State, UndefinedBehavior, context,
    syntax::SyntaxConfig,
    value::{Serde, Value},
};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use toolcrib_core::{Arguments, Usage};

use self::text::{Budget, esc};
use super::{
    sessions::{time, without_fence},
    text::{count, grouped, one_line},
    trace::{money, spent, took, written},
};
use crate::trace::{Note, Trace, TracedMenu};

/// The stylesheet, the only one that the page's policy allows.
const STYLE: &str = include_str!("style.css");

/// The room for the menus of a page, in bytes of HTML.
const MENU_ROOM: usize = 300 * 1024;

/// The HTML of one withheld tool, about, in bytes.
const WITHHELD_ROW: usize = 300;

/// The page. A page of 100 calls has less than 2 MB: long texts are cut.
pub(crate) fn trace_page(trace: &Trace) -> Result<String, Error> {
    environment(Budget::of(trace))?.get_template("page.html")?.render(context! {
        style => Value::from_safe_string(STYLE.to_owned()),
        style_hash => BASE64_STANDARD.encode(Sha256::digest(STYLE)),
        version => env!("CARGO_PKG_VERSION"),
        stopped => trace.stopped(),
        error => trace.error(),
        duration_ms => trace.duration_ms(),
        calls => trace.calls().count(),
        rows => rows(trace),
        steps => trace.iterations.iter().map(|i| i.requests.len() + i.calls.len()).sum::<usize>(),
        whole_ms => whole_ms(trace),
        ..Serde(trace)
    })
}

fn environment(budget: Budget) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    // Escapes hidden characters too, unlike the built-in escaping.
    environment.set_formatter(|output, _, value| {
        let text = value.to_string();
        Ok(output.write_str(&if value.is_safe() { text } else { esc(&text) })?)
    });
    environment.add_filter("by_reason", |menu: Serde<TracedMenu>| {
        Value::from(Serde(menu.withheld_by_reason()))
    });
    environment.add_filter("count", count::<u64>);
    environment.add_filter("events", events);
    environment.add_filter("grouped", grouped);
    environment.add_filter("money", money);
    environment.add_filter("one_line", one_line);
    environment.add_filter("spent", |usage: Serde<Usage>| spent(&usage));
    environment.add_filter("time", time);
    environment.add_filter("took", took);
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
    environment.add_template("page.html", include_str!("page.html"))?;
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

/// The number of withheld tools that are listed in each menu.
fn rows(trace: &Trace) -> usize {
    let menus = trace.iterations.iter().filter_map(|iteration| iteration.menu.as_ref());
    let listed = menus.filter(|menu| menu.changed).count();
    (MENU_ROOM / WITHHELD_ROW / listed.max(1)).clamp(5, 200)
}

/// The end of the last request or call.
fn whole_ms(trace: &Trace) -> u64 {
    let requests = trace.iterations.iter().flat_map(|iteration| &iteration.requests);
    let requests = requests.map(|r| (r.at_ms, r.response.as_ref().map(|r| r.duration_ms)));
    let calls = trace.calls().map(|c| (c.at_ms, c.end.as_ref().map(|end| end.duration_ms)));
    let ends = requests.chain(calls).map(|(at, ms)| at.saturating_add(ms.unwrap_or_default()));
    ends.max().unwrap_or_default().max(1)
}
