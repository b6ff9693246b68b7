//! The parameters of a function and their roles.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, Expr, FnArg, GenericArgument, Pat, PatIdent, PatType, PathArguments, PathSegment,
    Signature, Token, Type, meta::ParseNestedMeta, token::Paren,
};

use crate::{description, mistakes::Mistakes};

/// One parameter.
pub(crate) struct Parameter {
    /// `cfg` attributes of the parameter.
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    /// An argument of the tool: a property of its schema.
    Argument {
        name: Ident,
        /// Attributes for serde and schemars.
        attrs: Vec<Attribute>,
        /// The doc comment.
        description: Option<TokenStream>,
        ty: Type,
    },
    /// All arguments as one type: `Args<T>`.
    Arguments(Type),
    /// State that the tool is made with.
    State { name: Ident, ty: Type },
    /// The call's `ToolContext`.
    Context,
}

/// Classifies the parameters, and removes attributes that are not valid on parameters.
pub(crate) fn take(sig: &mut Signature, mistakes: &mut Mistakes) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for (position, input) in sig.inputs.iter_mut().enumerate() {
        if let FnArg::Typed(input) = input {
            parameters.extend(mistakes.take(parameter(input, position)));
        }
    }
    check_together(sig, &parameters, mistakes);
    parameters
}

fn parameter(input: &mut PatType, position: usize) -> syn::Result<Parameter> {
    let attrs = std::mem::take(&mut input.attrs);
    let (attrs, others): (Vec<_>, Vec<_>) = attrs.into_iter().partition(is_of_field);
    let cfgs = others.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
    input.attrs = others;

    let kind = if let Some(ty) = wrapped(&input.ty, "State") {
        no_field(&attrs, "`State` is not part of the tool's schema")?;
        let name = named(&input.pat).cloned();
        let name = name.unwrap_or_else(|| format_ident!("state_{position}"));
        Kind::State { name, ty: ty.clone() }
    } else if let Some(ty) = wrapped(&input.ty, "Args") {
        no_field(&attrs, "write it in the type; its own schema is the tool's")?;
        check_owned(ty)?;
        Kind::Arguments(ty.clone())
    } else if is_context(&input.ty) {
        no_field(&attrs, "the context is not part of the tool's schema")?;
        Kind::Context
    } else {
        if let Type::Reference(reference) = &*input.ty
            && is_context(&reference.elem)
        {
            return Err(syn::Error::new_spanned(
                &input.ty,
                "take the `ToolContext` itself; it is cheap to clone",
            ));
        }
        check_owned(&input.ty)?;
        check_serde(&attrs)?;
        let Pat::Ident(PatIdent { ident, subpat: None, by_ref: None, .. }) = &*input.pat else {
            return Err(syn::Error::new_spanned(
                &input.pat,
                "name the argument: models pass it by name",
            ));
        };
        let description = description::written(&attrs).filter(|_| !has_description(&attrs));
        let attrs = attrs.into_iter().filter(|attr| !attr.path().is_ident("doc")).collect();
        Kind::Argument { name: ident.clone(), attrs, description, ty: (*input.ty).clone() }
    };
    Ok(Parameter { cfgs, kind })
}

/// Checks the combination of all parameters.
fn check_together(sig: &Signature, parameters: &[Parameter], mistakes: &mut Mistakes) {
    let mut all = sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) if wrapped(&input.ty, "Args").is_some() => Some(input),
        _ => None,
    });
    let whole = all.next();
    for second in all {
        mistakes.at(&second.ty, "the first `Args` already contains all arguments");
    }
    let mut contexts = sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) if is_context(&input.ty) => Some(input),
        _ => None,
    });
    contexts.next();
    for second in contexts {
        mistakes.at(&second.ty, "a call has only one `ToolContext`; take it once");
    }
    let Some(whole) = whole else {
        return;
    };
    for parameter in parameters {
        if let Kind::Argument { name, .. } = &parameter.kind {
            let whole = wrapped(&whole.ty, "Args").to_token_stream();
            mistakes
                .at(name, format!("`Args` contains all arguments: move `{name}` into `{whole}`"));
        }
    }
}

/// Whether an attribute belongs on the generated field.
fn is_of_field(attr: &Attribute) -> bool {
    ["doc", "serde", "schemars"].iter().any(|name| attr.path().is_ident(name))
}

/// Whether schemars has an explicit description, which overrides the doc comment.
fn has_description(attrs: &[Attribute]) -> bool {
    let mut found = false;
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("schemars")) {
        // Parse errors are left to schemars.
        let _ = each_meta(attr, |meta| {
            found |= meta.path.is_ident("description");
            Ok(())
        });
    }
    found
}

/// Visits each `name`, `name = value` and `name(…)` in an attribute.
fn each_meta(
    attr: &Attribute,
    mut look: impl FnMut(&ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    attr.parse_nested_meta(|meta| {
        look(&meta)?;
        if meta.input.peek(Token![=]) {
            meta.value()?.parse::<Expr>()?;
        } else if meta.input.peek(Paren) {
            meta.input.parse::<TokenTree>()?;
        }
        Ok(())
    })
}

fn no_field(attrs: &[Attribute], why: &str) -> syn::Result<()> {
    match attrs.iter().find(|attr| !attr.path().is_ident("doc")) {
        None => Ok(()),
        Some(attr) => {
            Err(syn::Error::new_spanned(attr, format!("this attribute has no effect here: {why}")))
        }
    }
}

fn check_serde(attrs: &[Attribute]) -> syn::Result<()> {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        each_meta(attr, |meta| {
            if meta.path.is_ident("flatten") {
                return Err(meta.error(
                    "an argument cannot be flattened: the schema is closed; take all arguments \
                     as one type, `Args<T>`",
                ));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// `T`, if the type is `NAME<T>`.
fn wrapped<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    let mut arguments = arguments.args.iter();
    match (arguments.next(), arguments.next()) {
        (Some(GenericArgument::Type(ty)), None) => Some(ty),
        _ => None,
    }
}

pub(crate) fn is_state(ty: &Type) -> bool {
    wrapped(ty, "State").is_some()
}

fn is_context(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|segment| segment.ident == "ToolContext")
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        // A `macro_rules` may wrap its arguments in an invisible group.
        Type::Group(group) => last_segment(&group.elem),
        _ => None,
    }
}

/// The name in `pool` and in `State(pool)`.
fn named(pattern: &Pat) -> Option<&Ident> {
    match pattern {
        Pat::Ident(name) => Some(&name.ident),
        Pat::TupleStruct(wrapper) if wrapper.elems.len() == 1 => named(wrapper.elems.first()?),
        _ => None,
    }
}

/// Arguments are deserialized from JSON: they own their data, and their type must be known outside
/// the function.
fn check_owned(ty: &Type) -> syn::Result<()> {
    let mut ahead = vec![ty.to_token_stream().into_iter()];
    while let Some(tokens) = ahead.last_mut() {
        let Some(token) = tokens.next() else {
            ahead.pop();
            continue;
        };
        let problem = match &token {
            TokenTree::Punct(punct) if punct.as_char() == '&' => {
                let owned = instead_of(tokens.clone());
                let referent = tokens.next();
                return Err(syn::Error::new_spanned(
                    quote!(#token #referent),
                    format!("an argument must own its data: {owned}"),
                ));
            }
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                "an argument must own its data: take a type without a lifetime"
            }
            TokenTree::Ident(ident) if ident == "impl" => {
                "use a concrete type: the schema is made of it"
            }
            TokenTree::Ident(ident) if ident == "Self" => {
                "use a concrete type: `Self` is unknown where the schema is made"
            }
            TokenTree::Group(group) => {
                ahead.push(group.stream().into_iter());
                continue;
            }
            _ => continue,
        };
        return Err(syn::Error::new_spanned(token, problem));
    }
    Ok(())
}

/// The suggested replacement for a reference.
fn instead_of(mut referent: impl Iterator<Item = TokenTree>) -> &'static str {
    loop {
        return match referent.next() {
            // The lifetime and `mut` make no difference.
            Some(TokenTree::Punct(punct)) if punct.as_char() == '\'' => {
                referent.next();
                continue;
            }
            Some(TokenTree::Ident(ident)) if ident == "mut" => continue,
            Some(TokenTree::Ident(ident)) if ident == "str" => "take a `String`",
            Some(TokenTree::Ident(ident)) if ident == "Path" => "take a `PathBuf`",
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
                "take a `Vec`"
            }
            _ => "take the value, not a reference to it",
        };
    }
}
