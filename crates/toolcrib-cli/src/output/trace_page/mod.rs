//! The trace of a run as one page: no script, no resource, no request.

mod text;

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use toolcrib_core::Digest;

use self::text::{Budget, esc};
use super::{
    sessions::{time, without_fence},
    text::{count, grouped},
    trace::{bytes, money, outcome, spent, took, written},
};
use crate::trace::{
    Note, Trace, TracedCall, TracedEnd, TracedIteration, TracedMenu, TracedRequest,
};

/// The stylesheet, the only one that the page's policy allows.
const STYLE: &str = include_str!("style.css");

/// The room for the menus of a page, in bytes of HTML.
const MENU_ROOM: usize = 300 * 1024;

/// The HTML of one withheld tool, about, in bytes.
const WITHHELD_ROW: usize = 300;

/// The limit of events in one list.
const MAX_NOTES: usize = 100;

/// The width of a bar's coordinates.
const BAR: u64 = 1_000;

/// The page. A page of 100 calls has less than 2 MB: long texts are cut.
pub(crate) fn trace_page(trace: &Trace) -> String {
    let mut page = Page { html: String::new(), budget: Budget::of(trace), rows: rows(trace) };
    page.head(trace);
    page.body(trace);
    page.html
}

/// The number of withheld tools that are listed in each menu.
fn rows(trace: &Trace) -> usize {
    let menus = trace.iterations.iter().filter_map(|iteration| iteration.menu.as_ref());
    let listed = menus.filter(|menu| menu.changed).count();
    (MENU_ROOM / WITHHELD_ROW / listed.max(1)).clamp(5, 200)
}

/// The hash of the stylesheet, as a Content Security Policy names it.
fn style_hash() -> String {
    let hex = Digest::of(STYLE).to_string();
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default();
    let pairs = hex.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| pair.iter().fold(0, |byte, hex| byte * 16 + digit(*hex));
    let bytes: Vec<_> = pairs.map(|pair| u8::try_from(byte(pair)).unwrap_or_default()).collect();
    format!("sha256-{}", STANDARD.encode(bytes))
}

/// Writes to the page.
macro_rules! put {
    ($page:expr, $($arg:tt)*) => {{
        // Writing to a text does not fail.
        let _ = write!($page.html, $($arg)*);
    }};
}

struct Page {
    html: String,
    budget: Budget,
    /// The number of withheld tools that are listed in each menu.
    rows: usize,
}

impl Page {
    fn head(&mut self, trace: &Trace) {
        let policy = format!(
            "default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'",
            style_hash()
        );
        put!(
            self,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>Run {}: {}</title>\n<style>{STYLE}</style>\n</head>\n",
            esc(&trace.run),
            esc(&text::beginning(&trace.message, 60))
        );
    }

    fn body(&mut self, trace: &Trace) {
        put!(
            self,
            "<body>\n<a class=\"skip\" href=\"#iterations\">Skip to the iterations</a>\n<header>\n"
        );
        put!(self, "<p class=\"eyebrow\">Toolcrib run <code>{}</code></p>\n", esc(&trace.run));
        put!(self, "<h1>{}</h1>\n", esc(&text::beginning(&trace.message, 160)));
        self.facts(trace);
        if trace.message.chars().count() > 160 {
            put!(self, "<details><summary>The whole message</summary><div class=\"inside\">");
            self.pre(&trace.message);
            put!(self, "</div></details>\n");
        }
        if let Some(error) = trace.error() {
            put!(self, "<p class=\"notice\"><strong class=\"bad\">Error:</strong> ");
            self.text(error);
            put!(self, "</p>\n");
        }
        if trace.is_partial {
            put!(
                self,
                "<p class=\"notice\">Events are missing: an older program made the run, or it has \
                 too many of them.</p>\n"
            );
        }
        put!(self, "</header>\n<main>\n");
        self.timeline(trace);
        self.notes(&trace.notes);
        put!(self, "<div id=\"iterations\" tabindex=\"-1\">\n");
        for (at, iteration) in trace.iterations.iter().enumerate() {
            self.iteration(at, iteration);
        }
        put!(self, "</div>\n");
        if let Some(answer) = &trace.answer {
            put!(
                self,
                "<section class=\"answer\" aria-labelledby=\"answer\"><h2 id=\"answer\">Answer</h2>\n"
            );
            self.said(answer);
            put!(self, "</section>\n");
        }
        self.notes(trace.end.as_slice());
        put!(
            self,
            "</main>\n<footer>Written by Toolcrib {}. This page contains no script and loads \
             nothing.{}</footer>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            if self.budget.has_cut() {
                " Long texts are cut; <code>toolcrib trace --json</code> has them in full."
            } else {
                ""
            }
        );
    }

    fn facts(&mut self, trace: &Trace) {
        let stopped = match trace.stopped() {
            stopped @ ("answered" | "max_iterations") => ("good", stopped),
            stopped => ("bad", stopped),
        };
        put!(self, "<dl class=\"facts\">\n");
        put!(
            self,
            "<div><dt>Ended</dt><dd class=\"status {}\">{}</dd></div>\n",
            stopped.0,
            esc(&stopped.1.replace('_', " "))
        );
        self.fact("Began", &time(trace.began_ms));
        if let Some(ms) = trace.duration_ms() {
            self.fact("Took", &took(ms));
        }
        self.fact("Model", &trace.model);
        let iterations = trace.iterations.iter().filter(|i| i.number.is_some()).count();
        self.fact("Iterations", &iterations.to_string());
        self.fact("Calls", &trace.calls().count().to_string());
        let usage = &trace.usage;
        let cached = match usage.cached_input_tokens {
            0 => String::new(),
            cached => format!(" ({} cached)", grouped(cached)),
        };
        self.fact("Tokens in", &format!("{}{cached}", grouped(usage.input_tokens)));
        self.fact("Tokens out", &grouped(usage.output_tokens));
        self.fact("Cost", &money(usage.cost_usd));
        if let Some(principal) = &trace.owner.principal {
            self.fact("Principal", principal);
        }
        if let Some(tenant) = &trace.owner.tenant {
            self.fact("Tenant", tenant);
        }
        if *trace.personality != *"default" {
            self.fact("Personality", &trace.personality);
        }
        if let Some(name) = &trace.session_name {
            self.fact("Session", name);
        }
        put!(self, "</dl>\n");
    }

    fn fact(&mut self, name: &str, value: &str) {
        put!(self, "<div><dt>{name}</dt><dd>{}</dd></div>\n", esc(value));
    }

    /// One bar for each request and call, by time.
    fn timeline(&mut self, trace: &Trace) {
        let end = |at: u64, took: Option<u64>| at.saturating_add(took.unwrap_or_default());
        let requests = |i: &TracedIteration| {
            let ends =
                i.requests.iter().map(|r| end(r.at_ms, r.response.as_ref().map(|r| r.duration_ms)));
            ends.max().unwrap_or_default()
        };
        let calls = |i: &TracedIteration| {
            let ends = i.calls.iter().map(|c| end(c.at_ms, c.end.as_ref().map(|e| e.duration_ms)));
            ends.max().unwrap_or_default()
        };
        let whole = trace.iterations.iter().map(|i| requests(i).max(calls(i))).max();
        let whole = whole.unwrap_or_default().max(1);
        let bars: usize = trace.iterations.iter().map(|i| i.requests.len() + i.calls.len()).sum();
        if bars == 0 {
            return;
        }
        put!(
            self,
            "<details class=\"timeline\"{}><summary>Timeline: {}, {} in all</summary><div class=\"inside\">\n",
            if bars <= 24 { " open" } else { "" },
            count(bars, "step"),
            took(whole)
        );
        for (at, iteration) in trace.iterations.iter().enumerate() {
            for request in &iteration.requests {
                let failed = request.response.as_ref().is_none_or(|r| r.error.is_some());
                let took = request.response.as_ref().map(|response| response.duration_ms);
                let class = if failed { "failed" } else { "model" };
                self.bar(&format!("i{at}"), "model", class, (request.at_ms, took), whole);
            }
            for (number, call) in iteration.calls.iter().enumerate() {
                let took = call.end.as_ref().map(|end| end.duration_ms);
                let class = if outcome(call) == "ok" { "call" } else { "failed" };
                self.bar(&format!("i{at}c{number}"), &call.tool, class, (call.at_ms, took), whole);
            }
        }
        put!(self, "</div></details>\n");
    }

    fn bar(&mut self, target: &str, label: &str, class: &str, of: (u64, Option<u64>), whole: u64) {
        let (at, duration) = of;
        let x = (at.saturating_mul(BAR) / whole).min(BAR - 6);
        let width = (duration.unwrap_or_default().saturating_mul(BAR) / whole).max(6).min(BAR - x);
        let time = duration.map_or_else(|| "no end".to_owned(), took);
        put!(
            self,
            "<a href=\"#{target}\"><span class=\"label\">{}</span>\
             <svg viewBox=\"0 0 {BAR} 12\" preserveAspectRatio=\"none\" aria-hidden=\"true\" focusable=\"false\">\
             <rect class=\"track\" y=\"5\" width=\"{BAR}\" height=\"2\"/>\
             <rect class=\"{class}\" x=\"{x}\" width=\"{width}\" height=\"12\"/></svg>\
             <span class=\"time\">{time}</span></a>\n",
            esc(&text::beginning(label, 80))
        );
    }

    fn iteration(&mut self, at: usize, iteration: &TracedIteration) {
        let title = match iteration.number {
            Some(number) => format!("Iteration {number}"),
            None => "Wrap-up".to_owned(),
        };
        put!(
            self,
            "<section class=\"iteration\" id=\"i{at}\" aria-labelledby=\"i{at}h\">\n<div class=\"head\">\
             <h2 id=\"i{at}h\">{title}</h2><span class=\"soft\">after {}</span></div>\n",
            took(iteration.at_ms)
        );
        if let Some(menu) = &iteration.menu {
            self.menu(menu);
        }
        for request in &iteration.requests {
            self.request(request);
        }
        if !iteration.text.is_empty() && !iteration.calls.is_empty() {
            self.said(&iteration.text);
        }
        for (number, call) in iteration.calls.iter().enumerate() {
            self.call(&format!("i{at}c{number}"), call);
        }
        self.notes(&iteration.notes);
        put!(self, "</section>\n");
    }

    fn menu(&mut self, menu: &TracedMenu) {
        let short: String = menu.fingerprint.chars().take(8).collect();
        let deferred = match menu.deferred {
            0 => String::new(),
            deferred => format!(", {deferred} deferred"),
        };
        let facts = format!(
            "{} offered{deferred}, {} withheld",
            count(menu.tools.len(), "tool"),
            menu.withheld
        );
        if !menu.changed {
            put!(
                self,
                "<p class=\"soft\">Menu <code>{}</code> as before: {facts}</p>\n",
                esc(&short)
            );
            return;
        }
        put!(
            self,
            "<details><summary><span class=\"row\"><span class=\"name\">Menu</span><span>{facts}</span>\
             <code class=\"soft\">{}</code></span></summary><div class=\"inside\">\n<h3>Offered</h3>\n\
             <ul class=\"plain names\">",
            esc(&short)
        );
        let shown = self.rows * 4;
        for (at, tool) in menu.tools.iter().take(shown).enumerate() {
            let origin = menu
                .origins
                .get(at)
                .map(|origin| format!(" <span class=\"soft\">{}</span>", esc(origin)));
            put!(self, "<li><code>{}</code>{}</li>", esc(tool), origin.unwrap_or_default());
        }
        put!(self, "</ul>\n");
        self.more(menu.tools.len().saturating_sub(shown));
        if menu.withheld > 0 {
            put!(
                self,
                "<h3>Withheld</h3>\n<table class=\"withheld\"><thead><tr><th scope=\"col\">Tools</th>\
                 <th scope=\"col\">By</th><th scope=\"col\">Reason</th></tr></thead><tbody>\n"
            );
            let groups = menu.withheld_by_reason();
            let mut left = self.rows;
            let mut listed = 0;
            for (by, reason, names) in &groups {
                let names = names.get(..names.len().min(left)).unwrap_or_default();
                if names.is_empty() {
                    break;
                }
                left -= names.len();
                listed += names.len();
                put!(self, "<tr><td>");
                for (at, name) in names.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    put!(self, "{comma}<code>{}</code>", esc(&text::beginning(name, 128)));
                }
                let reason = text::beginning(reason, 300);
                put!(self, "</td><td>{}</td><td>{}</td></tr>\n", esc(by), esc(&reason));
            }
            put!(self, "</tbody></table>\n");
            self.more(menu.withheld.saturating_sub(listed));
        }
        put!(self, "</div></details>\n");
    }

    fn more(&mut self, missing: usize) {
        if missing > 0 {
            put!(self, "<p class=\"soft\">{} more</p>\n", grouped(missing as u64));
        }
    }

    fn request(&mut self, request: &TracedRequest) {
        let sent = format!(
            "{} and {}, {}",
            count(usize::try_from(request.messages).unwrap_or(usize::MAX), "message"),
            count(usize::try_from(request.tools).unwrap_or(usize::MAX), "tool"),
            bytes(request.request_bytes)
        );
        put!(
            self,
            "<p><strong>{}</strong> <span class=\"soft\">received</span> {sent}; ",
            esc(&text::beginning(&request.model, 128))
        );
        match &request.response {
            None => put!(self, "<span class=\"bad\">no response</span>"),
            Some(response) => {
                let took = took(response.duration_ms);
                match &response.error {
                    Some(error) => {
                        put!(self, "<span class=\"bad\">failed</span> after {took}: ");
                        self.text(error);
                    }
                    None => {
                        put!(
                            self,
                            "<span class=\"soft\">sent</span> {} in {took}",
                            bytes(response.bytes)
                        );
                    }
                }
                if let Some(first) = response.first_ms {
                    put!(
                        self,
                        " <span class=\"soft\">(first piece after {})</span>",
                        super::trace::took(first)
                    );
                }
                put!(self, "; {}", esc(&spent(&response.usage)));
            }
        }
        put!(self, "</p>\n");
    }

    fn call(&mut self, id: &str, call: &TracedCall) {
        let outcome = outcome(call);
        let class = if outcome == "ok" { "good" } else { "bad" };
        let arguments = call.arguments.as_ref().map(written).unwrap_or_default();
        let duration = call.end.as_ref().map(|end| took(end.duration_ms));
        put!(
            self,
            "<details id=\"{id}\"><summary><span class=\"row\"><code class=\"name\">{}</code>\
             <code class=\"args\">{}</code><span class=\"status {class}\">{}</span>\
             <span class=\"soft\">{}</span></span></summary><div class=\"inside\">\n",
            esc(&text::beginning(&call.tool, 128)),
            esc(&text::beginning(&arguments, 160)),
            esc(outcome),
            duration.unwrap_or_default()
        );
        put!(self, "<p class=\"soft\">");
        match call.read_only {
            Some(true) => put!(self, "Declared to change nothing."),
            Some(false) => put!(self, "May change something."),
            None => put!(self, "Not made."),
        }
        if let Some(called) = &call.called {
            put!(self, " Called through <code>{}</code>.", esc(called));
        }
        if let Some(origin) = &call.origin {
            put!(self, " From <code>{}</code>.", esc(origin));
        }
        if call.untrusted {
            put!(self, " The result is untrusted.");
        }
        put!(self, "</p>\n");
        self.titled("Arguments", &arguments);
        if let Some(ran) = &call.ran_with {
            self.titled("Arguments that ran", &ran.to_string());
        }
        if !call.policy.is_empty() {
            put!(self, "<h3>Policy</h3>\n<ul class=\"plain\">");
            for decision in &call.policy {
                put!(
                    self,
                    "<li>{}: <strong>{}</strong> <span class=\"soft\">by {}</span></li>",
                    esc(&text::beginning(&decision.rule, 200)),
                    esc(&decision.effect),
                    esc(&decision.stage)
                );
            }
            put!(self, "</ul>\n");
        }
        self.notes(&call.notes);
        if let Some(end) = &call.end {
            self.stages(end);
            if let Some(cost) = end.cost_usd {
                put!(self, "<p>Cost: {}</p>\n", money(Some(cost)));
            }
            if let Some(cause) = &end.cause {
                self.titled("Cause, for the operator", cause);
            }
        }
        if let Some(result) = &call.result {
            self.titled("Result, as the model read it", &without_fence(result));
        }
        put!(self, "</div></details>\n");
    }

    /// The size of the text after each stage.
    fn stages(&mut self, end: &TracedEnd) {
        let sizes = end.stages.iter().map(|stage| stage.bytes);
        let largest = sizes.chain([end.produced_bytes]).max().unwrap_or_default().max(1);
        put!(
            self,
            "<table class=\"stages\"><caption>Size of the text, by the stages that changed it</caption>\
             <thead><tr><th scope=\"col\">Stage</th><th scope=\"col\" class=\"number\">Bytes</th>\
             <th scope=\"col\">Share</th></tr></thead><tbody>\n"
        );
        let first = ("produced", end.produced_bytes);
        let stages = end.stages.iter().map(|stage| (stage.stage.as_str(), stage.bytes));
        for (stage, size) in [first].into_iter().chain(stages) {
            let width = size.saturating_mul(BAR) / largest;
            put!(
                self,
                "<tr><td>{}</td><td class=\"number\">{}</td><td><svg viewBox=\"0 0 {BAR} 10\" \
                 preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}%\">\
                 <rect class=\"call\" width=\"{width}\" height=\"10\"/></svg></td></tr>\n",
                esc(stage),
                grouped(size),
                size.saturating_mul(100) / largest
            );
        }
        put!(self, "</tbody></table>\n");
    }

    fn notes(&mut self, notes: &[Note]) {
        let mut news = notes.iter().filter(|note| note.is_news()).peekable();
        if news.peek().is_none() {
            return;
        }
        put!(self, "<h3>Events</h3>\n<ul class=\"plain notes\">");
        for note in news.by_ref().take(MAX_NOTES) {
            put!(
                self,
                "<li><code>{}</code> <span class=\"soft\">after {}</span> ",
                esc(&note.name),
                took(note.at_ms)
            );
            self.text(&note.words());
            put!(self, "</li>\n");
        }
        let more = news.count();
        put!(self, "</ul>\n");
        self.more(more);
    }

    fn titled(&mut self, title: &str, text: &str) {
        put!(self, "<h3>{title}</h3>\n");
        self.pre(text);
    }

    fn pre(&mut self, text: &str) {
        put!(self, "<pre>");
        self.text(text);
        put!(self, "</pre>\n");
    }

    fn said(&mut self, text: &str) {
        put!(self, "<div class=\"said\">");
        self.text(text);
        put!(self, "</div>\n");
    }

    /// A text within its share of the page.
    fn text(&mut self, text: &str) {
        let html = self.budget.spend(text);
        self.html.push_str(&html);
    }
}
