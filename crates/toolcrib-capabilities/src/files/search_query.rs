//! A search and its result.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::{error::FileError, left_out::LeftOut};

/// The longest pattern, in bytes.
const LONGEST_PATTERN: usize = 1_000;

/// The limit of a compiled pattern, in bytes. The time for a line is at most the product of the pattern
/// and the line.
const COMPILED_BYTES: usize = 256 * 1024;

/// The memory of a search for states of the pattern, in bytes.
const STATES_BYTES: usize = 1 << 20;

/// The results of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SearchMode {
    /// The matching lines.
    #[default]
    Lines,
    /// The files with a match.
    Files,
    /// The files with a match, and the numbers of their matching lines.
    Counts,
}

/// A search in a folder: `Search::new("TODO").glob("*.rs")`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Search {
    /// A regular expression without look-around and back-references; matched line by line.
    pub pattern: String,
    /// The folder, or a file; the top by default. A file is searched whatever `.gitignore` says, and also
    /// if it is over the limit of a file.
    pub path: String,
    /// A pattern of paths as in [`FilesHandle::find`](super::FilesHandle::find); all files by default.
    pub glob: Option<String>,
    /// Whether case is ignored. Default: no.
    pub ignore_case: bool,
    /// Whether files that `.gitignore` and `.ignore` name are searched too. Default: no.
    pub ignored: bool,
    /// The lines that are returned before and after each match, at most 20. Default: 0.
    pub context: usize,
    /// The most matching lines, or the most files of another `mode`. Default: 50.
    pub max_matches: usize,
    /// The results. Default: lines.
    pub mode: SearchMode,
}

/// A matching line, or one near it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// The path of the file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// Its text, or at most 500 characters of it with the match.
    pub text: String,
    /// The number of the first character in `text`, from 1.
    pub column: usize,
    /// Whether the line has more text.
    pub is_part: bool,
    /// Whether it is not a match, and only near one.
    pub is_context: bool,
}

/// A file with matches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileCount {
    /// Its path.
    pub path: String,
    /// The number of its matching lines; in the mode `Files`, 1.
    pub count: usize,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FileMatches {
    /// The result in the requested mode.
    pub mode: SearchMode,
    /// The matching lines, in the order of paths. Only of the mode `Lines`.
    pub matches: Vec<Match>,
    /// The files with matches, in the order of paths. Only of the other modes.
    pub counts: Vec<FileCount>,
    /// The number of text files that were searched.
    pub files: usize,
    /// Whether a limit ended the search: of matches, names, bytes or time.
    pub is_cut: bool,
    /// The files that were not searched, or in part.
    pub left_out: Vec<LeftOut>,
}

impl Search {
    /// A search in all files.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: String::new(),
            glob: None,
            ignore_case: false,
            ignored: false,
            context: 0,
            max_matches: 50,
            mode: SearchMode::Lines,
        }
    }

    /// Sets the form of the results.
    #[must_use]
    pub fn mode(mut self, mode: SearchMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the folder or the file.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the pattern of paths.
    #[must_use]
    pub fn glob(mut self, glob: impl Into<String>) -> Self {
        self.glob = Some(glob.into());
        self
    }

    /// Ignores the case of letters.
    #[must_use]
    pub fn ignore_case(mut self) -> Self {
        self.ignore_case = true;
        self
    }

    /// Searches also what `.gitignore` and `.ignore` name.
    #[must_use]
    pub fn ignored(mut self) -> Self {
        self.ignored = true;
        self
    }

    /// Sets the lines before and after each match.
    #[must_use]
    pub fn context(mut self, lines: usize) -> Self {
        self.context = lines;
        self
    }

    /// Sets the most matching lines.
    #[must_use]
    pub fn max_matches(mut self, max_matches: usize) -> Self {
        self.max_matches = max_matches;
        self
    }

    pub(super) fn matcher(&self) -> Result<RegexMatcher, FileError> {
        let invalid = |problem: String| FileError::Pattern { problem };
        if self.pattern.len() > LONGEST_PATTERN {
            return Err(invalid(format!("it is longer than {LONGEST_PATTERN} bytes")));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder.case_insensitive(self.ignore_case);
        // `$` is before CR LF too: a reader does not see the CR.
        builder.multi_line(true).crlf(true).line_terminator(Some(b'\n'));
        builder.size_limit(COMPILED_BYTES).dfa_size_limit(STATES_BYTES);
        builder.build(&self.pattern).map_err(|error| {
            let text = error.to_string();
            // The last line says what is wrong; the others quote the pattern.
            let last = text.lines().last().unwrap_or_default();
            match last.contains("size limit") {
                true => invalid("it is too large".to_owned()),
                false => invalid(last.trim_start_matches("error: ").to_owned()),
            }
        })
    }
}
