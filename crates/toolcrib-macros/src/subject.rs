//! The item under the attribute.

use proc_macro2::{Delimiter, Group, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, ItemImpl, Signature, Token, Visibility,
    parse::{Parse, ParseStream},
};

/// Items that `#[tool]` supports.
pub(crate) enum Subject {
    Function(Box<Function>),
    Block(Box<ItemImpl>),
}

/// A function or a method. Its body is not parsed.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

impl Parse for Subject {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ahead = input.fork();
        ahead.call(Attribute::parse_outer)?;
        if ahead.peek(Token![impl]) || ahead.peek(Token![unsafe]) && ahead.peek2(Token![impl]) {
            return Ok(Self::Block(input.parse()?));
        }
        ahead.parse::<Visibility>()?;
        let is_function = ahead.peek(Token![fn])
            || ahead.peek(Token![async])
            || ahead.peek(Token![const])
            || ahead.peek(Token![unsafe])
            || ahead.peek(Token![extern]);
        if is_function {
            Ok(Self::Function(input.parse()?))
        } else {
            Err(ahead.error("`#[tool]` applies to a function, a method or an impl block"))
        }
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let sig = input.parse()?;
        let body: Group = input
            .parse()
            .ok()
            .filter(|body: &Group| body.delimiter() == Delimiter::Brace)
            .ok_or_else(|| syn::Error::new_spanned(&sig, "a tool needs a body"))?;
        Ok(Self { attrs, vis, sig, body })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, vis, sig, body } = self;
        tokens.extend(quote!(#(#attrs)* #vis #sig #body));
    }
}
