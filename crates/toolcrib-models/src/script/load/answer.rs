//! Reads the answer of a rule.

use toolcrib_config::{Table, Value};

use super::super::{
    rule::{Arg, Call, CallArguments, StatedUsage},
    template::{Template, TemplateProblem, Templates},
};

/// Reads the templates of one rule.
pub(super) struct Answers<'a> {
    pub(super) templates: &'a Templates,
    /// The captures of the rule's patterns, if they are known.
    pub(super) captures: Option<Vec<String>>,
}

impl Answers<'_> {
    /// A template that renders to text. `field` is its key in the rule.
    pub(super) fn text(&self, field: &str, value: &Value<'_>) -> Option<Template> {
        let source = value.any_text()?.value;
        checked(value, self.templates.text(field, &source, self.captures.as_deref()))
    }

    pub(super) fn calls(&self, rule: &Table<'_>) -> Vec<Call> {
        let mut position = 0;
        let read = |table: &Table<'_>| {
            let call = self.call(&format!("calls[{position}]"), table);
            position += 1;
            call
        };
        rule.value("calls").map(|calls| calls.tables("a call", read)).unwrap_or_default()
    }

    fn call(&self, field: &str, table: &Table<'_>) -> Call {
        let tool = table.required("tool", "\"refund\"").and_then(|tool| tool.text());
        let (args, raw) = (table.value("args"), table.value("raw"));
        if args.is_some() && raw.is_some() {
            table.refuse(
                "the call has both `args` and `raw`",
                "`args` are data, `raw` is text instead; keep one",
            );
        }
        let args = args.and_then(|args| self.table(&format!("{field}.args"), &args));
        let args = CallArguments::Args(args.unwrap_or_else(|| Arg::Table(Vec::new())));
        let raw = raw.and_then(|raw| self.text(&format!("{field}.raw"), &raw));
        Call {
            tool: tool.map(|tool| tool.value.to_string()).unwrap_or_default(),
            even_if_not_offered: table.boolean("even_if_not_offered").unwrap_or(false),
            arguments: raw.map_or(args, CallArguments::Raw),
        }
    }

    fn table(&self, field: &str, value: &Value<'_>) -> Option<Arg> {
        let entries = value.entries("the arguments")?;
        let entries = entries.rest().filter_map(|(key, value)| {
            let key = key.value.to_string();
            let arg = self.arg(&format!("{field}.{key}"), &value)?;
            Some((key, arg))
        });
        Some(Arg::Table(entries.collect()))
    }

    /// A value of `args`; strings in it are templates that keep their value's type.
    fn arg(&self, field: &str, value: &Value<'_>) -> Option<Arg> {
        if value.is_table() {
            return self.table(field, value);
        }
        if value.is_list() {
            let items = value.items()?;
            let items = items.iter().enumerate();
            let items = items.filter_map(|(n, item)| self.arg(&format!("{field}[{n}]"), item));
            return Some(Arg::List(items.collect()));
        }
        if value.is_text() {
            let source = value.any_text()?.value;
            let template = self.templates.value(field, &source, self.captures.as_deref());
            return checked(value, template).map(Arg::Template);
        }
        value.json().map(Arg::Constant)
    }
}

fn checked(source: &Value<'_>, template: Result<Template, TemplateProblem>) -> Option<Template> {
    template.map_err(|problem| source.refuse(problem.message, problem.help)).ok()
}

pub(super) fn usage(rule: &Table<'_>) -> StatedUsage {
    rule.value("usage")
        .and_then(|usage| {
            usage.table("`usage`", |table| StatedUsage {
                input_tokens: table.integer("input_tokens", 0..),
                cached_input_tokens: table.integer("cached_input_tokens", 0..),
                cache_write_tokens: table.integer("cache_write_tokens", 0..),
                output_tokens: table.integer("output_tokens", 0..),
                cost_usd: table.number("cost_usd", 0.0..),
            })
        })
        .unwrap_or_default()
}
