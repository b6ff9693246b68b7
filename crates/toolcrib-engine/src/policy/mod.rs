//! Decisions.

pub(crate) mod halt;
pub(crate) mod judge;
pub(crate) mod person;
pub(crate) mod questions;

pub use self::{
    halt::HaltedByRule,
    questions::{AnswerError, NotAnsweredError, OpenQuestion, Question, Questions},
};
