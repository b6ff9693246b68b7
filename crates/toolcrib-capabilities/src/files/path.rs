//! Paths as a model writes them: relative to a folder, with `/` between names.

use std::path::PathBuf;

use super::error::FileError;

/// The longest path, in bytes, as in Linux.
const LONGEST_PATH: usize = 4_096;

/// The longest name, in bytes, as in most file systems.
const LONGEST_NAME: usize = 255;

/// The most names in a path, also after links were followed. Each costs an open folder.
pub(super) const MOST_NAMES: usize = 64;

/// A checked path: names without `.`, `..` and separators. No names for the folder itself.
#[derive(Debug, Clone)]
pub(super) struct RelativePath {
    names: Vec<String>,
    /// As written, for messages.
    written: String,
}

impl RelativePath {
    /// # Errors
    /// [`FileError::Path`].
    pub(super) fn parse(text: &str) -> Result<Self, FileError> {
        match problem_of(text) {
            Some(problem) => {
                let path = text.escape_debug().take(LONGEST_NAME).collect();
                Err(FileError::Path { path, problem })
            }
            None => {
                let names = text.split('/').filter(|name| !matches!(*name, "" | "."));
                Ok(Self { names: names.map(str::to_owned).collect(), written: text.to_owned() })
            }
        }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// As written, for messages.
    pub(super) fn written(&self) -> &str {
        &self.written
    }

    /// The names as one path.
    pub(super) fn joined(&self) -> PathBuf {
        self.names.iter().collect()
    }
}

/// Whether a shell would replace a first name: `~`, `~ann`, `$HOME`, `${HOME}`. A name such as `$id.tsx` or
/// `~$letter.docx` is one of a file.
fn is_expanded(name: &str) -> bool {
    let is_word = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (name.strip_prefix('~'), name.strip_prefix('$')) {
        (Some(user), _) => is_word(user),
        (_, Some(variable)) => {
            let braced = variable.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
            let name = braced.unwrap_or(variable);
            !name.is_empty() && is_word(name)
        }
        (None, None) => false,
    }
}

/// Why a text is not a path below a folder.
fn problem_of(text: &str) -> Option<&'static str> {
    let names = || text.split('/');
    if text.contains('\0') || text.chars().any(char::is_control) {
        Some("contains a control character")
    } else if text.starts_with('/') {
        Some("is an absolute path; write it relative to the folder")
    } else if names().next().is_some_and(is_expanded) || text.contains("://") {
        Some(
            "is not a plain path: `~`, variables and URLs are not expanded; write it relative to \
              the folder",
        )
    } else if text.contains('\\') {
        Some("contains a backslash; write `/` between names")
    } else if names().any(|name| name == "..") {
        Some("contains `..`; write it from the top of the folder")
    } else if text.len() > LONGEST_PATH || names().any(|name| name.len() > LONGEST_NAME) {
        Some("is too long for a path")
    } else if names().count() > MOST_NAMES {
        Some("has more than 64 names")
    } else {
        None
    }
}
