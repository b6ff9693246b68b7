//! Pinned definitions, and their changes word by word.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeSeq as _};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use toolcrib_core::PinKind;
use toolcrib_project::{PinChange, PinName};

use super::{
    print::{note, say},
    text::{BAD, DIM, GOOD, STRONG, WARN, count, safe},
};

/// A longer text is not compared word by word: comparing takes more than linear time.
const LONGEST_COMPARED: usize = 64 * 1024;

/// The result of `lock diff` and `lock accept`.
#[derive(Serialize)]
pub(crate) struct LockJson<'a> {
    #[serde(serialize_with = "as_changes")]
    pub(crate) changes: &'a [PinChange],
    /// Whether they are accepted now.
    pub(crate) accepted: bool,
    /// The errors of sources that cannot be listed.
    pub(crate) unreachable: &'a [String],
}

fn as_changes<S: Serializer>(changes: &[PinChange], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(changes.len()))?;
    for change in changes {
        list.serialize_element(&json!({
            "source": change.place.source,
            "kind": change.place.kind.as_str(),
            "name": change.place.name,
            "pinned": change.pinned,
            "before": change.before,
            "after": change.after,
        }))?;
    }
    list.end()
}

/// Prints the changes, each word by word; with `flags`, by which another command finds the project,
/// also how they are accepted.
pub(crate) fn lock_changes(changes: &[PinChange], accepted: bool, flags: Option<&str>) {
    for change in changes {
        let place = named(&change.place);
        match (accepted, change.is_changed()) {
            (true, _) => say!("{GOOD}accepted{GOOD:#} {place}"),
            (false, true) => say!("{BAD}changed{BAD:#} {place}"),
            (false, false) => say!("{WARN}not pinned{WARN:#} {place}"),
        }
        for (field, text) in differences(change) {
            say!("  {STRONG}{}{STRONG:#}: {text}", safe(&field).replace('\n', "\\n"));
        }
    }
    match (changes.len(), flags) {
        (0, _) => say!("{GOOD}✓{GOOD:#} every definition is pinned as it is listed"),
        (n, Some(flags)) if !accepted => {
            let changed = changes.iter().filter(|change| change.is_changed()).count();
            note!(
                "{DIM}{} not pinned as listed; a changed one is neither offered nor called. To \
                 accept: toolcrib lock accept [SERVER [TOOL]]{}{DIM:#}",
                count(n, "definition"),
                safe(flags)
            );
            if changed == 0 {
                note!("{DIM}none of them has changed: they are pinned at their first use{DIM:#}");
            }
        }
        _ => {}
    }
}

/// After the definitions were shown, and accepted at the terminal.
pub(crate) fn accepted(definitions: usize) {
    say!("{GOOD}accepted{GOOD:#} {}", count(definitions, "definition"));
}

/// The texts that differ, by field; removed words in `[-…-]`, new ones in `{+…+}`.
fn differences(change: &PinChange) -> Vec<(String, String)> {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    if let Some(known) = &change.before {
        leaves(known, String::new(), &mut before);
    }
    leaves(&change.after, String::new(), &mut after);
    let fields: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let mut all = Vec::new();
    if change.is_changed() && change.before.is_none() {
        let note = "the pinned text is not known on this machine".to_owned();
        all.push(("before".to_owned(), note));
    }
    for field in fields {
        let (old, new) = (before.get(field), after.get(field));
        if old != new {
            let name = if field.is_empty() { "text".to_owned() } else { field.clone() };
            let (old, new) = (old.map_or("", String::as_str), new.map_or("", String::as_str));
            all.push((name, word_by_word(old, new)));
        }
    }
    all
}

/// The values without fields, by path. Absent and null values are equal.
fn leaves(value: &Value, path: String, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let name = name.replace('.', "\\.");
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                leaves(value, path, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                leaves(value, format!("{path}[{at}]"), found);
            }
        }
        Value::Null => {}
        Value::Object(_) if path == "fields" => {}
        Value::String(text) => drop(found.insert(path, text.clone())),
        other => drop(found.insert(path, other.to_string())),
    }
}

fn word_by_word(old: &str, new: &str) -> String {
    if old.len().max(new.len()) > LONGEST_COMPARED {
        return format!("[-{}-]{{+{}+}}", safe(old), safe(new));
    }
    let diff = TextDiff::from_words(old, new);
    let mut text = String::new();
    let mut open = ChangeTag::Equal;
    let close = |tag| match tag {
        ChangeTag::Equal => "",
        ChangeTag::Delete => "-]",
        ChangeTag::Insert => "+}",
    };
    for change in diff.iter_all_changes() {
        if change.tag() != open {
            text.push_str(close(open));
            text.push_str(match change.tag() {
                ChangeTag::Equal => "",
                ChangeTag::Delete => "[-",
                ChangeTag::Insert => "{+",
            });
            open = change.tag();
        }
        text.push_str(&safe(change.value()));
    }
    text.push_str(close(open));
    text.replace('\n', "\n    ")
}

/// `mcp:git tool git_log`.
fn named(place: &PinName) -> String {
    let name = safe(&place.name).replace('\n', "\\n");
    format!("{} {} {name}", place.source, place.kind).trim_end().to_owned()
}

/// Definitions that were pinned at their first use.
pub(crate) fn pinned(source: &str, kind: PinKind, number: usize) {
    let what = match kind {
        PinKind::Instructions => "its instructions".to_owned(),
        kind => count(number, kind.as_str()),
    };
    note!("{DIM}pinned at first use: {what} of {}{DIM:#}", safe(source));
}

/// A definition that is withheld. With `flags` another command finds the project.
pub(crate) fn pin_changed(place: &PinName, flags: &str) {
    note!(
        "{WARN}warning{WARN:#}: {} has changed since it was pinned, and is not offered; to see the \
         change: toolcrib lock diff{}",
        named(place),
        safe(flags)
    );
}

/// A new definition of a pinned server, which is withheld. With `flags` another command finds the
/// project.
pub(crate) fn pin_new(place: &PinName, flags: &str) {
    note!(
        "{WARN}warning{WARN:#}: {} is new since its server was pinned, and is not offered; to see it: \
         toolcrib lock diff{}",
        named(place),
        safe(flags)
    );
}

/// Pins that cannot be stored.
pub(crate) fn pins_unsaved(reason: &str) {
    note!("{WARN}warning{WARN:#}: definitions are pinned for this process only: {}", safe(reason));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_word_by_word_and_nothing_is_invisible() {
        assert_eq!(
            word_by_word("Reads a file.", "Reads a secret file.\u{200b}"),
            "Reads a [-file.-]{+secret file.\\u{200b}+}"
        );
        assert_eq!(word_by_word("", "new\ntext"), "{+new\n    text+}");
        let mut found = BTreeMap::new();
        leaves(&json!({ "a.b": [1, { "c": "d" }], "n": null }), String::new(), &mut found);
        let found: Vec<_> = found.into_iter().collect();
        let expected = [("a\\.b[0]", "1"), ("a\\.b[1].c", "d")];
        assert_eq!(found, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }
}
