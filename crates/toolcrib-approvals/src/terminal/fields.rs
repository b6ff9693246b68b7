//! A call's arguments as lines for a person: everything, the most important first.

use std::{fmt::Write as _, sync::Arc};

use serde_json::Value;
use toolcrib_core::{__internal::marked, ArgumentPart, StoredArguments};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Words of names, by the importance of their values.
const AMOUNTS: &[&str] = &[
    "amount", "amounts", "cents", "cost", "count", "currency", "discount", "euro", "euros", "fee",
    "limit", "percent", "price", "quantity", "qty", "rate", "salary", "sum", "total", "units",
    "usd", "eur", "value",
];
const IDS: &[&str] = &[
    "account",
    "bic",
    "card",
    "code",
    "customer",
    "iban",
    "id",
    "ids",
    "invoice",
    "key",
    "number",
    "order",
    "ref",
    "reference",
    "sku",
    "user",
    "uuid",
];
const ADDRESSES: &[&str] = &[
    "address",
    "addresses",
    "bcc",
    "branch",
    "bucket",
    "cc",
    "channel",
    "command",
    "destination",
    "dir",
    "directory",
    "domain",
    "email",
    "file",
    "folder",
    "from",
    "host",
    "ip",
    "mail",
    "path",
    "phone",
    "port",
    "recipient",
    "recipients",
    "repo",
    "server",
    "source",
    "target",
    "to",
    "topic",
    "url",
    "uri",
];

/// The width of the column of names. A longer name gets its own line.
const NAMES: usize = 16;

/// A leaf of the arguments.
struct Field {
    path: String,
    importance: usize,
    value: String,
    note: String,
}

/// The arguments in full, one line or more for each value, indented. Amounts come first, then ids,
/// addresses, and the rest, each in the order of the call. Invisible, bidirectional and control
/// characters are written as `\u{…}`. A line is at most `width` columns wide, from 26 columns on.
pub fn shown_arguments(arguments: &StoredArguments, width: usize) -> String {
    shown_without(arguments, &[], width)
}

/// The same without some arguments, which are shown otherwise.
pub(super) fn shown_without(
    arguments: &StoredArguments,
    without: &[Arc<str>],
    width: usize,
) -> String {
    let mut rest = arguments.clone();
    if let Value::Object(entries) = &mut rest.value {
        entries.retain(|name, _| without.iter().all(|other| **other != **name));
    }
    let arguments = &rest;
    let mut fields = Vec::new();
    collect(&arguments.value, &mut String::new(), "", &mut String::new(), arguments, &mut fields);
    fields.sort_by_key(|field| field.importance);
    let widest = fields.iter().map(|field| field.path.width());
    let column = widest.filter(|length| *length <= NAMES).max().unwrap_or_default();
    let mut lines = String::new();
    if fields.is_empty() {
        lines.push_str("    (none)\n");
    }
    for Field { path, value, note, .. } in fields {
        let length = path.width();
        let own_line = length > column;
        let room = width.saturating_sub(4 + 2 + if own_line { 0 } else { column }).max(20);
        let mut rows = value.split('\n').flat_map(|line| cut(line, room));
        if own_line {
            cut(&path, width.saturating_sub(4).max(20)).iter().for_each(|row| {
                let _ = writeln!(lines, "    {row}");
            });
        } else {
            let first = rows.next().unwrap_or_default();
            let _ = writeln!(lines, "    {path}{}  {first}", " ".repeat(column - length));
        }
        let indent = if own_line { 4 } else { 4 + column };
        for row in rows {
            let _ = writeln!(lines, "{}│ {row}", " ".repeat(indent));
        }
        if !note.is_empty() {
            for row in cut(&format!("({note})"), room) {
                let _ = writeln!(lines, "{}  {row}", " ".repeat(indent));
            }
        }
    }
    lines
}

/// Collects the leaves. Recursive: data that nests too deep is rejected earlier.
fn collect(
    value: &Value,
    path: &mut String,
    name: &str,
    pointer: &mut String,
    arguments: &StoredArguments,
    fields: &mut Vec<Field>,
) {
    let lengths = (path.len(), pointer.len());
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                if is_plain(key) {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.push_str(key);
                } else {
                    let _ = write!(path, "[{}]", quoted(key));
                }
                let _ = write!(pointer, "/{}", key.replace('~', "~0").replace('/', "~1"));
                collect(value, path, key, pointer, arguments, fields);
                path.truncate(lengths.0);
                pointer.truncate(lengths.1);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                let _ = write!(path, "[{at}]");
                let _ = write!(pointer, "/{at}");
                collect(item, path, name, pointer, arguments, fields);
                path.truncate(lengths.0);
                pointer.truncate(lengths.1);
            }
        }
        Value::Object(_) if path.is_empty() => {}
        leaf => {
            let secrets = arguments.secrets.iter().filter(|one| *one.pointer == **pointer);
            let secrets: Vec<_> = secrets.map(|secret| quoted(&secret.name)).collect();
            fields.push(Field {
                path: if path.is_empty() { "(arguments)".to_owned() } else { path.clone() },
                importance: importance(name),
                value: match leaf {
                    Value::String(text) if text.contains('\n') => {
                        multiline(text, &arguments.parts(text, pointer))
                    }
                    Value::String(text) => in_parts(&arguments.parts(text, pointer)),
                    other => other.to_string(),
                },
                note: match secrets.as_slice() {
                    [] => String::new(),
                    names => format!("with the present value of the secret {}", names.join(", ")),
                },
            });
        }
    }
}

/// 0 for the most important.
fn importance(name: &str) -> usize {
    let mut spaced = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        // `orderId` is the words `order` and `id`.
        if c.is_uppercase() {
            spaced.push(' ');
        }
        spaced.extend(c.to_lowercase());
    }
    let words: Vec<_> = spaced.split(|c: char| !c.is_alphanumeric()).collect();
    let groups = [AMOUNTS, IDS, ADDRESSES];
    let found = groups.iter().position(|group| words.iter().any(|word| group.contains(word)));
    found.unwrap_or(groups.len())
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// A text in quotes, with all that a reader cannot see made visible.
fn quoted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push('"');
    visible(text, &mut shown, true);
    shown.push('"');
    shown
}

/// The parts of a text, in quotes; a secret is outside of quotes, where no text of a model is.
fn in_parts(parts: &[ArgumentPart<'_>]) -> String {
    let shown: Vec<_> = parts
        .iter()
        .map(|part| match part {
            ArgumentPart::Text(text) => quoted(text),
            ArgumentPart::Secret(name) => format!("[secret {}]", quoted(name)),
        })
        .collect();
    shown.join(" ")
}

/// A text of several lines, each as it is, so that programs and messages can be read. A secret begins
/// with a single backslash, which is doubled in a text.
fn multiline(text: &str, parts: &[ArgumentPart<'_>]) -> String {
    let mut shown = format!("(text of {} lines)\n", text.split('\n').count());
    for part in parts {
        match part {
            ArgumentPart::Text(text) => visible(text, &mut shown, false),
            ArgumentPart::Secret(name) => {
                let _ = write!(shown, "\\[secret {}]", quoted(name));
            }
        }
    }
    shown
}

pub(super) fn visible(text: &str, shown: &mut String, is_quoted: bool) {
    for (c, is_hidden) in marked(text) {
        match c {
            '\n' if is_quoted => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '"' | '\\' if is_quoted => shown.extend(['\\', c]),
            // A backslash before a letter must not look like one of our escapes.
            '\\' => shown.push_str("\\\\"),
            c if is_hidden || is_odd_space(c) => {
                let _ = write!(shown, "{}", c.escape_unicode());
            }
            c => shown.push(c),
        }
    }
}

/// A space that looks like another character, or like nothing.
fn is_odd_space(c: char) -> bool {
    c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t')
}

/// A line in parts of at most `room` columns; at least one. Joined, they are the line: it is cut
/// after a space, which stays, or within a long word.
pub(super) fn cut(line: &str, room: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut filled = 0;
    for c in line.chars() {
        let columns = c.width().unwrap_or_default();
        let Some(row) = rows.last_mut() else { break };
        if filled + columns <= room {
            row.push(c);
            filled += columns;
            continue;
        }
        let after_space = row.rfind(' ').map_or(row.len(), |space| space + 1);
        let mut next = match after_space * 2 > row.len() {
            true => row.split_off(after_space),
            false => String::new(),
        };
        next.push(c);
        filled = next.width();
        rows.push(next);
    }
    rows
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use serde_json::json;
    use toolcrib_core::__internal::is_hidden;

    use super::*;

    fn shown(args: Value) -> String {
        shown_arguments(&StoredArguments::new(args, Vec::new()), 48)
    }

    #[test]
    fn the_important_comes_first_and_nothing_is_hidden_or_left_out() {
        assert_snapshot!(shown(json!({
            "note": "please \u{202e}now\u{200b} pay\u{a0}all of it, to the last cent, today",
            "recipients": ["ann@example.org", "b\u{e9}n@example.org"],
            "orderId": 1042,
            "body": "Dear Ann,\n\u{1b}[2J  thanks \\n\tBen",
            "lines": [{ "unit_price": 12.5, "text": "a" }],
            "a_name_that_is_much_too_long_for_it": true,
            "x\ny": null,
            "none": [],
        })), @r#"
            lines[0].unit_price
            │ 12.5
            orderId        1042
            recipients[0]  "ann@example.org"
            recipients[1]  "bén@example.org"
            note           "please \u{202e}now\u{200b} 
                         │ pay\u{a0}all of it, to the 
                         │ last cent, today"
            body           (text of 2 lines)
                         │ Dear Ann,
                         │ \u{1b}[2J  thanks \\n\tBen
            lines[0].text  "a"
            a_name_that_is_much_too_long_for_it
            │ true
            ["x\ny"]       null
            none           []
        "#);
        assert_snapshot!(shown(json!({})), @"    (none)");
    }

    proptest! {
        /// No value can leave its lines, hide a character, or look like another value.
        #[test]
        fn texts_stay_within_their_lines(text in "\\PC*|[\\x00-\\x20\\u{202a}-\\u{202e}\\u{200b}a-c\\\\\"]{0,60}") {
            let lines = shown(json!({ "text": text }));
            for line in lines.lines() {
                prop_assert!(line.width() <= 48 && line.starts_with("    "), "{line}");
                let mut last = None;
                for c in line.chars() {
                    prop_assert!(!is_hidden(last, c, None) || last.is_some_and(|l| !l.is_ascii()), "{line}");
                    last = Some(c);
                }
            }
        }
    }
}
