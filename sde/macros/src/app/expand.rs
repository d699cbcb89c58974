//! The code that the attribute makes.
//!
//! Names that it adds begin with `__`: a variable can't have the name of an app of its module.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Ident, Index, ItemFn, Lit, Meta, ReturnType, Type};

use super::arguments::{Argument, Arguments, argument_of, borrowed, declared, fields};
use super::attributes::Attributes;
use super::verbs;

pub(super) fn expand(
    attributes: &Attributes,
    function: &ItemFn,
    source: &TokenStream,
) -> syn::Result<TokenStream> {
    let output = Output::of(&function.sig.output, attributes);
    refuse_unsupported(function, &output)?;
    let arguments = Arguments::of(&function.sig)?;
    let (visibility, name) = (&function.vis, &function.sig.ident);
    let docs = function.attrs.iter().filter(|a| a.path().is_ident("doc"));
    let docs: Vec<_> = docs.collect();
    let call = call_method(function, &arguments, &output);
    let verbs = verbs::verbs(visibility, name, &arguments.list, &output.given());
    let app = app_impl(attributes, function, &arguments, &output, source);
    let checks = checks(&arguments, &output);
    Ok(quote! {
        #(#docs)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, Default)]
        #visibility struct #name {}

        // No constant and no unit struct: a variable of this name is an error that says so.
        #[doc(hidden)]
        #[allow(non_upper_case_globals)]
        #visibility static #name: #name = #name {};

        const _: () = {
            static __RESOLVED: ::sde::__private::ResolvedOnce = ::sde::__private::ResolvedOnce::new();

            #checks

            impl #name {
                #call
            }
            #verbs
            #app
        };
    })
}

fn refuse_unsupported(function: &ItemFn, output: &Output) -> syn::Result<()> {
    let signature = &function.sig;
    let refuse = |span, why: &str| Err(syn::Error::new(span, why));
    let generics = &signature.generics;
    if !generics.params.is_empty() && generics.lifetimes().count() == generics.params.len() {
        return refuse(
            generics.span(),
            "leave the lifetimes out, `&str` for `&'a str`: what an app is given is borrowed for \
             the call, and what it returns is owned",
        );
    }
    if !generics.params.is_empty() {
        return refuse(
            generics.span(),
            "a generic function is many apps under one name: write one function for each type, \
             or implement `App` for a generic type that names its argument",
        );
    }
    if let Some(word) = &signature.asyncness {
        return refuse(
            word.span(),
            "an async function can't be an app: it runs on the calling thread",
        );
    }
    if let Some(word) = &signature.unsafety {
        return refuse(
            word.span(),
            "an unsafe function can't be an app: wrap it in a safe one",
        );
    }
    if let Some(dots) = &signature.variadic {
        return refuse(dots.span(), "a variadic function can't be an app");
    }
    match borrowed(&output.value) {
        Some(span) => refuse(
            span,
            "an app returns what it owns, since the cache keeps it: `String` for `&str`, `Vec<T>` for `&[T]`",
        ),
        None => Ok(()),
    }
}

/// The return type of a function.
struct Output {
    /// The value, without `Result` or `Value` around it.
    value: Type,
    fallible: bool,
    shared: bool,
    /// Whether each of its fields is a result.
    by_field: bool,
}

impl Output {
    fn of(output: &ReturnType, attributes: &Attributes) -> Self {
        let written = match output {
            ReturnType::Default => syn::parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        let (fallible, inner) = match argument_of(&written, "Result") {
            Some(inner) => (true, inner.clone()),
            None => (false, written),
        };
        match argument_of(&inner, "Value") {
            Some(value) => Self {
                value: value.clone(),
                fallible,
                shared: true,
                by_field: attributes.by_field,
            },
            None => Self {
                value: inner,
                fallible,
                shared: false,
                by_field: attributes.by_field,
            },
        }
    }

    /// The result map of the body's return value.
    fn to_map(&self, body: &TokenStream) -> TokenStream {
        let value = match self.fallible {
            true => quote! {
                match #body {
                    ::std::result::Result::Ok(__value) => __value,
                    ::std::result::Result::Err(__error) => {
                        use ::sde::__private::{ByFrom as _, ByItself as _};
                        let __way = (&::sde::__private::ErrorType::of(&__error)).way();
                        return ::std::result::Result::Err(__way.convert(__error));
                    }
                }
            },
            false => body.clone(),
        };
        let ty = &self.value;
        let map = if self.by_field {
            quote!(<#ty as ::sde::__private::Results>::into_map(__value))
        } else if self.shared {
            quote!(::sde::__private::ResultMap::new().with_value("result", __value))
        } else {
            quote!(::sde::__private::ResultMap::new().with("result", __value))
        };
        quote! {
            let __value = #value;
            ::std::result::Result::Ok(#map)
        }
    }

    /// The type that a call gives.
    fn given(&self) -> TokenStream {
        let value = &self.value;
        if self.by_field {
            quote!(<#value as ::sde::__private::Results>::Values)
        } else {
            quote!(::sde::__private::Value<#value>)
        }
    }
}

/// Refuses arguments that can't be in a key, and a value that is a `Result` under another name. It comes first, and each
/// check has the place of its type: so the compiler tells these mistakes before what follows from them.
fn checks(arguments: &Arguments, output: &Output) -> TokenStream {
    let arguments = arguments.list.iter().map(|argument| {
        let ty = &argument.written;
        quote_spanned!(ty.span()=> ::sde::__private::require_argument::<#ty>();)
    });
    let value = &output.value;
    // Names that are added resolve where the attribute stands, the message points at the type.
    let span = Span::call_site().located_at(value.span());
    let kind = quote_spanned!(span=> (&__type).kind());
    // A `Result` within a `Result` is a value, and seen.
    let may_be_alias = argument_of(value, "Result").is_none();
    let remembered =
        may_be_alias.then(|| quote_spanned!(span=> ::sde::__private::refuse_alias(#kind);));
    let one =
        (!output.by_field).then(|| quote_spanned!(span=> ::sde::__private::refuse_fields(#kind);));
    quote! {
        #[allow(dead_code)]
        fn __checks() {
            use ::sde::__private::{OfAlias as _, OfFields as _, OfValue as _};
            #(#arguments)*
            let __type = ::sde::__private::ValueType::<#value>::NEW;
            #remembered
            #one
        }
    }
}

/// The typed call.
fn call_method(function: &ItemFn, arguments: &Arguments, output: &Output) -> TokenStream {
    let visibility = &function.vis;
    let given = output.given();
    let parameters = arguments.list.iter().map(|argument| {
        let (name, ty) = (&argument.name, &argument.written);
        quote!(#name: #ty)
    });
    let names = arguments.list.iter().map(|argument| &argument.name);
    quote! {
        /// Gives the remembered result for these arguments, or computes and
        /// remembers it.
        ///
        /// # Errors
        /// As `sde::Handle::run`.
        #[allow(clippy::too_many_arguments)]
        #visibility fn call(
            &self,
            __sde: &::sde::__private::Handle,
            #(#parameters),*
        ) -> ::sde::__private::Result<#given> {
            let mut __call = __SdeCall(
                (::std::marker::PhantomData, ::std::default::Default::default()),
                #(::std::option::Option::Some(#names),)*
            );
            let __results = __sde.call_linked::<#given>(self, &__RESOLVED, &mut __call)?;
            match __call.0.1.take() {
                ::std::option::Option::Some(__value) => ::std::result::Result::Ok(__value),
                ::std::option::Option::None => {
                    ::sde::__private::FromResults::from_map(&__results.unwrap_or_default())
                }
            }
        }
    }
}

fn app_impl(
    attributes: &Attributes,
    function: &ItemFn,
    arguments: &Arguments,
    output: &Output,
    source: &TokenStream,
) -> TokenStream {
    let name = &function.sig.ident;
    let stable = match &attributes.name {
        Some(name) => name.value(),
        None => name.unraw().to_string(),
    };
    let info = info(attributes, function, output, &stable, source);
    let declared = declared(&arguments.list);
    let body = body(function);
    let call = call_impl(arguments, output);
    let from_inputs = arguments.list.iter().map(Argument::found_in_inputs);
    let handle = arguments.takes_handle.then(|| quote!(__sde,));
    let run = output.to_map(&quote!(__sde_body(#handle #(#from_inputs),*)));
    quote! {
        #body
        #call

        impl ::sde::__private::Fingerprint for #name {
            fn fingerprint(
                &self,
                __to: &mut ::sde::__private::Encoder<'_>,
            ) -> ::std::result::Result<(), ::sde::__private::FingerprintError> {
                __to.structure(#stable, |_| ::std::result::Result::Ok(()))
            }
        }

        impl ::sde::__private::App for #name {
            fn info(&self) -> ::sde::__private::AppInfo {
                #declared
                #info.with_inputs(&__INPUTS)
            }

            fn run(
                &self,
                __sde: &::sde::__private::Handle,
                __inputs: &::sde::__private::Inputs,
            ) -> ::std::result::Result<::sde::__private::ResultMap, ::sde::__private::AppError> {
                let _ = (__sde, __inputs);
                #run
            }
        }

        ::sde::__private::inventory::submit! {
            ::sde::__private::LinkedApp::function(
                || ::sde::__private::Instance::new(#name),
                ::std::concat!(
                    ::std::module_path!(), " (", ::std::file!(), ":", ::std::line!(), ")"
                ),
            )
        }
    }
}

/// The function itself, under a name that its own body does not use.
fn body(function: &ItemFn) -> TokenStream {
    let kept = |attribute: &&Attribute| !attribute.path().is_ident("doc");
    let attributes = function.attrs.iter().filter(kept);
    let mut signature = function.sig.clone();
    signature.ident = Ident::new("__sde_body", function.sig.ident.span());
    let block = &function.block;
    quote!(#(#attributes)* #signature #block)
}

/// One call, with its arguments borrowed from the caller.
fn call_impl(arguments: &Arguments, output: &Output) -> TokenStream {
    let fields = fields(&arguments.list);
    // The fields of a call have no names, so none can clash.
    let places: Vec<_> = (1..=arguments.list.len()).map(Index::from).collect();
    let texts: Vec<_> = arguments.list.iter().map(|a| &a.text).collect();
    let encoded = arguments.list.iter().map(encode);
    let taken: Vec<_> = places
        .iter()
        .map(|place| format_ident!("__taken_{}", place))
        .collect();
    let handle = arguments.takes_handle.then(|| quote!(__sde,));
    let run = output.to_map(&quote!(__sde_body(#handle #(#taken),*)));
    let given = output.given();
    // The exact capacity: a growing vector begins with four.
    let count = places.len();
    quote! {
        struct __SdeCall<'call>(
            // The value taken from a hit.
            (
                ::std::marker::PhantomData<&'call ()>,
                ::std::cell::Cell<::std::option::Option<#given>>,
            ),
            #fields
        );

        impl ::sde::__private::Call for __SdeCall<'_> {
            fn encode(
                &self,
                __to: &mut ::sde::__private::Encoder<'_>,
            ) -> ::std::result::Result<(), ::sde::__private::FingerprintError> {
                #(if let ::std::option::Option::Some(__value) = &self.#places {
                    #encoded
                })*
                let _ = __to;
                ::std::result::Result::Ok(())
            }

            fn take_one(&self, __value: ::sde::__private::ErasedValue) -> bool {
                let __value = <#given as ::sde::__private::FromResults>::from_one(__value);
                let __is_taken = __value.is_some();
                self.0.1.set(__value);
                __is_taken
            }

            fn summaries(
                &self,
                __cursor: &mut ::sde::__private::EncodedCursor<'_>,
            ) -> ::std::vec::Vec<::sde::__private::ValueSummary> {
                let mut __summaries = ::std::vec::Vec::with_capacity(#count);
                #(__summaries.extend(
                    self.#places
                        .as_ref()
                        .map(|__value| ::sde::__private::summary(#texts, __value, __cursor)),
                );)*
                let _ = __cursor;
                __summaries
            }

            fn compute(
                &mut self,
                _: &dyn ::sde::__private::App,
                __sde: &::sde::__private::Handle,
            ) -> ::std::result::Result<::sde::__private::ResultMap, ::sde::__private::AppError> {
                let _ = __sde;
                #(let ::std::option::Option::Some(#taken) = self.#places.take() else {
                    return ::std::result::Result::Err(::sde::__private::AppError::message(
                        "a call was computed twice",
                    ));
                };)*
                #run
            }
        }
    }
}

/// Writes an argument called `__value`. The bytes before its value are made at compile time, unless its
/// name is very long.
fn encode(argument: &Argument) -> TokenStream {
    let text = &argument.text;
    if text.len() >= 0x80 {
        return quote!(__to.named(#text, __value)?;);
    }
    let length = text.len() + 2;
    quote! {
        static FRAME: [u8; #length] = ::sde::__private::name_frame(#text);
        __to.framed_name(&FRAME, #text, __value)?;
    }
}

fn info(
    attributes: &Attributes,
    function: &ItemFn,
    output: &Output,
    stable: &str,
    source: &TokenStream,
) -> TokenStream {
    let is_named = attributes.name.is_some();
    let new = match &attributes.version {
        Some(version) => quote!(::sde::__private::AppInfo::new(#stable, #version)),
        None => quote!({
            static __CODE: ::sde::__private::FunctionCode =
                ::sde::__private::FunctionCode::new(#source, ::std::module_path!(), #is_named);
            ::sde::__private::AppInfo::named(#stable).in_source(&__CODE)
        }),
    };
    let about = match &attributes.about {
        Some(text) => text.value(),
        None => first_paragraph(&function.attrs),
    };
    let value = &output.value;
    let spec = attributes
        .result
        .spec("result", value, attributes.is_distributed);
    let more = &attributes.info;
    let results = if output.by_field {
        quote!(.results_of::<#value>())
    } else {
        quote!(.result(#spec))
    };
    quote! {
        #new
            .about(#about)
            #more
            #results
    }
}

/// The first paragraph of the documentation.
pub(crate) fn first_paragraph(attributes: &[Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        });
    lines
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
