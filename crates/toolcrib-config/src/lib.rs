//! Reads TOML with the place of each value: every problem is recorded with file, line, column and,
//! if known, a suggested fix, and reading continues.
//!
//! ```text
//! Document  a file's text         -> the places in it, and its top level as a Table
//! Table     a table, key by key   -> Values; unknown keys are reported
//! Value     one value             -> a text, a number, a list, … with its place (Located)
//! Problems  where all of them put what is wrong -> Diagnostics, in the order of the file
//! suggest   a word that is not known -> the known one that was probably meant
//! ```
//!
//! Independent of the file's purpose. Readers of other formats can use the places and diagnostics
//! alone; `yaml` (feature) reads YAML part by part.
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
mod frontmatter;
mod places;
mod problems;
mod range;
mod size;
mod spot;
pub mod suggest;
mod table;
mod value;
#[cfg(feature = "yaml")]
pub mod yaml;

pub use self::{
    diagnostic::{Diagnostic, Diagnostics, Help, Severity},
    document::Document,
    frontmatter::split_frontmatter,
    places::{Places, pointer_step},
    problems::Problems,
    spot::{Located, Spot},
    table::Table,
    value::{MAX_DURATION, Value},
};
