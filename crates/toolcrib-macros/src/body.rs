//! The body of the function that makes a tool.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Ident, LitStr, ReturnType, Signature, Type, spanned::Spanned};

use crate::{
    options::Options,
    parameters::{Kind, Parameter},
};

/// A tool that passed all checks.
pub(crate) struct Body<'a> {
    pub(crate) name: &'a LitStr,
    pub(crate) description: Option<&'a TokenStream>,
    pub(crate) options: &'a Options,
    pub(crate) sig: &'a Signature,
    pub(crate) parameters: &'a [Parameter],
}

impl Body<'_> {
    /// The type of the arguments, and the calls of a builder.
    pub(crate) fn write(&self) -> TokenStream {
        let Self { name, description, options, sig, .. } = self;
        let Options { krate, calls, .. } = options;
        let (item, arguments) = self.arguments();
        let closure = self.closure();
        let ending = if sig.asyncness.is_some() { "handler" } else { "blocking" };
        // If the closure's return type does not fit, the error points to the function.
        let ending = Ident::new(ending, self.at());
        let never = self.never();
        quote! {
            #item
            #krate::__private::Arguments::of(|#never| #arguments).#ending(
                #krate::Tool::builder(#name)
                    .description(#description)
                    .origin(::core::concat!(::core::file!(), ":", ::core::line!()))
                    #calls,
                #closure,
            )
        }
    }

    /// The span of the function. Locals with this span are hygienic: they cannot clash with the
    /// names of its parameters.
    fn at(&self) -> Span {
        Span::mixed_site().located_at(self.sig.ident.span())
    }

    /// The type of all arguments; preceded, if there is no such type, by a generated struct with
    /// one field per argument.
    ///
    /// The types of the fields are parameters of the struct, so that an invalid type is reported
    /// once, where it is passed, and not also wherever serde and schemars use it. Attributes for
    /// serde and schemars may still depend on the field's type.
    fn arguments(&self) -> (Option<TokenStream>, TokenStream) {
        let krate = &self.options.krate;
        let never = self.never();
        let (mut generics, mut fields, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for Parameter { cfgs, kind } in self.parameters {
            match kind {
                Kind::Argument { name, attrs, description, ty } => {
                    // Not a doc comment, because schemars uses its first heading as a title.
                    let description =
                        description.iter().map(|text| quote!(#[schemars(description = #text)]));
                    let (field, value) = if attrs.is_empty() {
                        let generic = format_ident!("__{}", generics.len());
                        generics.push(quote!(#(#cfgs)* #generic));
                        (generic.into_token_stream(), self.taken(ty))
                    } else {
                        (ty.to_token_stream(), quote!(#krate::__private::any(#never)))
                    };
                    fields.push(quote!(#(#cfgs)* #(#attrs)* #(#description)* #name: #field));
                    values.push(quote!(#(#cfgs)* #name: #value));
                }
                Kind::Arguments(ty) => return (None, self.taken(ty)),
                Kind::State { .. } | Kind::Context => {}
            }
        }
        let serde = quote!(#krate::__private::serde);
        let schemars = quote!(#krate::__private::schemars);
        let (serde_path, schemars_path) = (serde.to_string(), schemars.to_string());
        let item = quote! {
            #[derive(#serde::Deserialize, #schemars::JsonSchema)]
            #[serde(crate = #serde_path, deny_unknown_fields)]
            #[schemars(crate = #schemars_path)]
            struct __ToolArguments<#(#generics),*> {
                #(#fields),*
            }
        };
        (Some(item), quote!(__ToolArguments { #(#values),* }))
    }

    /// A value of a type, with the span that is reported if the type cannot be an argument.
    fn taken(&self, ty: &Type) -> TokenStream {
        let krate = &self.options.krate;
        let never = self.never();
        let at = self.at().located_at(ty.span());
        quote_spanned!(at=> #krate::__private::ArgumentType::<#ty>::of().value(#never))
    }

    /// An uninhabited type, from which any value can be made.
    fn never(&self) -> Ident {
        Ident::new("never", self.at())
    }

    /// The closure that calls the function, with the state that it owns.
    fn closure(&self) -> TokenStream {
        let at = self.at();
        let krate = &self.options.krate;
        let (mut kept, mut given) = (Vec::new(), Vec::new());
        if self.sig.receiver().is_some() {
            let receiver = quote!(self);
            kept.push(quote_spanned!(at=> let this = ::std::sync::Arc::clone(#receiver);));
            given.push(quote_spanned!(at=> let this = ::std::sync::Arc::clone(&this);));
        }
        for Parameter { cfgs, kind } in self.parameters {
            if let Kind::State { name, ty } = kind {
                kept.push(quote_spanned! {at=>
                    #(#cfgs)* let #name = #krate::__private::keep::<#ty>(#name);
                });
                given.push(quote_spanned!(at=> #(#cfgs)* let #name = #name.give();));
            }
        }
        let (call, answer) = (self.call(), self.answer());
        let inner = if self.sig.asyncness.is_some() {
            quote_spanned! {at=>
                async move {
                    let returned = #call.await;
                    #answer
                }
            }
        } else {
            quote_spanned! {at=>
                let returned = #call;
                #answer
            }
        };
        // The context is bound even if the function does not take it: its lifetime shows the engine
        // whether a function on the blocking pool has ended.
        quote_spanned! {at=>
            {
                #(#kept)*
                move |arguments, context| {
                    #(#given)*
                    #inner
                }
            }
        }
    }

    /// The call of the function.
    fn call(&self) -> TokenStream {
        let at = self.at();
        let krate = &self.options.krate;
        let given = |ty: &Type, value: &TokenStream| quote_spanned!(at=> #krate::__private::Give::<#ty>::give(#value));
        let passed = self.parameters.iter().map(|Parameter { cfgs, kind }| {
            let value = match kind {
                Kind::Argument { name, ty, .. } => given(ty, &quote_spanned!(at=> arguments.#name)),
                Kind::Arguments(ty) => {
                    let all = given(ty, &quote_spanned!(at=> arguments));
                    quote_spanned!(at=> #krate::Args(#all))
                }
                Kind::State { name, .. } => quote_spanned!(at=> #krate::State(#name)),
                Kind::Context => quote_spanned!(at=> context),
            };
            quote!(#(#cfgs)* #value)
        });
        let function = &self.sig.ident;
        if self.sig.receiver().is_some() {
            quote_spanned!(at=> Self::#function(&this, #(#passed),*))
        } else {
            quote_spanned!(at=> #function(#(#passed),*))
        }
    }

    /// Converts `returned` by the traits of its type.
    fn answer(&self) -> TokenStream {
        let krate = &self.options.krate;
        // An invalid return type is reported where it is written.
        let at = match &self.sig.output {
            ReturnType::Default => self.at(),
            ReturnType::Type(_, ty) => self.at().located_at(ty.span()),
        };
        quote_spanned! {at=>
            {
                use #krate::__private::answers::*;
                (&&&&&&&ReturnType::of(&returned)).answer(returned)
            }
        }
    }
}
