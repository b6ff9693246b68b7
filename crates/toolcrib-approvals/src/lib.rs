//! Approval of calls that a policy rule with the effect `ask` wants approved.
//!
//! - [`TerminalApprover`] asks the person at the terminal.
//! - [`Approvals`] parks calls in an [`ApprovalStore`](toolcrib_core::ApprovalStore) until a person
//!   decides from another process, and keeps standing grants.
//!
//! A decision from another process is sealed with an [`ApprovalKey`], which is outside of the
//! project. A row of the store without a valid seal decides nothing.
//!
//! # Layers
//!
//! - `approvals`, `parking`: parked calls, decisions on them and grants, and the approver that uses them.
//! - `terminal`: approval by the person at the terminal.
//! - `grant`: the arguments that a grant permits.
//! - `error`: why a decision cannot be made.
//! - `key`: the user's key, which seals decisions, and the marks of decisions that are over.
//! - `binding`: the digest of a call, which a decision is about.
#![allow(
    clippy::disallowed_methods,
    reason = "this is where the user's key is kept; no tool's body names a path here"
)]

mod approvals;
mod binding;
mod error;
mod grant;
mod key;
mod parking;
mod terminal;

pub use self::{
    approvals::{Approvals, Review},
    error::ApprovalError,
    grant::{GrantScope, InvalidConditionError},
    key::{ApprovalKey, ApprovalKeys, KeyError},
    parking::ParkingApprover,
    terminal::{TerminalAnswer, TerminalApprover, TerminalPrompts, shown_arguments},
};
