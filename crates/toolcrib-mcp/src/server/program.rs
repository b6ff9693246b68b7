//! Facts about a program before it is started.

use std::path::{self, Path, PathBuf};

use toolcrib_capabilities::process::{FindProgramError, find_program};

use super::Stdio;

impl Stdio {
    /// The present path of the program: a name is looked up on the `PATH` of this process, and a
    /// relative path starts at the working folder.
    ///
    /// # Errors
    /// [`FindProgramError`] if no executable file exists.
    pub fn find_program(&self) -> Result<PathBuf, FindProgramError> {
        let folder = self.working_dir.as_deref().unwrap_or(Path::new("."));
        // If this process has no working folder, relative paths do not resolve.
        let folder = path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        find_program(&self.command, &folder)
    }
}
