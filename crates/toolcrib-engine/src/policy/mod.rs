//! Rules as a turn applies them, questions to people, and the halts of rules.

pub(crate) mod facts;
pub(crate) mod halt;
pub(crate) mod person;
pub(crate) mod questions;

pub use self::{
    halt::HaltedByRule,
    questions::{AnswerError, NotAnsweredError, OpenQuestion, Question, Questions},
};
