//! Results that are too large for a model.
//!
//! A large result is kept under an id, as an *artifact*: its bytes, redacted, with their digest, and
//! what is known of where they came from. The model gets a handle instead, and three tools that read,
//! search and ask it piece by piece.
//!
//! | question | types |
//! |---|---|
//! | Where are artifacts kept? | [`MemoryStore`], [`FileStore`], or any other [`SpoolStore`](toolcrib_core::SpoolStore) |
//! | How do they get there? | [`Artifacts`], handed to `EngineBuilder::artifacts`; [`CallArtifacts`] in a tool's body; [`TurnArtifacts`] |
//! | What does a model read of one? | [`Artifact::handle`], [`Artifacts::tools`], [`forge_tools`] |
//! | What can be asked of it? | [`ArtifactKind`], [`Json`], [`Markdown`], [`Csv`] |
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
//! assert_eq!(artifact.id(), "call_1");
//! assert!(artifact.handle().starts_with("[artifact call_1: text, 48893 bytes, 5001 lines"));
//! # Ok::<(), toolcrib_core::SpoolError>(())
//! ```
//!
//! Everything that a model is answered here is bounded, keeps within the call's budget, and goes on
//! with a cursor. Nothing is loaded in whole that may be large: what cannot be answered within bounds
//! is refused, and the refusal says what can.

mod artifact;
mod artifacts;
#[cfg(feature = "conformance")]
pub mod conformance;
mod content;
mod kinds;
mod page;
mod search;
mod spooler;
mod stores;
mod tools;
mod turn;
mod writer;

pub use self::{
    artifact::Artifact,
    artifacts::{ArtifactLimits, ArtifactSource, Artifacts},
    content::{Content, ContentStream, Line, Lines},
    kinds::{ArtifactKind, Asked, Csv, Index, Json, Markdown, Query, Start, arguments},
    page::{Answer, Items, Page},
    spooler::CallArtifacts,
    stores::{FileStore, MemoryStore},
    tools::{
        ARTIFACT_QUERY, ARTIFACT_READ, ARTIFACT_SEARCH, ARTIFACT_TOOLS, ForgeError, forge_tools,
    },
    turn::TurnArtifacts,
    writer::{ArtifactWriter, Unkept},
};
