//! Files that the user attaches to a message.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use tokio::task::spawn_blocking;
use toolcrib_core::{Attachment, Attachments, CancellationToken};

use super::Problem;

/// Reads files, each up to its limit.
pub(super) async fn read(
    paths: &[PathBuf],
    cancellation: &CancellationToken,
) -> Result<Attachments, Problem> {
    let mut attachments = Attachments::default();
    for path in paths {
        let attachment = one(path, cancellation).await?;
        let added = attachments.add(attachment);
        added.map_err(|error| Problem::usage(format!("{}: {error}", path.display())))?;
    }
    Ok(attachments)
}

/// Reads one file.
pub(super) async fn one(
    path: &Path,
    cancellation: &CancellationToken,
) -> Result<Attachment, Problem> {
    let unreadable =
        |error: &dyn std::fmt::Display| Problem::usage(format!("{}: {error}", path.display()));
    let file = path.to_owned();
    let reading = spawn_blocking(move || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let most = u64::try_from(Attachment::MAX_BYTES).unwrap_or(u64::MAX);
        File::open(file)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let bytes = tokio::select! {
        biased;
        // A named pipe may never end.
        () = cancellation.cancelled() => return Err(Problem::cancelled()),
        read = reading => read.map_err(|error| Problem::failed("internal", error.to_string()))?,
    };
    let bytes = bytes.map_err(|error| unreadable(&error))?;
    Attachment::new(&path.to_string_lossy(), bytes).map_err(|error| unreadable(&error))
}
