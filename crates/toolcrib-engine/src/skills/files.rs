//! The files of a skill: texts that it refers to, scripts, and the like.

use std::fmt;

/// The largest file of a skill that is read, in bytes. The budget for results also limits the part
/// that a model reads.
pub const MAX_SKILL_FILE: u64 = 1024 * 1024;

/// Access to the files of one skill. A model reads them with `read_skill`, while the skill is active,
/// and a client of a gateway as resources; their text is as trusted as the skill's body.
///
/// Both methods may block: they are called on the blocking pool. The implementation must stay
/// within the skill: a path comes from a model.
pub trait SkillFiles: Send + Sync + fmt::Debug {
    /// The paths of all files, relative to the skill and with `/` between folders, sorted; without
    /// the skill's own file.
    ///
    /// # Errors
    /// [`SkillFileError::Unreadable`].
    fn list(&self) -> Result<Vec<String>, SkillFileError>;

    /// The content of a file, of at most [`MAX_SKILL_FILE`] bytes. A model reads it if it is text.
    ///
    /// # Errors
    /// [`SkillFileError`] with the reason.
    fn read(&self, path: &str) -> Result<Vec<u8>, SkillFileError>;
}

/// Why a file of a skill cannot be read. The text ends a sentence about it that a model reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillFileError {
    /// No file exists under that path, or it leads out of the skill. The error does not
    /// distinguish the two.
    #[error("is not a file of this skill")]
    NotThere,
    /// It is not text.
    #[error("is not text, and cannot be read")]
    NotText,
    /// It is larger than [`MAX_SKILL_FILE`].
    #[error("is larger than {} KiB, and cannot be read", MAX_SKILL_FILE / 1024)]
    TooLarge,
    /// The file system failed.
    #[error("cannot be read")]
    Unreadable(#[source] std::io::Error),
}
