//! Reads TOML with the place of everything: every problem is recorded with file, line, column and,
//! where it can be said, what to write instead, and reading goes on.
//!
//! ```text
//! Document  a file's text         -> the places in it, and its top level as a Table
//! Table     a table, key by key   -> Values; keys that nobody asked for are reported
//! Value     one value             -> a text, a number, a list, … with its place (Located)
//! Problems  where all of them put what is wrong -> Diagnostics, in the order of the file
//! suggest   a word that is not known -> the known one that was probably meant
//! ```
//!
//! Nothing here knows what a file is for. What is read from something else than TOML can use the
//! places and problems alone.
//!
//! ```
//! use toolcrib_config::{Document, Problems};
//!
//! let document = Document::new("shop.toml", "nmae = 'Hill'\n[[shelf]]\nwidth = 0\n");
//! let problems = Problems::new("shop.toml");
//! let shelves = document.read(&problems, |file| {
//!     let name = file.text("name");
//!     assert!(name.is_none());
//!     file.tables("shelf", |shelf| shelf.integer("width", 1..=300_u32))
//! });
//! assert_eq!(shelves, Some(vec![None]));
//! assert_eq!(
//!     problems.into_diagnostics().to_string(),
//!     "shop.toml:1:1: unknown key `nmae` in this file\n    \
//!      help: did you mean `name`?\n\
//!      shop.toml:3:9: `width` must be from 1 to 300"
//! );
//! ```

mod diagnostic;
mod document;
mod problems;
mod range;
mod size;
mod spot;
pub mod suggest;
mod table;
mod value;

pub use self::{
    diagnostic::{Diagnostic, Diagnostics, Help, Severity},
    document::Document,
    problems::Problems,
    spot::{Located, Spot},
    table::Table,
    value::{MAX_DURATION, Value},
};
