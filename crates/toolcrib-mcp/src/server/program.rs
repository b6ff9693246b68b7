//! What can be known of a program before it is started.

use std::path::{Path, PathBuf};

use toolcrib_scope::process::{FindProgramError, find_program};

use super::Stdio;

impl Stdio {
    /// Where the program lies, now: a name is looked up on the `PATH` of this process, and a
    /// relative path starts at the working folder.
    ///
    /// # Errors
    /// [`FindProgramError`] when there is no executable file.
    pub fn find_program(&self) -> Result<PathBuf, FindProgramError> {
        find_program(&self.command, self.working_dir.as_deref().unwrap_or(Path::new(".")))
    }
}
