//! The values of the attribute's options, checked where they are written.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Expr, ExprArray, ExprLit, Lit, LitStr, Meta, Path};

/// Maximum length of a name in model APIs.
const MAX_NAME: usize = 64;

/// The minimum cap of a result, as in `ToolBuilder::MIN_RESULT_CHARS`.
const MIN_RESULT_CHARS: usize = 100;

/// The maximum timeout, as in a project file: a day.
const MAX_TIMEOUT_MS: u128 = 24 * 60 * 60 * 1000;

/// An option without a value.
pub(crate) fn flag(meta: &Meta) -> syn::Result<()> {
    match meta {
        Meta::Path(_) => Ok(()),
        other => {
            let name = other.path().to_token_stream();
            Err(syn::Error::new_spanned(other, format!("`{name}` takes no value")))
        }
    }
}

/// The value after `=`.
pub(crate) fn value<'a>(meta: &'a Meta, example: &str) -> syn::Result<&'a Expr> {
    match meta {
        Meta::NameValue(pair) => Ok(&pair.value),
        other => Err(syn::Error::new_spanned(other, format!("write `{example}`"))),
    }
}

/// A non-blank string.
pub(crate) fn text(meta: &Meta, example: &str) -> syn::Result<LitStr> {
    let value = value(meta, example)?;
    let Some(text) = literal(value) else {
        return Err(syn::Error::new_spanned(value, format!("write a string: `{example}`")));
    };
    if text.value().trim().is_empty() {
        return Err(syn::Error::new_spanned(text, format!("this is blank; write `{example}`")));
    }
    Ok(text)
}

/// A string, or a macro that expands to one, such as `include_str!("find.md")`.
pub(crate) fn text_or_macro(meta: &Meta, example: &str) -> syn::Result<TokenStream> {
    match value(meta, example)? {
        Expr::Macro(call) => Ok(call.to_token_stream()),
        _ => text(meta, example).map(ToTokens::into_token_stream),
    }
}

/// Whether model APIs accept the name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let problem = if let Some(bad) =
        name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
    {
        format!("it contains {bad:?}")
    } else if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > MAX_NAME {
        format!("it has {} characters", name.len())
    } else {
        return Ok(());
    };
    Err(format!(
        "`{}` is not a tool name: {problem}; use 1 to {MAX_NAME} of the characters a-z, A-Z, 0-9, \
         `_` and `-`",
        name.escape_debug()
    ))
}

pub(crate) fn name(meta: &Meta) -> syn::Result<LitStr> {
    let name = text(meta, "name = \"find_order\"")?;
    check_name(&name.value()).map_err(|problem| syn::Error::new_spanned(&name, problem))?;
    Ok(name)
}

/// The path of the crate `toolcrib`.
pub(crate) fn path(meta: &Meta) -> syn::Result<Path> {
    const EXAMPLE: &str = "crate = \"my_crate::toolcrib\"";
    let text = text(meta, EXAMPLE)?;
    text.parse().map_err(|_| syn::Error::new_spanned(text, format!("write a path: `{EXAMPLE}`")))
}

/// A timeout as an expression.
pub(crate) fn timeout(meta: &Meta) -> syn::Result<TokenStream> {
    let text = match value(meta, "timeout = \"30s\"")? {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => {
            let message = format!("write a string with a unit: `timeout = \"{number}s\"`");
            return Err(syn::Error::new_spanned(number, message));
        }
        _ => text(meta, "timeout = \"30s\"")?,
    };
    let problem = match humantime::parse_duration(&text.value()) {
        Ok(time) if time.as_millis() == 0 => "is zero; the tool would end before it began".into(),
        Ok(time) if time.as_millis() > MAX_TIMEOUT_MS => "is longer than a day".into(),
        Ok(time) => {
            let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
            return Ok(quote!(::core::time::Duration::new(#seconds, #nanos)));
        }
        Err(error) => format!("is not a duration: {error}"),
    };
    let message = format!(
        "{:?} {problem}; write a duration such as \"500ms\", \"30s\" or \"5m\"",
        text.value()
    );
    Err(syn::Error::new_spanned(text, message))
}

/// An availability check: a path of a function, or a closure.
pub(crate) fn check(meta: &Meta) -> syn::Result<&Expr> {
    const EXAMPLE: &str = "available_if = has_printer";
    let value = value(meta, EXAMPLE)?;
    match value {
        Expr::Path(_) | Expr::Closure(_) => Ok(value),
        Expr::Call(call) if call.args.is_empty() => {
            let message = format!("name the function, do not call it: `{EXAMPLE}`");
            Err(syn::Error::new_spanned(call, message))
        }
        other => Err(syn::Error::new_spanned(
            other,
            format!(
                "write the name of a function without arguments that returns `bool` or \
                 `Result<(), reason>`: `{EXAMPLE}`"
            ),
        )),
    }
}

/// A number of characters.
pub(crate) fn characters(meta: &Meta) -> syn::Result<usize> {
    const EXAMPLE: &str = "max_result_chars = 8000";
    let value = value(meta, EXAMPLE)?;
    let number = match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        _ => None,
    };
    number.filter(|number| *number >= MIN_RESULT_CHARS).ok_or_else(|| {
        syn::Error::new_spanned(
            value,
            format!("write a number of characters, at least {MIN_RESULT_CHARS}: `{EXAMPLE}`"),
        )
    })
}

/// One of a few words; returns it as the name of a variant.
pub(crate) fn variant(meta: &Meta, words: &[&str]) -> syn::Result<Ident> {
    let name = meta.path().to_token_stream();
    let choices: Vec<_> = words.iter().map(|word| format!("`{name} = \"{word}\"`")).collect();
    let choices = choices.join(" or ");
    let value = value(meta, choices.trim_matches('`'))?;
    literal(value)
        .filter(|text| words.contains(&&*text.value()))
        .map(|text| {
            let word = text.value();
            let (first, rest) = word.split_at(1);
            format_ident!("{}{rest}", first.to_ascii_uppercase())
        })
        .ok_or_else(|| syn::Error::new_spanned(value, format!("write {choices}")))
}

/// `["a", "b"]`.
pub(crate) fn texts(meta: &Meta, example: &str) -> syn::Result<Vec<LitStr>> {
    let value = value(meta, example)?;
    let wrong = |at: &dyn ToTokens| {
        syn::Error::new_spanned(at, format!("write a list of strings: `{example}`"))
    };
    let Expr::Array(ExprArray { elems, .. }) = value else {
        return Err(wrong(value));
    };
    elems
        .iter()
        .map(|element| {
            literal(element)
                .filter(|text| !text.value().trim().is_empty())
                .ok_or_else(|| wrong(element))
        })
        .collect()
}

fn literal(value: &Expr) -> Option<LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
        _ => None,
    }
}
