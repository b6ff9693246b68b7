//! Keeps a result's data within the cap of its text, counted separately.
//!
//! Data of a tool that declares an output schema is cut in its texts, the longest first, each with
//! the truncation marker, so that it keeps its shape. If that does not suffice, its lists are cut, the
//! longest first. Other data is replaced as a whole, and so is data whose size comes from neither.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

use super::{
    call::chars,
    stored_parts::{Remainder, marker_of},
};
use crate::json::map_texts;

/// Minimum number of characters left of a cut text, beside the marker.
const LEAST: usize = 16;

/// Returns the marker as well if lists were cut, which their data does not show.
pub(super) fn fit(
    data: Value,
    cap: usize,
    has_shape: bool,
    rest: &Remainder,
) -> (Value, Option<String>) {
    let total = json_chars(&data);
    if total <= cap {
        return (data, None);
    }
    if has_shape && let Some(longest) = longest_text(&data, total, cap, rest) {
        let mut leaf = |leaf| match leaf {
            Value::String(text) => Value::String(cut(text, longest, rest)),
            other => other,
        };
        return (map_texts(data, &mut leaf, &mut |key| key), None);
    }
    if has_shape && let Some(items) = longest_list(&data, cap) {
        return (with_lists_of(data, items), Some(marker_of(total, rest)));
    }
    let instead = match rest {
        Remainder::Artifact(id) => json!({ "truncated": true, "chars": total, "artifact": id }),
        Remainder::NotKept(_) => json!({ "truncated": true, "chars": total }),
    };
    // Data no longer than the note that replaces it is kept.
    (if total > json_chars(&instead) { instead } else { data }, None)
}

/// Whether data is the pipe's note for omitted data.
pub fn is_data_note(data: &Value) -> bool {
    data.get("truncated") == Some(&Value::Bool(true))
        && data.as_object().is_some_and(|data| {
            data.len() > 1
                && data.iter().all(|(key, value)| match key.as_str() {
                    "truncated" => true,
                    "chars" => value.is_u64(),
                    "reason" | "artifact" => value.is_string(),
                    _ => false,
                })
        })
}

/// The longest length of a text as JSON that keeps all together within the cap; `None` if no length
/// leaves a part of each.
fn longest_text(data: &Value, total: usize, cap: usize, rest: &Remainder) -> Option<usize> {
    let mut lengths = Vec::new();
    lengths_of(data, &mut lengths);
    lengths.sort_unstable();
    let texts: usize = lengths.iter().sum();
    let mut room = cap.checked_sub(total - texts)?;
    let mut waiting = lengths.len();
    for length in lengths {
        let share = room / waiting;
        if length > share {
            return (share >= 2 + LEAST + chars(&marker_of(usize::MAX, rest))).then_some(share);
        }
        room -= length;
        waiting -= 1;
    }
    None
}

fn lengths_of(data: &Value, into: &mut Vec<usize>) {
    match data {
        Value::String(text) => into.push(2 + text.chars().map(escaped).sum::<usize>()),
        Value::Array(items) => items.iter().for_each(|item| lengths_of(item, into)),
        Value::Object(entries) => entries.values().for_each(|value| lengths_of(value, into)),
        _ => {}
    }
}

/// The largest number of items in each list that keeps all within the cap; `None` if one item is too
/// many.
fn longest_list(data: &Value, cap: usize) -> Option<usize> {
    // `most` items are too many.
    let (mut least, mut most) = (0, longest_of(data));
    while most - least > 1 {
        let middle = least + (most - least) / 2;
        if chars_with_lists_of(data, middle) <= cap {
            least = middle;
        } else {
            most = middle;
        }
    }
    (least > 0).then_some(least)
}

fn longest_of(data: &Value) -> usize {
    match data {
        Value::Array(items) => items.iter().map(longest_of).fold(items.len(), usize::max),
        Value::Object(entries) => entries.values().map(longest_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// The characters of data as compact JSON if its lists had at most this many items.
fn chars_with_lists_of(data: &Value, most: usize) -> usize {
    let commas = |count: usize| count.saturating_sub(1);
    match data {
        Value::Array(items) => {
            let kept = items.iter().take(most);
            2 + commas(kept.len()) + kept.map(|item| chars_with_lists_of(item, most)).sum::<usize>()
        }
        Value::Object(entries) => {
            let of_entry = |(key, value): (&String, &Value)| {
                3 + key.chars().map(escaped).sum::<usize>() + chars_with_lists_of(value, most)
            };
            2 + commas(entries.len()) + entries.iter().map(of_entry).sum::<usize>()
        }
        other => json_chars(other),
    }
}

fn with_lists_of(data: Value, most: usize) -> Value {
    let shorter = |value| with_lists_of(value, most);
    match data {
        Value::Array(items) => items.into_iter().take(most).map(shorter).collect(),
        Value::Object(entries) => {
            entries.into_iter().map(|(key, value)| (key, shorter(value))).collect()
        }
        other => other,
    }
}

/// Cuts a text to at most `longest` characters as JSON, marker and quotes included.
fn cut(mut text: String, longest: usize, rest: &Remainder) -> String {
    let mut length = 2;
    if text.chars().all(|c| {
        length += escaped(c);
        length <= longest
    }) {
        return text;
    }
    let marker = marker_of(chars(&text), rest);
    let mut left = longest.saturating_sub(2 + chars(&marker));
    let end = text.char_indices().find_map(|(at, c)| match left.checked_sub(escaped(c)) {
        Some(rest) => {
            left = rest;
            None
        }
        None => Some(at),
    });
    text.truncate(end.unwrap_or(text.len()));
    text.push_str(&marker);
    text
}

/// Length of a character in JSON, as `serde_json` writes it.
fn escaped(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => 1,
    }
}

/// Counts the characters of data as compact JSON, without writing it.
pub(super) fn json_chars(data: &Value) -> usize {
    struct Count(usize);
    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += chars(text);
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = write!(count, "{data}");
    count.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_is_counted_without_being_written_out() {
        let data = json!({ "é\n\"": ["中文\u{7}", -1.5e300, u64::MAX, null, true], "": [{}, []] });
        let expected = chars(&data.to_string());
        let allocations = allocation_counter::measure(|| assert_eq!(json_chars(&data), expected));
        assert_eq!(allocations.count_total, 0);
    }

    /// Whether `cut` is `whole` with cut texts.
    fn is_cut_of(cut: &Value, whole: &Value) -> bool {
        match (cut, whole) {
            (Value::String(cut), Value::String(whole)) => {
                let marker = marker_of(chars(whole), &Remainder::default());
                cut == whole
                    || cut.strip_suffix(&marker).is_some_and(|head| whole.starts_with(head))
            }
            (Value::Array(cut), Value::Array(whole)) => {
                cut.iter().zip(whole).all(|(a, b)| is_cut_of(a, b))
            }
            (Value::Object(cut), Value::Object(whole)) => {
                cut.keys().eq(whole.keys())
                    && cut.values().zip(whole.values()).all(|(a, b)| is_cut_of(a, b))
            }
            _ => cut == whole,
        }
    }

    proptest! {
        #[test]
        fn a_shape_outlives_its_texts(
            texts in prop::collection::vec("[a-z\\n\"é\\u{1}]{0,400}", 1..8),
            cap in 200_usize..3_000,
        ) {
            let whole = json!({ "rows": texts, "count": texts.len() });
            let (cut, _) = fit(whole.clone(), cap, true, &Remainder::default());
            prop_assert!(json_chars(&cut) <= cap);
            let replaced = cut == json!({ "truncated": true, "chars": json_chars(&whole) });
            prop_assert!(replaced || is_cut_of(&cut, &whole));
            // One long text among few is always worth cutting.
            prop_assert!(!replaced || texts.len() > 2);
            prop_assert_eq!(cut == whole, json_chars(&whole) <= cap);
        }

        /// Nested lists of small values: as many items as fit, and not one less.
        #[test]
        fn lists_are_cut_where_texts_are_not_long(
            rows in prop::collection::vec(prop::collection::vec(0_u16.., 0..9), 1..120),
            cap in 60_usize..400,
        ) {
            let whole = json!({ "rows": rows, "count": rows.len(), "none": null });
            let (cut, marker) = fit(whole.clone(), cap, true, &Remainder::default());
            prop_assert_eq!(marker.is_none(), cut == whole);
            prop_assert!(json_chars(&cut) <= cap);
            prop_assert!(is_cut_of(&cut, &whole));
            let kept = longest_of(&cut);
            prop_assert!(cut == whole || chars_with_lists_of(&whole, kept + 1) > cap);
            prop_assert_eq!(json_chars(&cut), chars_with_lists_of(&whole, kept));
        }
    }
}
