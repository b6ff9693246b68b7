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

use super::Problem;
use crate::output;

/// A file that a run's exchange goes to. It is made before the run begins, so that a run is not
/// paid for and then lost.
pub(super) struct Recording {
    path: PathBuf,
    file: File,
}

impl Recording {
    /// Makes the file, which must not be there yet: a recording is worth keeping.
    pub(super) fn begin(path: &Path) -> Result<Self, Problem> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match made {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Problem::usage(
                format!("`--record`: {} is there already; name a new file", path.display()),
            )),
            Err(error) => Err(Problem::usage(format!(
                "`--record`: {} cannot be written: {error}",
                path.display()
            ))),
        }
    }

    /// Writes what was said, however the run ended; where nothing was, there is nothing to play back
    /// and the file goes again. Gives how it is played back.
    pub(super) fn end(mut self, outcome: &RunOutcome, redactor: &Redactor) -> Option<String> {
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
        // The name of a script starts at the project, and the file's did where the command was given.
        let path = std::path::absolute(&self.path).unwrap_or(self.path);
        Some(format!("--model script:{}", path.display()))
    }
}
