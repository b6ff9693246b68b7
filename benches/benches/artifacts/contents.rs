//! The measured contents, the same each time, and their folder.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempDir;
use toolcrib_artifacts::{ArtifactSource, ArtifactWriter, Artifacts, FileStore, TurnArtifacts};
use toolcrib_benches::Outcome;
use toolcrib_core::Identity;

/// Size of the log, in bytes.
pub(crate) const LOG: u64 = 1_000_000_000;

/// Size of the JSON document, in bytes.
pub(crate) const DOCUMENT: u64 = 100_000_000;

/// The artifact's id.
pub(crate) const ID: &str = "call_1";

/// A folder in that of the build, removed on drop.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn make() -> Outcome<Self> {
        Ok(Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Deletes the artifacts.
    pub(crate) fn clear(&self) -> Outcome {
        for file in fs::read_dir(self.folder())? {
            fs::remove_dir_all(file?.path())?;
        }
        Ok(())
    }

    /// The file with the bytes of the artifact.
    pub(crate) fn file(&self) -> Outcome<PathBuf> {
        let digest = turn(self.folder()).get(ID)?.entry().digest.to_string();
        for owner in fs::read_dir(self.folder())? {
            let file = owner?.path().join(&digest);
            if file.is_file() {
                return Ok(file);
            }
        }
        Err("the artifact's file does not exist".into())
    }
}

/// The turn of the artifacts in a folder: the one of a detached call.
pub(crate) fn turn(folder: &Path) -> TurnArtifacts {
    let artifacts = Artifacts::new(FileStore::new(folder));
    artifacts.turn(Arc::new(Identity::conversation("detached")), "detached")
}

/// Writes a log of [`LOG`] bytes.
pub(crate) fn write_log(place: &Place) -> Outcome {
    let mut writer = turn(place.folder()).writer(ArtifactSource::of("read_log", ID), None)?;
    log(LOG, &mut writer);
    writer.finish()?;
    // From here on it is in the page cache, as far as there is room.
    drop(fs::read(place.file()?)?);
    Ok(())
}

/// Writes a log of a service, with seven distinct lines.
pub(crate) fn log(bytes: u64, writer: &mut ArtifactWriter) {
    const PIECE: usize = 64 * 1024;
    let mut numbers = Numbers(42);
    let mut piece = String::with_capacity(PIECE + 256);
    let (mut written, mut rare) = (0, 0);
    while written < bytes {
        piece.clear();
        while piece.len() < PIECE {
            let number = numbers.next();
            let (hour, minute, second) = (number % 24, number / 24 % 60, number / 1440 % 60);
            let _ = writeln!(
                piece,
                "2026-11-22T{hour:02}:{minute:02}:{second:02}.{:03}Z INFO worker-{} request={:016x} \
                 user={} path=/orders/{} status={} took={}ms",
                number % 1000,
                number % 32,
                numbers.next(),
                number % 90_000,
                number % 700_000,
                if number.is_multiple_of(50) { 404 } else { 200 },
                number % 900,
            );
        }
        if written + piece.len() as u64 > (rare + 1) * bytes / 8 && rare < 7 {
            piece.push_str(
                "2026-11-22T12:00:00.000Z ERROR worker-3 disk quota exceeded, took=1042ms\n",
            );
            rare += 1;
        }
        writer.write(piece.as_bytes());
        written += piece.len() as u64;
    }
}

/// Writes a JSON document of [`DOCUMENT`] bytes: one array of orders beside one small value.
pub(crate) fn write_document(place: &Place) -> Outcome {
    let mut writer = turn(place.folder()).writer(ArtifactSource::of("export", ID), None)?;
    let mut numbers = Numbers(42);
    let mut piece = r#"{"page":{"number":1,"of":1},"orders":["#.to_owned();
    let (mut written, mut number) = (0, 0);
    while written < DOCUMENT {
        let _ = write!(
            piece,
            r#"{}{{"id":{number},"customer":{{"name":"customer {}"}},"total":{}.5,"tags":["a","b"]}}"#,
            if number > 0 { "," } else { "" },
            numbers.next() % 90_000,
            numbers.next() % 10_000,
        );
        number += 1;
        if piece.len() > 64 * 1024 {
            writer.write(piece.as_bytes());
            written += piece.len() as u64;
            piece.clear();
        }
    }
    piece.push_str("]}");
    writer.write(piece.as_bytes());
    writer.finish()?;
    Ok(())
}

/// Pseudorandom numbers, the same each time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
