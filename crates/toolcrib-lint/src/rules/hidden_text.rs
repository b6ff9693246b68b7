//! Text that a model reads and a person who reviews the tool does not see.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};
use toolcrib_core::__internal::{marked, padding as runs_of_blanks};

use crate::{
    catalog::LintCatalog,
    report::{Finding, Findings},
    text::{count, folded, quoted},
};

pub(super) fn characters(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        tool.each_text(|path, text| {
            let hidden = hidden(text);
            let Some(first) = hidden.first() else { return };
            let message = format!(
                "{} has {} in its `{path}`: {}; it reads {}",
                tool.shown(),
                count(hidden.len(), "invisible character"),
                named(*first),
                quoted(text)
            );
            let help =
                "remove them; a model reads them, and a reviewer of the tool does not see them";
            findings.push(Finding::error(message, help).of(tool).at(path.to_string()));
        });
    }
}

fn hidden(text: &str) -> Vec<char> {
    let mut hidden = Vec::new();
    let mut chars = marked(text).peekable();
    while let Some((c, is_hidden)) = chars.next() {
        // Windows line ends are not hidden.
        let ends_line = c == '\r' && chars.peek().is_some_and(|(next, _)| *next == '\n');
        if is_hidden && !ends_line {
            hidden.push(c);
        }
    }
    hidden
}

fn named(c: char) -> String {
    let kind = match c {
        '\u{e0000}'..='\u{e007f}' => "the tag block, which spells text that is not shown",
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => {
            "a character that turns the direction of text"
        }
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180f}' => {
            "a variation selector, which can carry data"
        }
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => "a character without width",
        _ if c.is_control() => "a control character",
        _ => "a character that is not shown",
    };
    format!("{} is {kind}", c.escape_unicode())
}

/// Text that is hidden in rendered form, or tags that only a model obeys.
static MARKUP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?P<comment><!--|\[//\]: ?#|\[comment\]: ?[<#])",
        r"|(?P<tag><\ ?/?\ ?(?:important|system|system-reminder|secret|hidden|instructions?|admin|assistant)\ ?>)",
        r"|(?P<template><\|[^<>|]{1,40}\|>|\[/?inst\]|<<sys>>|<(?:start|end)_of_turn>)",
    );
    RegexBuilder::new(pattern).unicode(false).build().ok()
});

pub(super) fn markup(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let Some(markup) = &*MARKUP else { return };
    for tool in catalog.tools() {
        tool.each_text(|path, text| {
            let text = folded(text);
            let Some(found) = markup.captures(text.as_bytes()) else { return };
            let kind = if found.name("comment").is_some() {
                "a comment, which is not shown where the text is rendered"
            } else if found.name("tag").is_some() {
                "a tag that marks text for the model alone"
            } else {
                "a token of a chat template"
            };
            let sign = found.get(0).and_then(|sign| text.get(sign.range())).unwrap_or_default();
            let message = format!("the `{path}` of {} has {kind}: {}", tool.shown(), quoted(sign));
            let help = "use plain visible text, or remove the tool";
            findings.push(Finding::error(message, help).of(tool).at(path.to_string()));
        });
    }
}

pub(super) fn padding(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for tool in catalog.tools() {
        tool.each_text(|path, text| {
            let runs = runs_of_blanks(text);
            let Some(run) = runs.first() else { return };
            let behind = text.get(run.end..).unwrap_or_default();
            let blanks = text.get(run.clone()).map_or(0, |blanks| blanks.chars().count());
            let message = format!(
                "the `{path}` of {} has {blanks} blanks in a row, followed by {}",
                tool.shown(),
                quoted(behind)
            );
            let help = "remove them; they push text out of the visible part of a window";
            findings.push(Finding::error(message, help).of(tool).at(path.to_string()));
        });
    }
}
