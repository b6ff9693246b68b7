//! ```
//! use toolcrib::{Engine, artifacts::{Artifacts, MemoryStore}};
//!
//! let artifacts = Artifacts::new(MemoryStore::new());
//! let engine = Engine::builder().artifacts(artifacts).build()?;
//! # Ok::<(), toolcrib::engine::BuildError>(())
//! ```
//!
//! An artifact is a stored result, and the tools that read it piece by piece. This module has the ports
//! [`ArtifactPort`] and [`ArtifactStore`]; the feature `artifacts` adds stores, kinds and tools.

#[cfg(feature = "artifacts")]
#[doc(inline)]
pub use toolcrib_artifacts::*;
#[doc(inline)]
pub use toolcrib_core::artifacts::*;
