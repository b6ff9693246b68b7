//! The files that come with a skill: texts that it refers to, scripts, and the like.

use std::fmt;

/// The largest file of a skill that is read, in bytes. What of it comes before the model is bounded
/// by the budget for results besides.
pub const MAX_SKILL_FILE: u64 = 1024 * 1024;

/// Where the files of one skill are. Only `read_skill` reads them, and only while the skill is
/// active; what it reads is as trusted as the skill's body.
///
/// Both methods may block: they are called on the blocking pool. An implementation answers for
/// staying within the skill: a path is what a model wrote.
pub trait SkillFiles: Send + Sync + fmt::Debug {
    /// The paths of all files, relative to the skill and with `/` between folders, sorted; without
    /// the file that is the skill itself.
    ///
    /// # Errors
    /// [`SkillFileError::Unreadable`].
    fn list(&self) -> Result<Vec<String>, SkillFileError>;

    /// The text of a file, of at most [`MAX_SKILL_FILE`] bytes.
    ///
    /// # Errors
    /// [`SkillFileError`] says why it cannot be had.
    fn read(&self, path: &str) -> Result<String, SkillFileError>;
}

/// Why a file of a skill cannot be had. The text ends a sentence about it that a model reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillFileError {
    /// There is no file under that path, or it leads out of the skill: which of the two is not
    /// told.
    #[error("is not a file of this skill")]
    NotThere,
    /// It is not text.
    #[error("is not text, and cannot be read")]
    NotText,
    /// It is larger than [`MAX_SKILL_FILE`].
    #[error("is larger than {} KiB, and cannot be read", MAX_SKILL_FILE / 1024)]
    TooLarge,
    /// The disk says no.
    #[error("cannot be read")]
    Unreadable(#[source] std::io::Error),
}
