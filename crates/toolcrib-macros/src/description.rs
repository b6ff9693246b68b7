//! Descriptions from doc comments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// A doc comment as an expression of `&'static str`; `None` if it is blank.
///
/// The lines stay unchanged, less the blank after `///`: a model reads Markdown as well as rustdoc
/// does.
pub(crate) fn written(attrs: &[Attribute]) -> Option<TokenStream> {
    let pieces: Vec<&Expr> = attrs.iter().filter_map(doc).collect();
    let literals: Option<Vec<String>> = pieces.iter().map(|piece| literal(piece)).collect();
    let Some(lines) = literals else {
        // Such as `#[doc = include_str!("find.md")]`: only the compiler knows the text.
        let lines = pieces.into_iter().map(|piece| match literal(piece) {
            Some(line) => quote!(#line),
            None => quote!(#piece),
        });
        return Some(quote!(::core::concat!(#(#lines, "\n"),*)));
    };
    let text = lines.join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| quote!(#text))
}

fn doc(attr: &Attribute) -> Option<&Expr> {
    match &attr.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => Some(&doc.value),
        _ => None,
    }
}

fn literal(piece: &Expr) -> Option<String> {
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = piece else {
        return None;
    };
    let line = text.value();
    Some(line.strip_prefix(' ').map_or_else(|| line.clone(), str::to_owned))
}
