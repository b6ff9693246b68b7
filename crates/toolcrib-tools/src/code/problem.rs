//! Problems that compilers, linters and test runners report, by file and line.

use std::fmt;

use serde_json::{Value, json};

/// The most characters of a message.
const MESSAGE_CHARS: usize = 600;

/// How grave a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Level {
    Error,
    Warning,
    /// A test that failed.
    Failure,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Failure => "failed",
        }
    }

    /// The level that a word says.
    pub(super) fn of(word: &str) -> Self {
        match word.starts_with("warn") || word.starts_with("note") || word.starts_with("info") {
            true => Self::Warning,
            false => Self::Error,
        }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Problem {
    pub(super) place: Option<Place>,
    pub(super) level: Level,
    pub(super) test: Option<String>,
    pub(super) message: String,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        self.column.map_or(Ok(()), |column| write!(f, ":{column}"))
    }
}

impl Problem {
    pub(super) fn new(place: Option<Place>, level: Level, message: &str) -> Self {
        let message = message.trim().chars().take(MESSAGE_CHARS).collect();
        Self { place, level, test: None, message }
    }

    pub(super) fn of_test(place: Option<Place>, test: &str, message: &str) -> Self {
        Self { test: Some(test.trim().to_owned()), ..Self::new(place, Level::Failure, message) }
    }

    pub(super) fn data(&self) -> Value {
        json!({
            "file": self.place.as_ref().map(|place| &place.file),
            "line": self.place.as_ref().map(|place| place.line),
            "column": self.place.as_ref().and_then(|place| place.column),
            "level": self.level.as_str(),
            "test": self.test,
            "message": self.message,
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        match &self.test {
            Some(test) => write!(f, "test {test} failed")?,
            None => f.write_str(self.level.as_str())?,
        }
        match self.message.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.message),
        }
    }
}

/// `file:line:column: rest`, or `file:line: rest`, as most compilers write it; pyright has
/// `file:line:column - rest`.
pub(super) fn placed(line: &str) -> Option<(Place, &str)> {
    let line = line.trim_start();
    let mut parts = line.splitn(4, ':');
    let (file, number) = (parts.next()?, parts.next()?);
    if !is_file(file) {
        return None;
    }
    let line_number = number.trim().parse().ok()?;
    let third = parts.next().unwrap_or_default();
    let place = |column| Place { file: plain(file).to_owned(), line: line_number, column };
    if let Some((column, _)) = third.split_once(" - ")
        && let Ok(column) = column.parse()
    {
        let rest = line.split_once(" - ").map(|(_, rest)| rest).unwrap_or_default();
        return Some((place(Some(column)), rest.trim()));
    }
    match third.trim().parse() {
        Ok(column) => Some((place(Some(column)), parts.next().unwrap_or_default().trim())),
        Err(_) => {
            let start = file.len() + number.len() + 2;
            Some((place(None), line.get(start..).unwrap_or_default().trim()))
        }
    }
}

/// Whether a text before a line number is probably the path of a file.
fn is_file(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or_default();
    !text.is_empty()
        && text.len() < 1_000
        && !text.contains([' ', '\t', '"', '\'', '(', '<'])
        && name.rsplit_once('.').is_some_and(|(stem, ending)| {
            !stem.is_empty()
                && (1..=5).contains(&ending.len())
                && ending.chars().all(|c| c.is_ascii_alphanumeric())
                && ending.starts_with(|c: char| c.is_ascii_alphabetic())
        })
}

fn plain(file: &str) -> &str {
    file.strip_prefix("./").unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_read_with_and_without_a_column() {
        let (place, rest) = placed("src/lib.rs:3:14: error[E0308]: mismatched types").unwrap();
        assert_eq!(
            (place.to_string(), rest),
            ("src/lib.rs:3:14".to_owned(), "error[E0308]: mismatched types")
        );
        let (place, rest) = placed("    ./a_test.go:7: want 2: got 3").unwrap();
        assert_eq!((place.to_string(), rest), ("a_test.go:7".to_owned(), "want 2: got 3"));
        for other in ["error: could not compile", "12:30:01 started", "http://a.b:80: x", "a: b: c"]
        {
            assert_eq!(placed(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in "\\PC{0,60}") {
            let _ = placed(&line);
        }
    }
}
