//! ```
//! use toolcrib::skills::{Skill, Skills};
//!
//! let refunds = Skill::new("refunds", "Refunds of charges.", "Look the charge up first.")
//!     .tools(["find_charge", "refund"]);
//! let skills = Skills::new(vec![refunds])?;
//! assert!(skills.get("refunds").is_some());
//! # Ok::<(), toolcrib::skills::InvalidSkillError>(())
//! ```
//!
//! A skill is an instruction that the model activates, with tools that are offered while it is active
//! and, where their order matters, steps. `EngineBuilder::skills` takes them; `project` reads them from
//! folders. Without the feature `engine`, this module has only the ids.

#[doc(inline)]
pub use toolcrib_core::names::{BlankSkillIdError, SkillId};
#[cfg(feature = "engine")]
#[doc(inline)]
pub use toolcrib_engine::skills::*;
