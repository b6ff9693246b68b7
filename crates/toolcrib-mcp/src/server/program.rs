//! What can be known of a program before it is started.

use std::path::{self, Path, PathBuf};

use toolcrib_scope::process::{FindProgramError, find_program};

use super::Stdio;

impl Stdio {
    /// Where the program lies, now: a name is looked up on the `PATH` of this process, and a
    /// relative path starts at the working folder.
    ///
    /// # Errors
    /// [`FindProgramError`] when there is no executable file.
    pub fn find_program(&self) -> Result<PathBuf, FindProgramError> {
        let folder = self.working_dir.as_deref().unwrap_or(Path::new("."));
        // Where this process stands nowhere, what is relative is nowhere either.
        let folder = path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        find_program(&self.command, &folder)
    }
}
