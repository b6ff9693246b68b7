//! Schemas of arguments, in words that vendors take.
//!
//! Some vendors refuse a whole request for one tool whose schema they do not take, others keep from
//! the model what they do not pass on. The same in other words stands here, and which of it a vendor
//! wants, in its own `schema`. All of it is for the model's eyes only: arguments are checked against
//! the schema as its author wrote it.
//!
//! ```text
//! walk        which keywords hold schemas, and a way through all of them
//! references  a `$ref` -> what it refers to, with an end
//! modern      drafts before 2020-12 -> 2020-12
//! root        alternatives at the root -> its properties, and words
//! plain       all of it -> few keywords, without references
//! ```

mod modern;
mod plain;
mod references;
mod root;
mod walk;

pub(super) use self::{
    modern::modern,
    plain::plain,
    root::{flatten, in_words},
    walk::change_each,
};

/// The keywords of a schema.
pub(super) type Keywords = serde_json::Map<String, serde_json::Value>;

/// How deep one schema is followed into another; what is below is left out. Written out, a level is
/// two of JSON, of which Google's parser takes a hundred in all.
const MAX_LEVELS: usize = 32;
