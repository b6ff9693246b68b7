//! Schemas of arguments, in a form that vendors accept.
//!
//! Some vendors refuse a whole request because of one tool's schema, others hide unsupported parts
//! from the model. This module converts such parts to equivalent forms; each vendor's own `schema`
//! selects the conversions. The result is only shown to the model: arguments are validated against
//! the author's schema.
//!
//! ```text
//! walk        the keywords that contain schemas, and a traversal of them
//! references  a `$ref` -> its target, with a limit
//! modern      drafts before 2020-12 -> 2020-12
//! root        alternatives at the root -> its properties, and words
//! plain       a schema -> few keywords, without references
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

/// Maximum nesting of schemas; deeper ones are omitted. Written out, a level is two of JSON, and
/// Google's parser accepts a hundred in total.
const MAX_LEVELS: usize = 32;
