//! Searches the lines of text files.

use std::{
    ffi::OsString,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use regex::{Regex, RegexBuilder};
use toolcrib_core::{ToolContext, ToolError};

use super::{
    FilesHandle,
    error::FileError,
    list::{Entry, EntryKind, glob, walk},
    locate::Located,
    path::RelativePath,
    read::{read_file, text_of},
};

/// The longest pattern, in bytes.
const LONGEST_PATTERN: usize = 1_000;

/// The limit of a compiled pattern, in bytes. The time for a line is at most the product of the pattern
/// and the line.
const COMPILED_BYTES: usize = 256 * 1024;

/// The bytes of a line that are matched, as the other factor.
const MATCHED_BYTES: usize = 16 * 1024;

/// The memory of a search for states of the pattern, in bytes.
const STATES_BYTES: usize = 1 << 20;

/// The time of one search; what was found until then is returned.
const LONGEST_SEARCH: Duration = Duration::from_secs(20);

/// The characters of a line that are returned.
const LINE_CHARS: usize = 500;

/// The bytes at the beginning of a file that show whether it is text.
const LOOKED_AT: usize = 8 * 1024;

/// A search: `Search::new("TODO").glob("*.rs")`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Search {
    /// A regular expression without look-around and back-references; matched line by line.
    pub pattern: String,
    /// The folder; the top by default.
    pub path: String,
    /// A pattern of paths as in [`FilesHandle::find`]; all files by default.
    pub glob: Option<String>,
    /// Whether case is ignored. Default: no.
    pub ignore_case: bool,
    /// The most matching lines. Default: 50.
    pub max_matches: usize,
}

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// The path of the file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The beginning of its text.
    pub text: String,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Found {
    /// The matching lines, in the order of paths.
    pub matches: Vec<Match>,
    /// The number of text files that were searched.
    pub files: usize,
    /// Whether a limit ended the search: of matches, names, bytes or time.
    pub is_cut: bool,
}

impl Search {
    /// A search in all files.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: String::new(),
            glob: None,
            ignore_case: false,
            max_matches: 50,
        }
    }

    /// Sets the folder.
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

    /// Ignores case.
    #[must_use]
    pub fn ignore_case(mut self) -> Self {
        self.ignore_case = true;
        self
    }

    /// Sets the most matching lines.
    #[must_use]
    pub fn max_matches(mut self, max_matches: usize) -> Self {
        self.max_matches = max_matches;
        self
    }

    fn regex(&self) -> Result<Regex, FileError> {
        let invalid = |problem: String| FileError::Pattern { problem };
        if self.pattern.len() > LONGEST_PATTERN {
            return Err(invalid(format!("it is longer than {LONGEST_PATTERN} bytes")));
        }
        let mut builder = RegexBuilder::new(&self.pattern);
        builder.case_insensitive(self.ignore_case);
        builder.size_limit(COMPILED_BYTES).dfa_size_limit(STATES_BYTES);
        builder.build().map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => invalid("it is too large".to_owned()),
            // The last line says what is wrong; the others quote the pattern.
            error => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                invalid(last.trim_start_matches("error: ").to_owned())
            }
        })
    }
}

impl FilesHandle {
    /// Searches the lines of the text files below a folder. Links are not followed. Files larger
    /// than the limit of the folder, and those that are not UTF-8 text, are left out. Of a line, the
    /// first 16 KiB are matched. The found files are not recorded as read.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause.
    pub async fn search(&self, cx: &ToolContext, search: Search) -> Result<Found, ToolError> {
        let path = RelativePath::parse(&search.path).map_err(FileError::into_tool_error)?;
        let regex = search.regex().map_err(FileError::into_tool_error)?;
        let glob = search.glob.as_deref().map(glob).transpose();
        let glob = glob.map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, _, cancel| {
            let limits = *handle.limits();
            let deadline = Instant::now() + LONGEST_SEARCH;
            let mut found = Found::default();
            let mut bytes = 0_u64;
            let is_whole = walk(handle.top(), &path, limits.max_depth, cancel, |dir, entry| {
                let is_wanted = entry.kind == EntryKind::File
                    && entry.size <= limits.max_file_bytes
                    && glob.as_ref().is_none_or(|glob| glob.is_match(&entry.path));
                if !is_wanted {
                    return Ok(ControlFlow::Continue(()));
                }
                bytes = bytes.saturating_add(entry.size);
                if bytes > limits.max_total_bytes || Instant::now() > deadline {
                    return Ok(ControlFlow::Break(()));
                }
                let name = entry.path.rsplit('/').next().unwrap_or_default();
                let Some(text) = text(dir, name, &entry, limits.max_file_bytes) else {
                    return Ok(ControlFlow::Continue(()));
                };
                found.files += 1;
                for (at, line) in text.lines().enumerate() {
                    if cancel.is_cancelled() {
                        return Err(FileError::Cancelled);
                    }
                    if Instant::now() > deadline {
                        return Ok(ControlFlow::Break(()));
                    }
                    if !regex.is_match(beginning(line)) {
                        continue;
                    }
                    if found.matches.len() == search.max_matches {
                        return Ok(ControlFlow::Break(()));
                    }
                    let text = line.chars().take(LINE_CHARS).collect();
                    found.matches.push(Match { path: entry.path.clone(), line: at + 1, text });
                }
                Ok(ControlFlow::Continue(()))
            })?;
            found.is_cut = !is_whole;
            Ok(found)
        })
        .await
    }
}

/// The part of a line that is matched.
fn beginning(line: &str) -> &str {
    line.get(..line.floor_char_boundary(MATCHED_BYTES)).unwrap_or(line)
}

/// The text of a file in an open folder; `None` if it is not text, or gone.
fn text(dir: &cap_std::fs::Dir, name: &str, entry: &Entry, limit: u64) -> Option<String> {
    let located = Located {
        found: dir.symlink_metadata(name).ok(),
        dir: dir.try_clone().ok()?,
        name: Some(OsString::from(name)),
        path: name.into(),
        written: entry.path.clone(),
    };
    let content = read_file(&located, limit).ok()?;
    let is_binary = content.bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0);
    if is_binary { None } else { text_of(content.bytes, name).ok() }
}
