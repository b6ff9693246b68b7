//! From a script's text to its rules.

mod answer;
mod condition;

use std::time::Duration;

use regex::Regex;
use toml::de::DeTable;

use self::answer::Answers;
use super::{
    problem::{Help, Problems, ScriptErrors},
    reader::{At, Table},
    rule::Rule,
    template::{Templates, VARIABLES},
};

/// The rules of a script, or everything that is wrong with it.
pub(super) fn rules(text: &str, templates: &Templates) -> Result<Vec<Rule>, ScriptErrors> {
    let problems = Problems::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // What could be parsed of a broken text is not what its author meant.
        for error in &errors {
            problems.add(&error.span().unwrap_or(0..0), error.message(), Help::NONE);
        }
        return problems.finish(Vec::new());
    }
    let mut script = Table::new("a script", 0..0, document.get_ref(), &problems);
    let rules: Vec<_> = script
        .tables("rule", "a rule")
        .into_iter()
        .enumerate()
        .map(|(position, table)| rule(table, position + 1, templates))
        .collect();
    if rules.is_empty() && problems.is_empty() {
        script.problem("the script has no rule", "write at least one `[[rule]]`");
    }
    script.finish();
    problems.finish(rules)
}

fn rule(mut table: Table<'_>, number: usize, templates: &Templates) -> Rule {
    let label = match table.string("name") {
        Some(name) => format!("rule {:?}", name.value),
        None => format!("rule {number}"),
    };
    let user = user_pattern(&mut table);
    let captures = match &user {
        Some(pattern) => Some(
            pattern
                .capture_names()
                .flatten()
                .map(str::to_owned)
                .collect(),
        ),
        // A pattern that is wrong has names that nobody knows.
        None => (!table.has("user")).then(Vec::new),
    };
    let answers = Answers {
        problems: table.problems(),
        templates,
        captures,
    };
    let rule = Rule {
        label,
        line: table.line(),
        user,
        offered: table.strings("offered"),
        not_offered: table.strings("not_offered"),
        called: table.strings("called"),
        not_called: table.strings("not_called"),
        tools_allowed: table.boolean("tools_allowed"),
        when: table
            .tables("when", "a condition")
            .into_iter()
            .filter_map(condition::read)
            .collect(),
        delay: Duration::from_millis(table.count("delay_ms").unwrap_or(0)),
        text: table
            .string("text")
            .and_then(|text| answers.text("text", &text)),
        calls: answers.calls(&mut table),
        usage: answer::usage(&mut table),
    };
    if !table.has("text") && rule.calls.is_empty() {
        table.problem(
            "the rule answers nothing",
            "give it `text`, `calls` or both",
        );
    }
    table.finish();
    rule
}

fn user_pattern(table: &mut Table<'_>) -> Option<Regex> {
    let source = table.string("user")?;
    let pattern = regex("user", &source, table.problems())?;
    for name in pattern
        .capture_names()
        .flatten()
        .filter(|name| VARIABLES.contains(name))
    {
        table.problems().add(
            &source.at,
            format!("the capture `{name}` hides the variable `{name}`"),
            "give the capture another name".into(),
        );
    }
    Some(pattern)
}

fn regex(key: &str, source: &At<&str>, problems: &Problems<'_>) -> Option<Regex> {
    Regex::new(source.value)
        .inspect_err(|error| {
            // The crate's text draws the pattern over several lines; the reason stands last.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            let message = format!("`{key}` is not a regular expression: {reason}");
            let help = "the syntax is that of https://docs.rs/regex; write patterns in '…', where \
                        TOML leaves backslashes alone";
            problems.add(&source.at, message, help.into());
        })
        .ok()
}
