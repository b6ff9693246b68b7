//! `args` of a `[[policy]]`: conditions on the arguments of a call.

use std::sync::Arc;

use serde_json::{Number, Value as Json};
use toolcrib_config::{Diagnostic, Located, Table, Value};
use toolcrib_core::ArgumentMatch;

/// One condition.
#[derive(Debug)]
pub(crate) struct ArgumentSection {
    /// The JSON pointer as written.
    pub(crate) pointer: Located<Arc<str>>,
    pub(crate) condition: ArgumentMatch,
}

impl ArgumentSection {
    /// Reads the table. An invalid condition is recorded and left out.
    pub(crate) fn read_all(rule: &Table<'_>) -> Vec<Self> {
        let Some(value) = rule.value("args") else { return Vec::new() };
        let Some(table) = value.entries("`args`") else { return Vec::new() };
        let conditions: Vec<_> = table.rest().collect();
        if conditions.is_empty() {
            value.refuse(
                "`args` is empty",
                "write for example \"/path\" = { starts_with = \"/etc\" }",
            );
        }
        conditions.into_iter().filter_map(|(pointer, value)| Self::read(pointer, &value)).collect()
    }

    fn read(pointer: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        let condition = match ArgumentMatch::at(Arc::clone(&pointer.value)) {
            Ok(condition) => condition,
            Err(error) => {
                let name = pointer.value.trim_start_matches('/');
                let is_name = !name.is_empty() && !name.contains(['~', '/', '.']);
                let help = is_name.then(|| format!("did you mean \"/{}\"?", name.escape_debug()));
                let problem = Diagnostic::error(&pointer.at, error.to_string()).help(help);
                value.problems().push(problem);
                return None;
            }
        };
        if !value.is_table() {
            let help = "write { equals = … }, or another of the tests one_of, matches, starts_with, \
                        exists, less_than, greater_than";
            value.refuse("unknown test of an argument", help);
            return None;
        }
        let what = format!("the test of `{}`", pointer.value.escape_debug());
        let condition = value.table(&what, |table| tested(condition, value, table))??;
        Some(Self { pointer, condition })
    }
}

/// The condition with its tests.
fn tested(
    mut condition: ArgumentMatch,
    value: &Value<'_>,
    table: &Table<'_>,
) -> Option<ArgumentMatch> {
    const TESTS: [&str; 7] =
        ["equals", "one_of", "matches", "starts_with", "exists", "less_than", "greater_than"];
    let given = TESTS.iter().filter(|test| table.has(test)).count();
    if let Some(wanted) = table.value("equals") {
        condition = condition.equals(wanted.json()?);
    }
    if let Some(wanted) = table.value("one_of") {
        let items = wanted.items()?;
        if items.is_empty() {
            wanted.refuse("`one_of` is an empty list", "write at least one value in it");
            return None;
        }
        let items: Option<Vec<Json>> = items.iter().map(Value::json).collect();
        condition = condition.one_of(items?);
    }
    if let Some(pattern) = table.value("matches") {
        condition = match condition.matches(&pattern.text()?.value) {
            Ok(condition) => condition,
            Err(error) => {
                pattern.refuse(error.to_string(), None);
                return None;
            }
        };
    }
    if let Some(start) = table.value("starts_with") {
        condition = condition.starts_with(start.text()?.value);
    }
    if let Some(exists) = table.value("exists") {
        let exists = exists.boolean()?;
        if !exists.value && given > 1 {
            value.refuse(
                "an absent argument cannot pass another test",
                "write `exists = false` alone, in a separate rule",
            );
            return None;
        }
        condition = condition.exists(exists.value);
    }
    if let Some(bound) = table.value("less_than") {
        condition = condition.less_than(number(&bound)?);
    }
    if let Some(bound) = table.value("greater_than") {
        condition = condition.greater_than(number(&bound)?);
    }
    if given == 0 {
        value.refuse("the condition contains no test", "write for example { exists = true }");
        return None;
    }
    Some(condition)
}

fn number(value: &Value<'_>) -> Option<Number> {
    match value.json()? {
        Json::Number(number) => Some(number),
        _ => {
            value.refuse(format!("`{}` must be a number", value.key()), None);
            None
        }
    }
}
