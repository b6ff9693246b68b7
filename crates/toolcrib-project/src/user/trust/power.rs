//! The actions of a project with its user's authority, in words.

use std::fmt;

use toolcrib_config::{Diagnostic, Spot};

use crate::read::owner::{ForeignFile, escaped, plain};

/// An action of a project with its user's authority.
///
/// Its [`Display`](fmt::Display) is for a person, in full. Texts of the project's files are
/// escaped: they cannot control a terminal or add lines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Power {
    /// The position of the declaration.
    pub at: Spot,
    /// The part that performs it: ``MCP server `git` ``.
    pub of: String,
    /// The action.
    pub action: Action,
    /// The environment variables of this process whose values it receives.
    pub reads: Vec<String>,
    /// Programs outside the project that it starts and that another user controls, or their
    /// folders.
    pub foreign: Vec<ForeignFile>,
    /// Whether it needs the user's trust. A tool's request to the public internet without a secret
    /// does not; it is only shown.
    pub needs_trust: bool,
}

/// The action of a [`Power`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// It starts a program.
    Start {
        /// The program and its arguments, as they are declared.
        command: Vec<String>,
        /// The folder that it runs in, as declared; the project's if absent.
        working_dir: Option<String>,
        /// The variables that are set in its environment: `NAME`, or `NAME=VALUE` as declared if
        /// the value decides which code runs.
        sets: Vec<String>,
        /// The package or URL that it fetches and runs without a fixed version.
        unpinned: Option<String>,
        /// The hosts that its sandbox lets it reach, as declared.
        hosts: Vec<String>,
    },
    /// It sends requests.
    Dial {
        /// The URL, as declared.
        url: String,
        /// Addresses outside the public internet that it may reach.
        addresses: Vec<String>,
    },
    /// It opens a database file outside the project.
    Open {
        /// The file, resolved.
        file: String,
        /// Whether it may also write it.
        writable: bool,
    },
    /// It opens a folder outside the project.
    Files {
        /// The folder, resolved.
        folder: String,
        /// Whether it may also write there.
        writable: bool,
    },
    /// It opens another file outside the project.
    File {
        /// The file, resolved.
        file: String,
        /// Whether it adds lines to it, and closes it to other users; otherwise it reads it.
        writable: bool,
    },
    /// It connects to the database server of a URL in a variable.
    Connect {
        /// Whether it may also write.
        writable: bool,
    },
    /// It only reads variables.
    Read,
}

impl Power {
    /// Warnings if others may change the code that runs.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Diagnostic> {
        let unpinned = match &self.action {
            Action::Start { unpinned, .. } => unpinned.as_deref(),
            _ => None,
        };
        let of = plain(&self.of);
        let warn = |message| Diagnostic::warning(&self.at, message);
        let unpinned = unpinned.map(|spec| {
            warn(format!("{of}: {} {NOT_FIXED}", word(spec))).help(
                "name a complete version, a commit or a digest, or keep the fetched files in the \
                 project",
            )
        });
        let foreign = self.foreign.iter().map(move |foreign| {
            warn(format!("{of} runs a program that another user controls: {foreign}"))
                .help("use a program of your own or of the system")
        });
        unpinned.into_iter().chain(foreign)
    }
}

const NOT_FIXED: &str = "has no fixed version, so its code may change any day";

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", plain(&self.of), plain(&self.at.to_string()))?;
        self.write_action(f)
    }
}

impl Power {
    /// The same without the position of the declaration, which other declarations move.
    pub(crate) fn without_place(&self) -> String {
        let mut text = plain(&self.of);
        // A `String` accepts everything.
        let _ = self.write_action(&mut text);
        text
    }

    fn write_action(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let list = |words: &[String]| words.iter().map(|w| word(w)).collect::<Vec<_>>().join(", ");
        match &self.action {
            Action::Start { command, working_dir, sets, unpinned, hosts } => {
                let words: Vec<_> = command.iter().map(|part| word(part)).collect();
                write!(f, "\n  starts: {}", words.join(" "))?;
                if let Some(dir) = working_dir {
                    write!(f, "\n  in the folder: {}", word(dir))?;
                }
                if !sets.is_empty() {
                    write!(f, "\n  with these variables set: {}", list(sets))?;
                }
                if !hosts.is_empty() {
                    write!(f, "\n  with requests permitted to: {}", list(hosts))?;
                }
                if let Some(unpinned) = unpinned {
                    write!(f, "\n  not pinned: {} {NOT_FIXED}", word(unpinned))?;
                }
            }
            Action::Dial { url, addresses } => {
                write!(f, "\n  sends requests to: {}", word(url))?;
                if !addresses.is_empty() {
                    write!(f, "\n  also at addresses of your network: {}", list(addresses))?;
                }
            }
            Action::Open { file, writable } => {
                let does = if *writable { "reads and writes" } else { "reads" };
                write!(f, "\n  {does} the database: {}", word(file))?;
            }
            Action::Files { folder, writable } => {
                let does = if *writable { "reads and writes" } else { "reads" };
                write!(f, "\n  {does} the files of the folder: {}", word(folder))?;
            }
            Action::File { file, writable } => {
                let does = if *writable { "adds lines to" } else { "reads" };
                write!(f, "\n  {does} the file: {}", word(file))?;
            }
            Action::Connect { writable } => {
                let does = if *writable { "reads and writes" } else { "reads" };
                write!(f, "\n  {does} the database of a URL in your environment")?;
            }
            Action::Read => {}
        }
        for foreign in &self.foreign {
            write!(f, "\n  runs a program that another user controls: {foreign}")?;
        }
        if !self.reads.is_empty() {
            write!(f, "\n  receives from your environment: {}", list(&self.reads))?;
        }
        Ok(())
    }
}

/// A word as typed in a shell: quoted and escaped, unless it consists of plain characters.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,={}$~?&#[]".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
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
