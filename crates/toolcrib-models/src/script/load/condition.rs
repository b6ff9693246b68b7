//! Reading the conditions of `when`.

use super::{
    super::{
        reader::{At, Names, Table},
        rule::{Check, Condition},
    },
    regex,
};

const CHECKS: [&str; 7] = [
    "exists",
    "equals",
    "matches",
    "contains",
    "min_items",
    "max_items",
    "is_error",
];

pub(super) fn read(mut table: Table<'_>) -> Option<Condition> {
    let tool = table.string("result").map(|tool| tool.value.to_owned());
    if !table.has("result") {
        table.problem(
            "the condition has no `result`",
            "name the tool whose last result is meant",
        );
    }
    let pointer = table
        .string("pointer")
        .and_then(|pointer| checked_pointer(&pointer, &table));
    let check = check(&mut table);
    table.finish();
    Some(Condition {
        tool: tool?,
        pointer,
        check: check?,
    })
}

fn check(table: &mut Table<'_>) -> Option<Check> {
    let written: Vec<_> = CHECKS.into_iter().filter(|key| table.has(key)).collect();
    let help = || format!("a condition has exactly one of {}", Names(&CHECKS));
    match written.as_slice() {
        [_] => {}
        [] => table.problem("the condition asks nothing", help()),
        several => table.problem(
            format!(
                "the condition asks several things at once: {}",
                Names(several)
            ),
            format!("{}; write one condition for each", help()),
        ),
    }
    match (table.has("pointer"), written.as_slice()) {
        (false, ["exists"]) => table.problem(
            "`exists` needs a `pointer`",
            "to ask whether the tool has a result at all, use the rule's `called` or `not_called`",
        ),
        (true, ["is_error"]) => table.problem(
            "`is_error` is about the result as a whole",
            "leave the `pointer` out",
        ),
        _ => {}
    }
    // Every getter is asked, so that wrong values and unknown keys are found all at once.
    let exists = table.boolean("exists").map(Check::Exists);
    let equals = table.json("equals").map(Check::Equals);
    let matches = table.string("matches");
    let matches = matches.and_then(|source| regex("matches", &source, table.problems()));
    let contains = table
        .string("contains")
        .map(|part| Check::Contains(part.value.to_owned()));
    let min_items = table.count("min_items").map(Check::MinItems);
    let max_items = table.count("max_items").map(Check::MaxItems);
    let is_error = table.boolean("is_error").map(Check::IsError);
    exists
        .or(equals)
        .or(matches.map(Check::Matches))
        .or(contains)
        .or(min_items)
        .or(max_items)
        .or(is_error)
}

fn checked_pointer(pointer: &At<&str>, table: &Table<'_>) -> Option<String> {
    let text = pointer.value;
    let starts_well = text.is_empty() || text.starts_with('/');
    let escapes_well = text
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    if starts_well && escapes_well {
        return Some(text.to_owned());
    }
    let help = "write a `/` before every key and position, as in `/rows/0/amount`; in a key, `~` is \
                `~0` and `/` is `~1`";
    let message = format!("`{}` is not a JSON pointer", text.escape_debug());
    table.problems().add(&pointer.at, message, help.into());
    None
}
