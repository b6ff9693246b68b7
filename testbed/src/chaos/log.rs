//! A log of events, for counting.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

/// Appends lines to a file that several processes may share.
pub(crate) struct Log(Option<File>);

impl Log {
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        path.map(open).transpose().map(Self)
    }

    /// Uses one write, so that lines of several processes do not mix.
    pub(crate) fn line(&self, text: &str) {
        if let Some(mut file) = self.0.as_ref()
            && file.write_all(format!("{text}\n").as_bytes()).is_err()
        {
            // A call that cannot be logged must not be made.
            std::process::abort();
        }
    }
}
