//! Reads the conditions of `when`.

use toolcrib_config::{Table, Value, suggest};

use super::{
    super::rule::{Check, Condition, ResultCondition},
    regex,
};

/// Means any tool in `result`; no tool can have it as a name.
const ANY_TOOL: &str = "*";

const CHECKS: [&str; 7] =
    ["exists", "equals", "matches", "contains", "min_items", "max_items", "is_error"];

pub(super) fn read(table: &Table<'_>) -> Option<Condition> {
    let tool = table.required("result", "\"refund\"").and_then(|tool| tool.text());
    let pointer = table.value("pointer");
    let written: Vec<_> = CHECKS.into_iter().filter_map(|key| table.value(key)).collect();
    if tool.as_ref().is_some_and(|tool| *tool.value == *ANY_TOOL) {
        return any_error(table, pointer.as_ref(), &written);
    }
    check_shape(table, pointer.is_some(), &written);
    let pointer = pointer.as_ref().and_then(checked_pointer);
    // All of them are read, so that all wrong values are reported at once.
    let checks: Vec<_> = written.iter().filter_map(check).collect();
    Some(Condition::Result(ResultCondition {
        tool: tool?.value.to_string(),
        pointer,
        check: checks.into_iter().next()?,
    }))
}

fn any_error(
    table: &Table<'_>,
    pointer: Option<&Value<'_>>,
    written: &[Value<'_>],
) -> Option<Condition> {
    let is_error = match (pointer, written) {
        (None, [value]) if value.key() == "is_error" => value.boolean()?.value,
        _ => false,
    };
    if !is_error {
        let help = "`*` is for `is_error = true`; for everything else name the tool";
        table.refuse("a condition on any tool can only check for an error", help);
    }
    is_error.then_some(Condition::AnyError)
}

/// Checks that there is exactly one check, and that it is valid with or without a pointer.
fn check_shape(table: &Table<'_>, has_pointer: bool, written: &[Value<'_>]) {
    let help = || format!("a condition has exactly one of {}", suggest::quoted(CHECKS));
    let written: Vec<_> = written.iter().map(Value::key).collect();
    match written.as_slice() {
        [] => table.refuse("the condition has no check", help()),
        ["exists"] if !has_pointer => table.refuse(
            "`exists` needs a `pointer`",
            "to check whether the tool has a result at all, use the rule's `called` or `not_called`",
        ),
        ["is_error"] if has_pointer => {
            table.refuse("`is_error` is about the result as a whole", "remove the `pointer`");
        }
        [_] => {}
        several => table.refuse(
            format!(
                "the condition has several checks: {}",
                suggest::quoted(several.iter().copied())
            ),
            format!("{}; write one condition for each", help()),
        ),
    }
}

fn check(value: &Value<'_>) -> Option<Check> {
    match value.key() {
        "exists" => value.boolean().map(|exists| Check::Exists(exists.value)),
        "equals" => value.json().map(Check::Equals),
        "matches" => regex("matches", &value.text()?, value.problems()).map(Check::Matches),
        "contains" => value.any_text().map(|part| Check::Contains(part.value.to_string())),
        "min_items" => value.integer(0..).map(|least| Check::MinItems(least.value)),
        "max_items" => value.integer(0..).map(|most| Check::MaxItems(most.value)),
        _ => value.boolean().map(|is_error| Check::IsError(is_error.value)),
    }
}

fn checked_pointer(value: &Value<'_>) -> Option<String> {
    let text = value.any_text()?.value;
    let starts_well = text.is_empty() || text.starts_with('/');
    let escapes_well = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if starts_well && escapes_well {
        return Some(text.to_string());
    }
    let help = "write a `/` before every key and position, as in `/rows/0/amount`; in a key, `~` is \
                `~0` and `/` is `~1`";
    value.refuse(format!("{} is not a JSON pointer", suggest::quoted([&*text])), help);
    None
}
