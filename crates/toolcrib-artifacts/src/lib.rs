//! Artifacts: stored results that are too large for a model.
//!
//! A large result is stored under an id as an *artifact*: its redacted bytes, their digest, and
//! their origin. The model gets a handle instead, and three tools that read, search and query it
//! piece by piece.
//!
//! | question | types |
//! |---|---|
//! | Where are artifacts stored? | [`MemoryStore`], [`FileStore`], or any other [`ArtifactStore`](toolcrib_core::ArtifactStore) |
//! | How are they made? | [`Artifacts`], passed to `EngineBuilder::artifacts`; [`CallArtifacts`] in a tool's body; [`TurnArtifacts`] |
//! | What does a model read of one? | [`Artifact::handle`], [`Artifacts::tools`], [`forge_tools`] |
//! | Which queries are there? | [`ArtifactKind`], [`Json`], [`Markdown`], [`Csv`] |
//!
//! ```
//! use std::sync::Arc;
//! use toolcrib_artifacts::{ArtifactSource, Artifacts, MemoryStore};
//! use toolcrib_core::Identity;
//!
//! let artifacts = Artifacts::new(MemoryStore::new());
//! let turn = artifacts.turn(Arc::new(Identity::conversation("c1")), "run-1");
//!
//! let log: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
//! let artifact = turn.keep(ArtifactSource::of("read_log", "call_1"), log.as_bytes())?;
//! assert_eq!(&**artifact.id(), "call_1");
//! assert!(artifact.handle().starts_with("[artifact call_1: text, 48893 bytes, 5001 lines"));
//! # Ok::<(), toolcrib_core::ArtifactStoreError>(())
//! ```
//!
//! Every answer to a model is bounded, stays within the call's budget, and continues with a cursor.
//! Potentially large content is never loaded as a whole: a query that would exceed the limits is
//! refused with a text that suggests alternatives.
//!
//! # Layers
//!
//! - `call_artifacts`: the engine's port to artifacts.
//! - `stores`: stores of artifacts.
//! - `tools`: the tools by which a model reads artifacts.
//! - `artifacts`, `turn`, `writer`: results that are stored, the artifacts of one turn, and content that is written in pieces.
//! - `artifact`: one artifact.
//! - `kinds`: kinds of artifacts and their queries.
//! - `search`: searches for the lines of an artifact that match a pattern.
//! - `page`: bounded answers with pages.
//! - `content`: the bytes of an artifact, read in bounded pieces.

mod artifact;
mod artifacts;
mod call_artifacts;
mod content;
mod kinds;
mod page;
mod search;
mod stores;
mod tools;
mod turn;
mod writer;

#[cfg(not(portable))]
pub use self::stores::FileStore;
pub use self::{
    artifact::Artifact,
    artifacts::{ArtifactLimits, ArtifactSource, Artifacts},
    call_artifacts::CallArtifacts,
    content::{Content, ContentStream, Line, Lines},
    kinds::{
        Csv, Json, Markdown, arguments,
        kind::{ArtifactKind, ContentHead, Index, Query, QueryRequest},
    },
    page::{Answer, Items, Page},
    stores::MemoryStore,
    tools::{
        ARTIFACT_QUERY, ARTIFACT_READ, ARTIFACT_SEARCH, ARTIFACT_TOOLS, ForgeError, forge_tools,
    },
    turn::TurnArtifacts,
    writer::{ArtifactWriter, KeepError},
};
