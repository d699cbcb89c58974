//! `#[sde::app]`: a function becomes an app.
//!
//! The function `f` becomes a value `f` of a type of that name, which implements
//! `App`. Its typed `call` borrows the arguments from the caller, so that a hit
//! allocates nothing; its `App::run` takes them from `Inputs`. Both write the same
//! names and values to the key.
//!
//! On an `impl App` it adds the digest of the source to what `info` gives.

mod arguments;
mod attributes;
mod expand;
mod verbs;

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{ImplItem, Item, ItemImpl, parse_quote};

pub(crate) use self::arguments::argument_of;
use self::attributes::Attributes;
pub(crate) use self::expand::first_paragraph;
use crate::source;

/// The expansion of the attribute.
pub(crate) fn app(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let attributes: Attributes = syn::parse2(attribute.clone())?;
    let source = if attributes.is_file {
        source::of_file(&item)?
    } else {
        source::of(&item)
    };
    match syn::parse2(item)? {
        Item::Fn(function) => expand::expand(&attributes, &function, &source),
        Item::Impl(block) if attributes.say_only_the_code() => with_source(block, &source),
        Item::Impl(_) => Err(syn::Error::new(
            attribute.span(),
            "on an `impl App` only `code = file` can stand here: `info` says the rest",
        )),
        other => Err(syn::Error::new(
            other.span(),
            "`#[sde::app]` goes on a function, or on an `impl App for ..`",
        )),
    }
}

/// The `impl App`, whose `info` has the source added.
fn with_source(mut block: ItemImpl, source: &TokenStream) -> syn::Result<TokenStream> {
    let is_app = block
        .trait_
        .as_ref()
        .and_then(|(_, path, _)| path.segments.last());
    let is_configured = is_app.is_some_and(|name| name.ident == "ConfiguredApp");
    if !is_configured && is_app.is_none_or(|name| name.ident != "App") {
        return Err(syn::Error::new(
            block.impl_token.span(),
            "`#[sde::app]` goes on `impl App for ..`: mark the methods of another `impl` with `#[sde::helper]`",
        ));
    }
    // There may be one for each `cfg`. Without any, the compiler says what is missing.
    for item in &mut block.items {
        let info = match item {
            ImplItem::Fn(function) if function.sig.ident == "info" => function,
            ImplItem::Macro(_) => {
                return Err(syn::Error::new(
                    item.span(),
                    "`#[sde::app]` does not see what a macro makes here: write the functions out",
                ));
            }
            _ => continue,
        };
        let body = &info.block;
        info.block = parse_quote!({
            static __CODE: ::sde::__private::FunctionCode =
                ::sde::__private::FunctionCode::new(#source, ::std::module_path!(), false);
            let __info = || -> ::sde::__private::AppInfo #body;
            __info().in_source(&__CODE)
        });
    }
    let (ty, is_one) = (&block.self_ty, block.generics.params.is_empty());
    let linked = (is_configured && is_one).then(|| {
        quote! {
            ::sde::__private::inventory::submit! {
                ::sde::__private::LinkedApp::new(::sde::__private::app_of::<#ty>)
            }
        }
    });
    Ok(quote!(#block #linked))
}

#[cfg(test)]
mod tests {
    /// The error of the attribute on a function.
    fn refused(function: &str) -> String {
        let item = function.parse().unwrap();
        super::app(proc_macro2::TokenStream::new(), item)
            .expect_err("it is refused")
            .to_string()
    }

    #[test]
    fn what_is_not_supported_is_told_with_what_to_write() {
        let told = [
            (
                "fn f<'a>(x: &'a str) -> f64 { 1.0 }",
                "leave the lifetimes out",
            ),
            (
                "fn f<'a, T>(x: &'a T) -> f64 { 1.0 }",
                "write one function for each type",
            ),
            (
                "fn f(x: &'static str) -> f64 { 1.0 }",
                "`String` for `&'static str`",
            ),
            (
                "fn f(x: Option<&'static [f64]>) -> f64 { 1.0 }",
                "leave `'static` out",
            ),
            (
                "fn f(x: impl Fn(f64) -> f64) -> f64 { x(1.0) }",
                "name the type",
            ),
            ("fn f(x: &impl Into<f64>) -> f64 { 1.0 }", "name the type"),
            (
                "fn f(x: f64, #[cfg(unix)] y: f64) -> f64 { x }",
                "on two functions",
            ),
            (
                "fn f(x: f64, sde: &sde::Handle) -> f64 { x }",
                "the handle comes first",
            ),
            (
                "fn f(sde: &Sde, x: f64) -> f64 { x }",
                "write `sde: &Handle`",
            ),
            (
                "fn f(x: &mut Vec<f64>) { x.clear() }",
                "return the new value",
            ),
            ("fn f(f: f64) -> f64 { f }", "the name of its function"),
            ("fn f((x, y): (f64, f64)) -> f64 { x }", "need names"),
            ("fn f(&self) -> f64 { 1.0 }", "a method can't be an app"),
            ("impl Display for F {}", "goes on `impl App for ..`"),
            ("impl F {}", "goes on `impl App for ..`"),
            ("struct F;", "on a function, or on an `impl App for ..`"),
        ];
        for (function, expected) in told {
            let said = refused(function);
            assert!(said.contains(expected), "{function}: {said}");
        }
    }

    #[test]
    fn attributes_and_paths_of_arguments_are_supported() {
        let item = "fn f(#[allow(unused)] x: &std::path::Path) -> f64 { 1.0 }";
        assert!(super::app(proc_macro2::TokenStream::new(), item.parse().unwrap()).is_ok());
    }
}
