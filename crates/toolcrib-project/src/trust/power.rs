//! What a project may do with its user's authority, in words.

use std::{fmt, sync::Arc};

/// Something that a project does with its user's authority.
///
/// Its [`Display`](fmt::Display) is for a person, in full. What stands in the project's files is
/// escaped: it cannot drive a terminal, and it cannot add lines of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Power {
    /// Where it is declared: `toolcrib.toml:12`.
    pub origin: Arc<str>,
    /// What has it: ``MCP server `git` ``.
    pub of: String,
    /// What it does.
    pub action: Action,
    /// The variables of this process's environment whose values it receives.
    pub reads: Vec<String>,
}

/// What a [`Power`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// It starts a program.
    Start {
        /// The program and its arguments, as they are declared.
        command: Vec<String>,
        /// The folder that it runs in, as it is declared; the project's if absent.
        working_dir: Option<String>,
        /// The variables that are set in its environment.
        sets: Vec<String>,
        /// What it fetches and runs without a fixed version.
        unpinned: Option<String>,
    },
    /// It sends requests.
    Dial {
        /// To this URL, as it is declared.
        url: String,
        /// Addresses that are not of the public internet and that it may reach.
        addresses: Vec<String>,
    },
    /// It only reads variables.
    Read,
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", plain(&self.of), plain(&self.origin))?;
        let list = |words: &[String]| words.iter().map(|w| word(w)).collect::<Vec<_>>().join(", ");
        match &self.action {
            Action::Start { command, working_dir, sets, unpinned } => {
                let words: Vec<_> = command.iter().map(|part| word(part)).collect();
                write!(f, "\n  starts: {}", words.join(" "))?;
                if let Some(dir) = working_dir {
                    write!(f, "\n  in the folder: {}", word(dir))?;
                }
                if !sets.is_empty() {
                    write!(f, "\n  with these variables set: {}", list(sets))?;
                }
                if let Some(unpinned) = unpinned {
                    write!(
                        f,
                        "\n  not pinned: {} has no fixed version, so what runs may change any day",
                        word(unpinned)
                    )?;
                }
            }
            Action::Dial { url, addresses } => {
                write!(f, "\n  sends requests to: {}", word(url))?;
                if !addresses.is_empty() {
                    write!(f, "\n  also at addresses of your network: {}", list(addresses))?;
                }
            }
            Action::Read => {}
        }
        if !self.reads.is_empty() {
            write!(f, "\n  receives from your environment: {}", list(&self.reads))?;
        }
        Ok(())
    }
}

/// A word as it would be typed: in quotes, and escaped, unless it is of plain characters.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,={}$~?&#[]".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// A text without what drives a terminal or begins a line.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(escaped).collect()
}

/// Everything but printable ASCII and Latin letters stands as an escape: letters of some scripts turn
/// the direction of the text around them.
fn escaped(c: char) -> String {
    match c {
        '\'' => c.into(),
        '\u{c0}'..='\u{24f}' => c.into(),
        c => c.escape_default().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_on_its_line_and_off_the_terminal() {
        for text in ["a\nstarts: ls", "\u{1b}[2K", "\r", "\u{202e}x", "\u{9b}1m", "\u{e0041}", ""] {
            let shown = word(text);
            assert!(shown.starts_with('"') && shown.ends_with('"'), "{shown}");
            assert!(shown.chars().all(|c| (' '..='~').contains(&c)), "{shown}");
            assert!(plain(text).chars().all(|c| (' '..='~').contains(&c)));
        }
        assert_eq!(word("-y"), "-y");
        assert_eq!(word("two words"), "\"two words\"");
        assert_eq!(word("it's \"so\""), "\"it's \\\"so\\\"\"");
        assert_eq!(plain("tool `größe`"), "tool `größe`");
    }
}
