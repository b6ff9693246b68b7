//! Finds the tools for a need: "refund a duplicate charge" finds `refund_payment`.
//!
//! An [`Index`] of tools is immutable and in memory. It reads the texts that a model would read:
//! name, description, parameters. It needs no model and no network. The same tools and the same
//! need give the same list.
//!
//! The score is BM25 with a weight per [field](Field), after Robertson, Zaragoza and Taylor,
//! "Simple BM25 extension to multiple weighted fields" (2004). Names are split at case and
//! punctuation, words are stemmed, and character trigrams find joined or misspelled names. A small
//! table of general words counts another word for the same thing as less than the word itself. The
//! [weights](Weights) were chosen over several catalogs: see `docs/tool-search.md`. A host may add an
//! [`Encoder`].
//!
//! ```
//! use toolcrib_core::Tool;
//! use toolcrib_search::Index;
//!
//! # fn main() -> Result<(), toolcrib_core::InvalidToolError> {
//! let tool = |name, description| {
//!     Tool::builder(name)
//!         .description(description)
//!         .input_schema(serde_json::json!({ "type": "object" }))
//!         .handler(|_: serde_json::Value, _| async { "done" })
//! };
//! let index = Index::new(&[
//!     tool("find_order", "Looks up an order by its number.")?,
//!     tool("refund_payment", "Returns the money of a charge.")?,
//! ]);
//! let hits = index.search("refunding a charge", 3);
//! assert_eq!(hits[0].tool.name(), "refund_payment");
//! # Ok(())
//! # }
//! ```

mod concepts;
mod encoder;
mod fields;
mod index;
mod need;
mod segment;
mod stem;
mod update;
mod weights;
mod words;

pub use self::{
    encoder::{EncodeError, Encoded, Encoder},
    fields::{Field, first_sentence},
    index::{Hit, Index, Ranking},
    need::LONGEST_NEED,
    weights::Weights,
    words::without_words_of,
};
