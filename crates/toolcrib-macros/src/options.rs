//! Options of the attribute: `#[tool(read_only, timeout = "30s")]`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{LitStr, Meta, Path, Token, parse::Parser, parse_quote, punctuated::Punctuated};

use crate::{mistakes::Mistakes, values};

/// All options.
const KNOWN: [&str; 18] = [
    "name",
    "description",
    "toolset",
    "read_only",
    "destructive",
    "idempotent",
    "sequential",
    "inline",
    "dry_run",
    "untrusted",
    "always_include",
    "available_if",
    "timeout",
    "max_result_chars",
    "ephemeral",
    "on_collision",
    "capabilities",
    "crate",
];

/// All words of `capabilities(…)`, as in `Capabilities`, each with an example.
const CAPABILITIES: [(&str, &str); 13] = [
    ("network", "network = [\"api.example.com\"]"),
    ("process", "process = [\"git\"]"),
    ("secrets", "secrets = [\"WEATHER_KEY\"]"),
    ("files", "files = [\"notes\"]"),
    ("write_files", "write_files = [\"notes\"]"),
    ("kv", "kv = [\"session\"]"),
    ("optional_kv", "optional_kv = [\"session\"]"),
    ("storage", "storage"),
    ("optional_storage", "optional_storage"),
    ("person", "person"),
    ("agents", "agents"),
    ("attachments", "attachments"),
    ("team", "team"),
];

/// The scopes of keys and values, as in `KvScope`, and their variants.
const KV_SCOPES: [(&str, &str); 3] =
    [("tool", "Tool"), ("session", "Session"), ("principal", "Principal")];

/// The options of one tool.
pub(crate) struct Options {
    /// The name, if it differs from the function's.
    pub(crate) name: Option<LitStr>,
    /// The description, if it is not the doc comment.
    pub(crate) description: Option<TokenStream>,
    /// The path of `toolcrib`.
    pub(crate) krate: Path,
    /// Calls of the builder's methods for all other options.
    pub(crate) calls: TokenStream,
}

impl Options {
    /// Parses the options of a tool. Valid ones are kept despite errors, so that the rest is
    /// checked too.
    pub(crate) fn read(attribute: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut options = Self {
            name: None,
            description: None,
            krate: parse_quote!(::toolcrib),
            calls: TokenStream::new(),
        };
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attribute);
        let metas = mistakes.take(metas).unwrap_or_default();
        // The other options refer to it, regardless of its position.
        if let Some(meta) = metas.iter().find(|meta| meta.path().is_ident("crate"))
            && let Some(krate) = mistakes.take(values::path(meta))
        {
            options.krate = krate;
        }
        let mut seen: Vec<(String, &Path)> = Vec::new();
        for meta in &metas {
            let option = spelled(meta.path());
            if seen.iter().any(|(before, _)| *before == option) {
                mistakes.at(meta.path(), format!("`{option}` appears twice"));
                continue;
            }
            mistakes.take(options.take(&option, meta));
            seen.push((option, meta.path()));
        }
        if seen.iter().any(|(option, _)| option == "read_only")
            && let Some((_, destructive)) = seen.iter().find(|(option, _)| option == "destructive")
        {
            mistakes.at(
                destructive,
                "a tool that is `read_only` destroys nothing; keep one of the two",
            );
        }
        options
    }

    /// Parses the options of an impl block: only the path of `toolcrib`.
    pub(crate) fn of_block(attribute: TokenStream, mistakes: &mut Mistakes) -> Path {
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attribute);
        let mut krate = parse_quote!(::toolcrib);
        for meta in mistakes.take(metas).unwrap_or_default() {
            if !meta.path().is_ident("crate") {
                mistakes.at(
                    meta.path(),
                    "this option applies to a single tool: write it on the method",
                );
            } else if let Some(path) = mistakes.take(values::path(&meta)) {
                krate = path;
            }
        }
        krate
    }

    fn take(&mut self, option: &str, meta: &Meta) -> syn::Result<()> {
        let krate = &self.krate;
        let argument = match option {
            "crate" => return Ok(()),
            "name" => {
                self.name = Some(values::name(meta)?);
                return Ok(());
            }
            "description" => {
                let example = "description = \"The state of an order.\"";
                self.description = Some(values::text_or_macro(meta, example)?);
                return Ok(());
            }
            "read_only" | "destructive" | "idempotent" | "sequential" | "inline" | "dry_run"
            | "untrusted" | "always_include" => {
                values::flag(meta)?;
                TokenStream::new()
            }
            "toolset" => values::text(meta, "toolset = \"billing\"")?.to_token_stream(),
            "timeout" => values::timeout(meta)?.to_token_stream(),
            "max_result_chars" => values::characters(meta)?.to_token_stream(),
            "available_if" => values::check(meta)?.to_token_stream(),
            "ephemeral" => {
                let lifetime = match meta {
                    Meta::Path(_) => format_ident!("Iteration"),
                    other => values::variant(other, &["iteration", "turn", "session"])?,
                };
                quote!(#krate::tool::Lifetime::#lifetime)
            }
            "on_collision" => {
                let collision = values::variant(meta, &["fail", "keep", "replace"])?;
                quote!(#krate::tool::OnCollision::#collision)
            }
            "capabilities" => {
                let kinds = capabilities(meta, krate)?;
                quote!(#krate::tool::Capabilities::none() #kinds)
            }
            word if CAPABILITIES.iter().any(|(capability, _)| *capability == word) => {
                let message = format!(
                    "`{word}` is a capability; write `capabilities({})`",
                    meta.to_token_stream().to_string().replace("[ ", "[").replace(" ]", "]"),
                );
                return Err(syn::Error::new_spanned(meta.path(), message));
            }
            _ => return Err(unknown(meta.path(), "an option of `#[tool]`", &KNOWN)),
        };
        let method = meta.path();
        self.calls.extend(quote!(.#method(#argument)));
        Ok(())
    }
}

/// `capabilities(network = ["api.example.com"], person)` as calls of the methods of `Capabilities`.
fn capabilities(meta: &Meta, krate: &Path) -> syn::Result<TokenStream> {
    let known = CAPABILITIES.map(|(word, _)| word);
    let Meta::List(list) = meta else {
        let message = format!(
            "write `capabilities(network = [\"api.example.com\"])`; valid words: {}",
            quoted(&known)
        );
        return Err(syn::Error::new_spanned(meta, message));
    };
    let mut mistakes = Mistakes::default();
    let mut calls = TokenStream::new();
    let mut seen: Vec<String> = Vec::new();
    let metas = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
    for meta in &metas {
        let path = meta.path();
        let word = spelled(path);
        let Some((_, example)) = CAPABILITIES.iter().find(|(known, _)| *known == word) else {
            mistakes.add(unknown(path, "a capability", &known));
            continue;
        };
        if seen.contains(&word) {
            mistakes.at(path, format!("`{word}` appears twice"));
        }
        let arguments = match word.as_str() {
            "kv" | "optional_kv" => kv_scopes(meta, example, krate),
            _ if !example.contains('=') => values::flag(meta).map(|()| TokenStream::new()),
            _ => values::texts(meta, example).map(|texts| quote!([#(#texts),*])),
        };
        if let Some(arguments) = mistakes.take(arguments) {
            calls.extend(quote!(.#path(#arguments)));
        }
        seen.push(word);
    }
    mistakes.finish(calls)
}

/// `["session", "principal"]` as a list of `KvScope`.
fn kv_scopes(meta: &Meta, example: &str, krate: &Path) -> syn::Result<TokenStream> {
    let texts = values::texts(meta, example)?;
    let scope = |text: &LitStr| {
        let known = KV_SCOPES.iter().find(|(word, _)| *word == text.value());
        let Some((_, variant)) = known else {
            let message = format!(
                "{:?} is not a scope of keys and values; valid: {}",
                text.value(),
                quoted(&KV_SCOPES.map(|(word, _)| word))
            );
            return Err(syn::Error::new_spanned(text, message));
        };
        let variant = Ident::new(variant, text.span());
        Ok(quote!(#krate::tool::KvScope::#variant))
    };
    let scopes: Vec<_> = texts.iter().map(scope).collect::<syn::Result<_>>()?;
    Ok(quote!([#(#scopes),*]))
}

/// Words in a message.
fn quoted(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// An error with the list of valid names and a suggestion.
fn unknown(path: &Path, what: &str, known: &[&str]) -> syn::Error {
    let name = spelled(path);
    let near = known
        .iter()
        .map(|word| (word, strsim::jaro_winkler(&name.to_lowercase(), word)))
        .filter(|(_, alike)| *alike >= 0.8)
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .map(|(word, _)| format!("did you mean `{word}`? "))
        .unwrap_or_default();
    let list = quoted(known);
    syn::Error::new_spanned(path, format!("`{name}` is not {what}; {near}valid: {list}"))
}

fn spelled(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}
