//! Parses a script's text into rules.

mod answer;
mod condition;
mod user;

use std::{sync::Arc, time::Duration};

use regex::Regex;
use toolcrib_config::{Diagnostic, Diagnostics, Document, Located, Problems, Table};

use self::{answer::Answers, user::User};
use super::{rule::Rule, template::Templates};

/// The rules of a script, or all of its problems. `name` is the script's name in problems.
pub(super) fn rules(
    name: &str,
    text: &str,
    templates: &Templates,
) -> Result<Vec<Rule>, Diagnostics> {
    let problems = Problems::new(name);
    let rules = Document::new(name, text).read(&problems, |script| {
        let mut number = 0;
        let rules = script.tables("rule", |table| {
            number += 1;
            rule(table, number, templates)
        });
        if rules.is_empty() && !problems.has_errors() {
            script.refuse("the script has no rule", "write at least one `[[rule]]`");
        }
        rules
    });
    match rules {
        Some(rules) if !problems.has_errors() => Ok(rules),
        _ => Err(problems.into_diagnostics()),
    }
}

fn rule(table: &Table<'_>, number: usize, templates: &Templates) -> Rule {
    let label = match table.text("name") {
        Some(name) => format!("rule {:?}", name.value),
        None => format!("rule {number}"),
    };
    let User { patterns, differ, captures } = user::read(table);
    let answers = Answers { templates, captures };
    let text = table.value("text");
    let rule = Rule {
        label,
        line: table.at().line,
        user: patterns,
        differ,
        step: table.integer("step", 1..),
        offered: names(table, "offered"),
        not_offered: names(table, "not_offered"),
        called: names(table, "called"),
        not_called: names(table, "not_called"),
        tools_allowed: table.boolean("tools_allowed"),
        when: table
            .value("when")
            .map(|when| when.tables("a condition", condition::read))
            .unwrap_or_default()
            .into_iter()
            .flatten()
            .collect(),
        delay: Duration::from_millis(table.integer("delay_ms", 0..).unwrap_or(0)),
        text: text.as_ref().and_then(|text| answers.text("text", text)),
        calls: answers.calls(table),
        usage: answer::usage(table),
    };
    if text.is_none() && rule.calls.is_empty() {
        table.refuse("the rule has no answer", "give it `text`, `calls` or both");
    }
    rule
}

fn names(table: &Table<'_>, key: &'static str) -> Vec<Arc<str>> {
    table.texts(key).into_iter().map(|name| name.value).collect()
}

fn regex(key: &str, source: &Located<Arc<str>>, problems: &Problems) -> Option<Regex> {
    Regex::new(&source.value)
        .inspect_err(|error| {
            // The crate's text draws the pattern over several lines; the reason comes last.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            let message = format!("`{key}` is not a regular expression: {reason}");
            let help = "the syntax is that of https://docs.rs/regex; write patterns in '…', where \
                        TOML does not change backslashes";
            problems.push(Diagnostic::error(&source.at, message).help(help));
        })
        .ok()
}
