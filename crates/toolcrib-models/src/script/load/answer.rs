//! Reading what a rule answers.

use toml::{Spanned, de::DeValue};

use super::super::{
    problem::Problems,
    reader::{At, Table, json},
    rule::{Arg, Call, CallArguments, StatedUsage},
    template::{Template, TemplateProblem, Templates},
};

/// Reads the templates of one rule.
pub(super) struct Answers<'a> {
    pub(super) problems: &'a Problems<'a>,
    pub(super) templates: &'a Templates,
    /// The captures of the rule's pattern, where they are known.
    pub(super) captures: Option<Vec<String>>,
}

impl Answers<'_> {
    /// A template that renders to text. `field` is its place in the rule.
    pub(super) fn text(&self, field: &str, source: &At<&str>) -> Option<Template> {
        self.checked(
            source,
            self.templates
                .text(field, source.value, self.captures.as_deref()),
        )
    }

    pub(super) fn calls(&self, rule: &mut Table<'_>) -> Vec<Call> {
        let calls = rule.tables("calls", "a call").into_iter().enumerate();
        calls
            .map(|(position, table)| self.call(&format!("calls[{position}]"), table))
            .collect()
    }

    fn call(&self, field: &str, mut table: Table<'_>) -> Call {
        let tool = table.string("tool").map(|tool| tool.value.to_owned());
        if !table.has("tool") {
            table.problem("the call has no `tool`", "name the tool that is called");
        }
        if table.has("args") && table.has("raw") {
            table.problem(
                "the call has both `args` and `raw`",
                "`args` are data, `raw` is text in their place; keep one",
            );
        }
        let args = table.table("args", "the arguments");
        let args = args
            .iter()
            .flat_map(Table::iter)
            .filter_map(|(key, value)| {
                Some((
                    key.to_owned(),
                    self.arg(&format!("{field}.args.{key}"), value)?,
                ))
            });
        let args = CallArguments::Args(Arg::Table(args.collect()));
        let raw = table
            .string("raw")
            .and_then(|raw| self.text(&format!("{field}.raw"), &raw));
        let even_if_not_offered = table.boolean("even_if_not_offered").unwrap_or(false);
        table.finish();
        Call {
            tool: tool.unwrap_or_default(),
            even_if_not_offered,
            arguments: raw.map_or(args, CallArguments::Raw),
        }
    }

    /// A value of `args`; strings in it are templates that keep their value's type.
    fn arg(&self, field: &str, value: &Spanned<DeValue<'_>>) -> Option<Arg> {
        match value.get_ref() {
            DeValue::String(text) => {
                let source = At {
                    value: text.as_ref(),
                    at: value.span(),
                };
                let captures = self.captures.as_deref();
                let template = self.templates.value(field, source.value, captures);
                self.checked(&source, template).map(Arg::Template)
            }
            DeValue::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.filter_map(|(n, item)| self.arg(&format!("{field}[{n}]"), item));
                Some(Arg::List(items.collect()))
            }
            DeValue::Table(entries) => {
                let entries = entries.iter().filter_map(|(key, value)| {
                    let key: &str = key.get_ref();
                    Some((key.to_owned(), self.arg(&format!("{field}.{key}"), value)?))
                });
                Some(Arg::Table(entries.collect()))
            }
            _ => json(value, self.problems).map(Arg::Constant),
        }
    }

    fn checked(
        &self,
        source: &At<&str>,
        template: Result<Template, TemplateProblem>,
    ) -> Option<Template> {
        match template {
            Ok(template) => Some(template),
            Err(problem) => {
                self.problems
                    .add(&source.at, problem.message, problem.help.into());
                None
            }
        }
    }
}

pub(super) fn usage(rule: &mut Table<'_>) -> StatedUsage {
    let Some(mut table) = rule.table("usage", "the usage") else {
        return StatedUsage::default();
    };
    let usage = StatedUsage {
        input_tokens: table.count("input_tokens"),
        cached_input_tokens: table.count("cached_input_tokens"),
        output_tokens: table.count("output_tokens"),
        cost_usd: table.amount("cost_usd"),
    };
    table.finish();
    usage
}
