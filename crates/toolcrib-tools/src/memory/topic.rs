//! The file of a topic: where its text comes from, then the text.

use serde_json::{Value, json};

/// The longest name of a topic.
pub(super) const MOST_NAME: usize = 64;

/// The writes that a file remembers.
const MOST_WRITES: usize = 20;

const BEGIN: &str = "---\n";
const END: &str = "\n---\n";
const TAINTED: &str = "tainted: ";
const WRITES: &str = "writes:";

/// A write of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) at_ms: u64,
    pub(super) action: String,
    pub(super) principal: Option<String>,
    pub(super) session: String,
    pub(super) turn: String,
    pub(super) tainted: bool,
}

/// A topic. One without a head was written by a person, and is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Topic {
    /// Whether a part may come from an unknown author.
    pub(super) tainted: bool,
    /// The last writes, oldest first.
    pub(super) writes: Vec<Write>,
    pub(super) text: String,
}

impl Topic {
    /// A file with a head that cannot be read counts as tainted.
    pub(super) fn read(file: &str) -> Self {
        let whole = |tainted| Self { tainted, writes: Vec::new(), text: file.to_owned() };
        let Some(rest) = file.strip_prefix(BEGIN) else { return whole(false) };
        let Some((head, text)) = rest.split_once(END) else { return whole(true) };
        match Self::head(head) {
            Some((tainted, writes)) => {
                let text = text.strip_prefix('\n').unwrap_or(text).to_owned();
                Self { tainted, writes, text }
            }
            None => whole(true),
        }
    }

    fn head(head: &str) -> Option<(bool, Vec<Write>)> {
        let mut lines = head.lines();
        let tainted = match lines.next()?.strip_prefix(TAINTED)? {
            "true" => true,
            "false" => false,
            _ => return None,
        };
        if lines.next()? != WRITES {
            return None;
        }
        let writes = lines.map(|line| write(line.strip_prefix("- ")?));
        Some((tainted, writes.collect::<Option<_>>()?))
    }

    pub(super) fn file(&self) -> String {
        let mut file = format!("{BEGIN}{TAINTED}{}\n{WRITES}", self.tainted);
        let first = self.writes.len().saturating_sub(MOST_WRITES);
        for write in self.writes.iter().skip(first) {
            let line = json!({
                "at_ms": write.at_ms, "action": write.action, "principal": write.principal,
                "session": write.session, "turn": write.turn, "tainted": write.tainted,
            });
            file.push_str("\n- ");
            file.push_str(&line.to_string());
        }
        file.push_str(END);
        file.push('\n');
        file.push_str(&self.text);
        file
    }
}

fn write(line: &str) -> Option<Write> {
    let line: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| Some(line.get(key)?.as_str()?.to_owned());
    Some(Write {
        at_ms: line.get("at_ms")?.as_u64()?,
        action: text("action")?,
        principal: text("principal"),
        session: text("session")?,
        turn: text("turn")?,
        tainted: line.get("tainted")?.as_bool()?,
    })
}

/// Whether a text can name a topic.
pub(super) fn is_name(name: &str) -> bool {
    name.len() <= MOST_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn topic(text: &str, tainted: bool) -> Topic {
        let write = Write {
            at_ms: 5,
            action: "add".into(),
            principal: Some("an\"n\n---\n".into()),
            session: "s".into(),
            turn: "t".into(),
            tainted,
        };
        Topic { tainted, writes: vec![write], text: text.into() }
    }

    proptest! {
        #[test]
        fn no_text_can_change_where_it_comes_from(text in "(---\n|tainted: false\n|writes:\n|- \\{\\}\n|\\PC|\n){0,12}") {
            for tainted in [true, false] {
                let topic = topic(&text, tainted);
                prop_assert_eq!(Topic::read(&topic.file()), topic);
            }
        }

        #[test]
        fn any_file_can_be_read(file in "(---\n|tainted: (true|false|x)\n|writes:\n|- \\{\\}\n|\\PC|\n){0,12}") {
            let read = Topic::read(&file);
            prop_assert!(read.tainted || !file.starts_with(BEGIN) || read.text.len() < file.len());
        }
    }

    #[test]
    fn a_file_of_a_person_is_trusted_and_a_broken_head_is_not() {
        assert_eq!(
            Topic::read("# Notes\n"),
            Topic { text: "# Notes\n".into(), ..Topic::default() }
        );
        for broken in ["---\n", "---\ntainted: maybe\nwrites:\n---\nx", "---\ntitle: x\n---\ntext"]
        {
            assert!(Topic::read(broken).tainted, "{broken}");
        }
        let mut many = topic("x", false);
        many.writes = vec![many.writes[0].clone(); 30];
        assert_eq!(Topic::read(&many.file()).writes.len(), MOST_WRITES);
    }
}
