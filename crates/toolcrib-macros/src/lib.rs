//! The attribute [`macro@tool`]: makes tools of a function, a method or a whole impl block.
//!
//! The generated code refers to the facade `toolcrib`, which re-exports the macro as
//! `toolcrib::tool`; do not depend on this crate directly.

mod block;
mod body;
mod description;
mod function;
mod mistakes;
mod options;
mod parameters;
mod subject;
mod values;

use proc_macro::TokenStream;

use self::subject::Subject;

// `toolcrib` runs the examples: as dependencies of this crate, everything would be compiled again for
// the host.
#[cfg_attr(not(doctest), doc = include_str!("tool.md"))]
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match syn::parse::<Subject>(item.clone()) {
        Ok(Subject::Function(function)) => function::expand(attribute.into(), *function).into(),
        Ok(Subject::Block(block)) => block::expand(attribute.into(), *block).into(),
        // The item stays, so that there is one error and not one for each use of the item.
        Err(mistake) => {
            let mut tokens = item;
            tokens.extend(TokenStream::from(mistake.into_compile_error()));
            tokens
        }
    }
}
