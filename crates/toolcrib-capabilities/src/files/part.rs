//! Parts of text files.

/// The most characters of a line that are kept before a part of it, for the redaction of secrets.
pub(super) const EDGE_CHARS: usize = 4_096;

/// Some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLines {
    /// The lines, with their line ends.
    pub text: String,
    /// The number of the first line, from 1.
    pub first: usize,
    /// The number of the first character in the first line, from 1.
    pub first_column: usize,
    /// The text of the first line before that character, at most 4,096 characters of it, by which a secret
    /// at the beginning of `text` is recognized. Not for a model.
    pub before: String,
    /// The number of lines in `text`.
    pub count: usize,
    /// The number of lines in the file; `None` for a file over the limit, if its end was not reached.
    pub total: Option<usize>,
    /// The size of the file in bytes.
    pub size: u64,
}

/// A part of a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRange {
    /// The encoding, under a name of the WHATWG. Default: that of the byte order mark, else UTF-8.
    pub encoding: Option<String>,
    /// The first line, from 1. Default: 1.
    pub first_line: usize,
    /// The first character in that line, from 1. Default: 1.
    pub first_column: usize,
    /// The most lines. Default: all.
    pub lines: usize,
}

impl Default for FileRange {
    fn default() -> Self {
        Self { encoding: None, first_line: 1, first_column: 1, lines: usize::MAX }
    }
}
