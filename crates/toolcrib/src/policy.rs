//! ```
//! use toolcrib::{Engine, policy::{Approval, Policy, Rule, RuleConditions, call_approver}};
//!
//! let policy = Policy::of([
//!     Rule::deny("no refunds abroad").tools(["refund"]).when(RuleConditions::default().tenants(["abroad"])),
//!     Rule::ask("a person decides").tools(["refund"]).reason("money leaves the account"),
//! ]);
//! let approver = call_approver(|call| {
//!     let small = call.args["cents"].as_u64().is_some_and(|cents| cents < 500);
//!     async move { if small { Approval::Approved } else { Approval::Refused("too much".into()) } }
//! });
//! let engine = Engine::builder().policy(policy).approver(approver).build()?;
//! # Ok::<(), toolcrib::engine::BuildError>(())
//! ```
//!
//! A policy is an ordered list of rules; the first that matches decides which tools the model sees and
//! which calls run. An [`Approver`], or the answer to a `Question` of the turn, decides on calls that a rule asks about.
//! Neighbors: [`gated_tools`](crate::provider::gated_tools) decides in code which tools are listed;
//! [`middleware`](crate::middleware) decides in code on single calls.

pub mod approvals;

#[doc(inline)]
pub use toolcrib_core::policy::*;
#[cfg(feature = "engine")]
#[doc(inline)]
pub use toolcrib_engine::policy::*;
