//! OpenAI's Responses. Key, list of models and refusals are those of Chat Completions.

mod reply;
mod request;

pub(crate) use self::{
    reply::{stream, whole},
    request::read,
};

/// How what the model thought is sealed here. Only what this server has sealed may come back.
const SEAL: &str = "sealed.";

/// What the id of an item begins with, behind its kind, if it must come back with what was thought
/// before it.
const PAIRED: &str = "p";
