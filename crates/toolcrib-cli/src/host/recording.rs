//! The script of `run --record`.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use toolcrib_agent::RunOutcome;
use toolcrib_core::{ErrorCode, Message};
use toolcrib_engine::Redactor;
use toolcrib_models::record;

use crate::{output, problem::Problem};

/// The file of a recording. It is created before the run begins, so that a paid run is not lost to
/// a file error.
pub(crate) struct Recording {
    path: PathBuf,
    file: File,
}

impl Recording {
    /// Creates the file, which must not exist yet: an old recording is never replaced.
    pub(crate) fn begin(path: &Path) -> Result<Self, Problem> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match made {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Problem::usage(
                format!("`--record`: {} already exists; name a new file", path.display()),
            )),
            Err(error) => Err(Problem::usage(format!(
                "`--record`: {} cannot be written: {error}",
                path.display()
            ))),
        }
    }

    /// Whether the file can be created. Leaves none.
    pub(crate) fn check(path: &Path) -> Result<(), Problem> {
        Self::begin(path)?;
        // The run creates it again, or reports the error.
        let _ = fs::remove_file(path);
        Ok(())
    }

    /// Writes the model's responses, however the run ended. Without responses there is nothing to
    /// replay, and the file is deleted. Returns the option that replays it.
    pub(crate) fn end(mut self, outcome: &RunOutcome, redactor: &Redactor) -> Option<String> {
        if !outcome.messages.iter().any(|message| matches!(message, Message::Assistant { .. })) {
            drop(self.file);
            if let Err(error) = fs::remove_file(&self.path) {
                output::lost(format!("the recording {}", self.path.display()), error);
            }
            return None;
        }
        let unknown: HashSet<_> = outcome
            .tool_calls
            .iter()
            .filter(|call| call.code == Some(ErrorCode::NotAvailable))
            .map(|call| &*call.call_id)
            .collect();
        let script = record(&outcome.messages, redactor, |call_id| unknown.contains(call_id));
        if let Err(error) = self.file.write_all(script.as_bytes()) {
            output::lost(format!("the recording {}", self.path.display()), error);
        }
        // A script's name is relative to the project, the file's name to the current folder.
        let path = std::path::absolute(&self.path).unwrap_or(self.path);
        Some(format!("--model script:{}", path.display()))
    }
}
