//! The attribute [`macro@tool`]: a function, a method or a whole impl block becomes a tool, or
//! several.
//!
//! What it writes refers to the facade `toolcrib`, which re-exports it as `toolcrib::tool`; nobody
//! depends on this crate by itself.

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

#[doc = include_str!("tool.md")]
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match syn::parse::<Subject>(item.clone()) {
        Ok(Subject::Function(function)) => function::expand(attribute.into(), *function).into(),
        Ok(Subject::Block(block)) => block::expand(attribute.into(), *block).into(),
        // Left as it is, so that there is one error and not one for each use of the item.
        Err(mistake) => {
            let mut tokens = item;
            tokens.extend(TokenStream::from(mistake.into_compile_error()));
            tokens
        }
    }
}
