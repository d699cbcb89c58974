//! `#[sde::helper]`: a function or a constant counts as code of the apps that name it.
//!
//! It stays what it is, and tells the linker of itself from within its own body: the one place that
//! functions, methods and constants have, generic or not, in a module, an `impl`, a trait or another
//! function.

use std::sync::atomic::{AtomicU32, Ordering};

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, Ident, Item, parse_quote};

use crate::digest;

/// How many were expanded before, in this crate. Those that one call of a `macro_rules!` macro makes have one line and
/// column.
static EXPANDED: AtomicU32 = AtomicU32::new(0);

/// What the attribute expands to.
pub(crate) fn helper(attribute: &TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let refuse = |what| syn::Error::new_spanned(what, REFUSED);
    if !attribute.is_empty() {
        return Err(refuse(attribute));
    }
    let (digest, words) = (digest::of(item.clone()), digest::words(item.clone()));
    let number = EXPANDED.fetch_add(1, Ordering::Relaxed);
    let linked = |name: &Ident| {
        let name = name.to_string();
        let name = name.trim_start_matches("r#");
        quote! {
            ::sde::__private::inventory::submit! {
                ::sde::__private::LinkedHelper {
                    name: #name,
                    module: ::std::module_path!(),
                    place: (::std::line!(), ::std::column!(), #number),
                    digest: [#(#digest),*],
                    words: #words,
                }
            }
        }
    };
    let mut item = syn::parse2(item.clone()).map_err(|_| refuse(&item))?;
    let with = |name: &Ident, value: &Expr| -> Box<Expr> {
        let linked = linked(name);
        Box::new(parse_quote!({ #linked #value }))
    };
    match &mut item {
        Item::Fn(function) => {
            let linked = linked(&function.sig.ident);
            function.block.stmts.insert(0, parse_quote!(#linked));
        }
        Item::Const(constant) => constant.expr = with(&constant.ident, &constant.expr),
        Item::Static(constant) => constant.expr = with(&constant.ident, &constant.expr),
        other => return Err(refuse(&quote!(#other))),
    }
    Ok(quote!(#item))
}

const REFUSED: &str = "`#[sde::helper]` stands, without brackets, on a function, a method or a constant that has a \
                       body: mark each of an `impl`; for what else an app's results rest on, raise its version";

#[cfg(test)]
mod tests {
    use super::helper;

    fn expanded(item: &str) -> Result<String, String> {
        let expanded = helper(&proc_macro2::TokenStream::new(), item.parse().unwrap());
        expanded
            .map(|tokens| tokens.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn functions_methods_and_constants_tell_of_themselves() {
        for item in [
            "pub fn f<T: Copy>(x: T) -> T { x }",
            "fn method(&mut self, x: f64) -> f64 { self.x * x }",
            "const fn r#try() -> u8 { 1 }",
            "const LIMIT: f64 = 1e-9;",
            "static TABLE: [u8; 2] = [1, 2];",
        ] {
            let expanded = expanded(item).unwrap();
            assert!(expanded.contains("LinkedHelper"), "{expanded}");
        }
        assert!(expanded("fn r#try() {}").unwrap().contains("\"try\""));
    }

    #[test]
    fn anything_else_is_refused() {
        for item in ["fn declared(&self);", "struct S;", "impl S { fn f() {} }"] {
            let told = expanded(item).unwrap_err();
            assert!(told.contains("that has a body"), "{item}: {told}");
        }
    }
}
