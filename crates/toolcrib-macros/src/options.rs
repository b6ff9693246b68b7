//! What stands in the brackets: `#[tool(read_only, timeout = "30s")]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{LitStr, Meta, Path, Token, parse::Parser, parse_quote, punctuated::Punctuated};

use crate::{mistakes::Mistakes, values};

/// Everything that can stand there.
const KNOWN: [&str; 16] = [
    "name",
    "description",
    "toolset",
    "read_only",
    "destructive",
    "idempotent",
    "sequential",
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

/// Everything that can stand in `capabilities(…)`.
const CAPABILITIES: [&str; 3] = ["network", "process", "secrets"];

/// The options of one tool.
pub(crate) struct Options {
    /// The name, where it is not the function's.
    pub(crate) name: Option<LitStr>,
    /// The description, where it is not the doc comment.
    pub(crate) description: Option<TokenStream>,
    /// Where `toolcrib` is.
    pub(crate) krate: Path,
    /// Calls of the builder's methods, for all the others.
    pub(crate) calls: TokenStream,
}

impl Options {
    /// Reads the options of a tool. What can be read is kept beside mistakes, so that the rest is
    /// looked at too.
    pub(crate) fn read(attribute: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut options = Self {
            name: None,
            description: None,
            krate: parse_quote!(::toolcrib),
            calls: TokenStream::new(),
        };
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attribute);
        let metas = mistakes.take(metas).unwrap_or_default();
        // The others refer to it, wherever it stands.
        if let Some(meta) = metas.iter().find(|meta| meta.path().is_ident("crate"))
            && let Some(krate) = mistakes.take(values::path(meta))
        {
            options.krate = krate;
        }
        let mut seen: Vec<(String, &Path)> = Vec::new();
        for meta in &metas {
            let option = spelled(meta.path());
            if seen.iter().any(|(before, _)| *before == option) {
                mistakes.at(meta.path(), format!("`{option}` stands here twice"));
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

    /// Reads the options of an impl block, of which there is one: where `toolcrib` is.
    pub(crate) fn of_block(attribute: TokenStream, mistakes: &mut Mistakes) -> Path {
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attribute);
        let mut krate = parse_quote!(::toolcrib);
        for meta in mistakes.take(metas).unwrap_or_default() {
            if !meta.path().is_ident("crate") {
                mistakes.at(meta.path(), "this is said of each tool: write it at the method");
            } else if let Some(path) = mistakes.take(values::path(&meta)) {
                krate = path;
            }
        }
        krate
    }

    fn take(&mut self, option: &str, meta: &Meta) -> syn::Result<()> {
        let krate = &self.krate;
        let call = match option {
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
            "read_only" | "destructive" | "idempotent" | "sequential" | "untrusted"
            | "always_include" => {
                values::flag(meta)?;
                let method = meta.path();
                quote!(.#method())
            }
            "toolset" => {
                let toolset = values::text(meta, "toolset = \"billing\"")?;
                quote!(.toolset(#toolset))
            }
            "timeout" => {
                let timeout = values::timeout(meta)?;
                quote!(.timeout(#timeout))
            }
            "max_result_chars" => {
                let characters = values::characters(meta)?;
                quote!(.max_result_chars(#characters))
            }
            "ephemeral" => {
                let lifetime = match meta {
                    Meta::Path(_) => 0,
                    other => values::word(other, &["iteration", "turn", "session"])?,
                };
                let lifetime = match lifetime {
                    0 => quote!(Iteration),
                    1 => quote!(Turn),
                    _ => quote!(Session),
                };
                quote!(.ephemeral(#krate::Lifetime::#lifetime))
            }
            "on_collision" => {
                let collision = match values::word(meta, &["fail", "keep", "replace"])? {
                    0 => quote!(Fail),
                    1 => quote!(Keep),
                    _ => quote!(Replace),
                };
                quote!(.on_collision(#krate::OnCollision::#collision))
            }
            "available_if" => {
                let check = values::check(meta)?;
                quote!(.available_if(#check))
            }
            "capabilities" => {
                let kinds = capabilities(meta)?;
                quote!(.capabilities(#krate::Capabilities::none() #kinds))
            }
            kind if CAPABILITIES.contains(&kind) => {
                let message = format!(
                    "`{kind}` is a capability; write `capabilities({})`",
                    meta.to_token_stream().to_string().replace("[ ", "[").replace(" ]", "]"),
                );
                return Err(syn::Error::new_spanned(meta.path(), message));
            }
            _ => return Err(unknown(meta.path(), "an option of `#[tool]`", &KNOWN)),
        };
        self.calls.extend(call);
        Ok(())
    }
}

/// `capabilities(network = ["api.example.com"])` as calls of the methods of `Capabilities`.
fn capabilities(meta: &Meta) -> syn::Result<TokenStream> {
    let Meta::List(list) = meta else {
        return Err(syn::Error::new_spanned(
            meta,
            "write `capabilities(network = [\"api.example.com\"])`; besides `network` there are \
             `process` and `secrets`",
        ));
    };
    let mut mistakes = Mistakes::default();
    let mut calls = TokenStream::new();
    let mut seen: Vec<String> = Vec::new();
    let metas = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
    for meta in &metas {
        let path = meta.path();
        let kind = spelled(path);
        let example = match kind.as_str() {
            "network" => "network = [\"api.example.com\"]",
            "process" => "process = [\"git\"]",
            "secrets" => "secrets = [\"WEATHER_KEY\"]",
            _ => {
                mistakes.add(unknown(path, "a capability", &CAPABILITIES));
                continue;
            }
        };
        if seen.contains(&kind) {
            mistakes.at(path, format!("`{kind}` stands here twice"));
        }
        if let Some(texts) = mistakes.take(values::texts(meta, example)) {
            calls.extend(quote!(.#path([#(#texts),*])));
        }
        seen.push(kind);
    }
    mistakes.finish(calls)
}

/// Says what there is instead, and what was probably meant.
fn unknown(path: &Path, what: &str, known: &[&str]) -> syn::Error {
    let name = spelled(path);
    let list: Vec<_> = known.iter().map(|word| format!("`{word}`")).collect();
    let near = known
        .iter()
        .map(|word| (word, strsim::jaro_winkler(&name.to_lowercase(), word)))
        .filter(|(_, alike)| *alike >= 0.8)
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .map(|(word, _)| format!("did you mean `{word}`? "))
        .unwrap_or_default();
    let list = list.join(", ");
    syn::Error::new_spanned(path, format!("`{name}` is not {what}; {near}there are {list}"))
}

fn spelled(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}
