//! Expansion of impl blocks: adds a method `tools` that makes a tool of each `#[tool]` method.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, FnArg, ImplItem, ImplItemFn, ItemImpl, Visibility, ext::IdentExt};

use crate::{mistakes::Mistakes, options::Options, parameters};

/// The block with `tools` added; or the block unchanged, and the errors.
pub(crate) fn expand(attribute: TokenStream, mut block: ItemImpl) -> TokenStream {
    if let Some((path, _)) = &block.trait_ {
        let message = "`#[tool]` needs an inherent impl block, not one of a trait";
        let mistake = syn::Error::new_spanned(path, message).into_compile_error();
        // `#[tool]` attributes and attributes on parameters are removed, because they would cause
        // follow-up errors.
        for item in &mut block.items {
            if let ImplItem::Fn(method) = item
                && method.attrs.iter().any(is_tool)
            {
                method.attrs.retain(|attr| !is_tool(attr));
                parameters::take(&mut method.sig, &mut Mistakes::default());
            }
        }
        return quote!(#block #mistake);
    }
    match tools(attribute, &block) {
        Ok(tools) => {
            block.items.push(ImplItem::Verbatim(tools));
            quote!(#block)
        }
        Err(mistakes) => {
            let mistakes = mistakes.into_compile_error();
            quote!(#block #mistakes)
        }
    }
}

/// The method `tools`.
fn tools(attribute: TokenStream, block: &ItemImpl) -> syn::Result<TokenStream> {
    let mut mistakes = Mistakes::default();
    let krate = Options::of_block(attribute, &mut mistakes);
    let methods: Vec<&ImplItemFn> = block
        .items
        .iter()
        .filter_map(|item| match item {
            ImplItem::Fn(method) if method.attrs.iter().any(is_tool) => Some(method),
            _ => None,
        })
        .collect();
    if methods.is_empty() {
        mistakes.at(
            &block.self_ty,
            "no method of this block is a tool; write `#[tool]` before at least one",
        );
    }
    for method in &methods {
        check(method, &mut mistakes);
    }
    let makers = methods.iter().map(|method| {
        let cfgs = method.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
        let maker = format_ident!("{}_tool", method.sig.ident.unraw());
        quote!(#(#cfgs)* self.#maker())
    });
    let vis = widest(&methods);
    mistakes.finish(quote! {
        /// Makes all tools of this block, in the order of declaration. Each one shares this value.
        #vis fn tools(
            self: &::std::sync::Arc<Self>,
        ) -> ::std::vec::Vec<#krate::Tool> {
            ::std::vec::Vec::from([#(#makers),*])
        }
    })
}

fn is_tool(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == "tool")
}

/// Checks the requirements of `tools`. All others are checked where the method itself is expanded.
fn check(method: &ImplItemFn, mistakes: &mut Mistakes) {
    if method.sig.receiver().is_none() {
        mistakes.at(
            &method.sig.ident,
            "a tool in an impl block takes `&self`; move a function without it out of the block",
        );
    }
    for input in &method.sig.inputs {
        if let FnArg::Typed(input) = input
            && parameters::is_state(&input.ty)
        {
            mistakes.at(&input.ty, "`tools` cannot pass a `State`: keep the value in `self`");
        }
    }
}

/// The visibility of the most visible method: callers of one tool can see the others.
fn widest(methods: &[&ImplItemFn]) -> Visibility {
    let rank = |vis: &Visibility| match vis {
        Visibility::Public(_) => 2,
        Visibility::Restricted(_) => 1,
        Visibility::Inherited => 0,
    };
    methods
        .iter()
        .map(|method| &method.vis)
        .rev()
        .max_by_key(|vis| rank(vis))
        .cloned()
        .unwrap_or(Visibility::Inherited)
}
