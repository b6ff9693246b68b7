//! A stdout that is more than is kept in memory: all of it becomes an artifact, as it comes.

use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::{JoinError, spawn_blocking},
};
use toolcrib_artifacts::{Artifact, ArtifactWriter, CallArtifacts};
use toolcrib_core::{ArtifactStoreError, ToolContext};

/// How many pieces may wait to be written before the program has to.
const PIECES: usize = 16;

/// The writer of a stdout's pieces and their receiver; neither where nothing is kept of
/// artifacts.
pub(crate) fn places(cx: &ToolContext) -> (Option<Sender<Vec<u8>>>, Option<OutputCollector>) {
    let Ok(artifacts) = cx.handle::<CallArtifacts>() else { return (None, None) };
    let (sender, pieces) = channel(PIECES);
    (Some(sender), Some(OutputCollector { artifacts: artifacts.clone(), pieces }))
}

pub(crate) struct OutputCollector {
    artifacts: CallArtifacts,
    pieces: Receiver<Vec<u8>>,
}

/// The collected output. Dropping it stores nothing.
pub(crate) struct CollectedOutput(Result<ArtifactWriter, String>);

impl OutputCollector {
    /// Takes pieces until there will be no more; nothing if none comes.
    pub(crate) async fn take(self) -> Option<CollectedOutput> {
        let Self { artifacts, mut pieces } = self;
        let first = pieces.recv().await?;
        let writing = spawn_blocking(move || {
            let mut writer = artifacts.writer()?;
            writer.write(&first);
            while let Some(piece) = pieces.blocking_recv() {
                writer.write(&piece);
            }
            Ok(writer)
        });
        Some(CollectedOutput(joined(writing.await)))
    }
}

impl CollectedOutput {
    /// Makes an artifact of it, or says why it could not be kept.
    pub(crate) async fn keep(self) -> Result<Artifact, String> {
        let writer = self.0?;
        joined(spawn_blocking(move || writer.finish().map_err(|unkept| unkept.error)).await)
    }

    /// Lets it go. It may be gigabytes of a disk.
    pub(crate) async fn discard(self) {
        let _ = spawn_blocking(move || drop(self)).await;
    }
}

fn joined<T>(ended: Result<Result<T, ArtifactStoreError>, JoinError>) -> Result<T, String> {
    match ended {
        Ok(written) => written.map_err(|error| error.to_string()),
        Err(_) => Err("the store of artifacts failed".to_owned()),
    }
}
