//! Expansion of functions and methods: the item itself and a function that makes its tool.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, FnArg, Ident, LitStr, ReceiverKind, Signature, ext::IdentExt};

use crate::{
    body::Body,
    description,
    mistakes::Mistakes,
    options::Options,
    parameters::{self, Kind},
    subject::Function,
    values,
};

/// The function and its maker; or the function and the errors.
pub(crate) fn expand(attribute: TokenStream, mut function: Function) -> TokenStream {
    let maker = maker(attribute, &mut function).unwrap_or_else(syn::Error::into_compile_error);
    quote!(#function #maker)
}

/// The function `NAME_tool`.
fn maker(attribute: TokenStream, function: &mut Function) -> syn::Result<TokenStream> {
    let mut mistakes = Mistakes::default();
    let options = Options::read(attribute, &mut mistakes);
    check_signature(&function.sig, &mut mistakes);
    let parameters = parameters::take(&mut function.sig, &mut mistakes);
    let Function { attrs, vis, sig, .. } = &*function;
    let name = name(&options, &sig.ident, &mut mistakes);
    let description = options.description.clone().or_else(|| description::written(attrs));
    if description.is_none() {
        mistakes.at(
            &sig.ident,
            "a tool needs a description, because models choose by it: write a doc comment (`/// \
             …`) above, or `#[tool(description = \"…\")]`",
        );
    }
    let body = mistakes.finish(Body {
        name: &name,
        description: description.as_ref(),
        options: &options,
        sig,
        parameters: &parameters,
    })?;

    let krate = &options.krate;
    let maker = format_ident!("{}_tool", sig.ident.unraw(), span = sig.ident.span());
    let receiver = sig.receiver().map(|_| quote!(self: &::std::sync::Arc<Self>,));
    let states = parameters.iter().filter_map(|parameter| match &parameter.kind {
        Kind::State { name, ty } => {
            let cfgs = &parameter.cfgs;
            Some(quote!(#(#cfgs)* #name: #ty))
        }
        _ => None,
    });
    let also = attrs.iter().filter(|attr| also_of_maker(attr));
    let doc = format!(
        "Makes the tool `{}`; its calls go to `{}`.\n\nWhere the arguments' schema is not that of an \
         object, which only `Args` can bring about, engines refuse the tool and menus withhold it.",
        name.value(),
        sig.ident,
    );
    let body = body.write();
    Ok(quote! {
        #(#also)*
        #[doc = #doc]
        #vis fn #maker(
            #receiver #(#states),*
        ) -> #krate::Tool {
            #body
        }
    })
}

/// The tool's name.
fn name(options: &Options, function: &Ident, mistakes: &mut Mistakes) -> LitStr {
    if let Some(name) = &options.name {
        return name.clone();
    }
    let name = function.unraw().to_string();
    if let Err(problem) = values::check_name(&name) {
        mistakes.at(function, format!("{problem}; name it in `#[tool(name = \"…\")]`"));
    }
    LitStr::new(&name, function.span())
}

fn check_signature(sig: &Signature, mistakes: &mut Mistakes) {
    const KIND: &str = "a tool is an `async fn` or an `fn`, without any other qualifier";
    if let Some(qualifier) = &sig.constness {
        mistakes.at(qualifier, KIND);
    }
    let safety = sig.safety.to_token_stream();
    if !safety.is_empty() {
        mistakes.at(safety, KIND);
    }
    if let Some(qualifier) = &sig.abi {
        mistakes.at(qualifier, KIND);
    }
    if let Some(variadic) = &sig.variadic {
        mistakes.at(variadic, "a tool has a fixed number of arguments");
    }
    if !sig.generics.params.is_empty() {
        mistakes.at(
            &sig.generics,
            "a tool cannot be generic, because its schema needs concrete types; call the generic \
             function from it",
        );
    }
    if let Some(FnArg::Receiver(receiver)) = sig.inputs.first()
        && !matches!(receiver.kind, ReceiverKind::Reference(_, None, None))
    {
        mistakes
            .at(receiver, "take `&self`: calls run concurrently, and share the value in an `Arc`");
    }
}

/// Attributes that the maker needs too.
fn also_of_maker(attr: &Attribute) -> bool {
    ["allow", "cfg"].iter().any(|name| attr.path().is_ident(name))
}
