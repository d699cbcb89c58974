//! `#[sde::helper]`: a function, a constant or a type counts as code of the apps that name it.
//!
//! The item stays as it is, and registers itself with the linker. Functions, methods and constants do so from
//! within their bodies: the one place that they all have, generic or not, in a module, an `impl`, a trait or
//! another function. A type does so from beside it.
//!
//! A function or a constant outside of an `impl` or a trait also gets a trait of its name beside it, by which users
//! of the name find it ([`source`]).

use std::sync::atomic::{AtomicU32, Ordering};

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{
    Item, ItemConst, ItemEnum, ItemStatic, ItemStruct, ItemType, ItemUnion, Visibility, parse_quote,
};

use crate::{free, source};

/// The number of helpers expanded so far in this crate. It tells apart those of one call of a `macro_rules!` macro,
/// which have one line and column.
static EXPANDED: AtomicU32 = AtomicU32::new(0);

/// The expansion of the attribute.
pub(crate) fn helper(attribute: &TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let refuse = |what| syn::Error::new_spanned(what, REFUSED);
    let is_by_name = match attribute.to_string().as_str() {
        "" => false,
        "by_name" => true,
        _ => return Err(refuse(attribute)),
    };
    let source = source::of(&item);
    let linked = |name: &Ident, has_trait: bool| {
        let linked = linked(name, has_trait, &source);
        quote!(::sde::__private::inventory::submit! { #linked })
    };
    let mut item = syn::parse2(item.clone()).map_err(|_| refuse(&item))?;
    let linked_and_trait = |visibility: &Visibility, name: &Ident| {
        let has_trait = !is_by_name && free::stands_free(name);
        let beside = has_trait.then(|| resolved(visibility, name));
        (linked(name, has_trait), beside.unwrap_or_default())
    };
    let beside = match &mut item {
        Item::Fn(function) => {
            let (linked, beside) = linked_and_trait(&function.vis, &function.sig.ident);
            function.block.stmts.insert(0, parse_quote!(#linked));
            beside
        }
        Item::Const(ItemConst {
            vis, ident, expr, ..
        })
        | Item::Static(ItemStatic {
            vis, ident, expr, ..
        }) => {
            let (linked, beside) = linked_and_trait(vis, ident);
            *expr = parse_quote!({ #linked #expr });
            beside
        }
        Item::Enum(ItemEnum { ident, .. })
        | Item::Struct(ItemStruct { ident, .. })
        | Item::Type(ItemType { ident, .. })
        | Item::Union(ItemUnion { ident, .. }) => linked(ident, false),
        other => return Err(refuse(&quote!(#other))),
    };
    Ok(quote!(#item #beside))
}

/// The `LinkedHelper` value of an item of this name and source.
pub(crate) fn linked(name: &Ident, has_trait: bool, source: &TokenStream) -> TokenStream {
    let number = EXPANDED.fetch_add(1, Ordering::Relaxed);
    let name = name.unraw().to_string();
    quote! {
        ::sde::__private::LinkedHelper {
            name: #name,
            module: ::std::module_path!(),
            place: (::std::line!(), ::std::column!(), #number),
            has_trait: #has_trait,
            source: #source,
        }
    }
}

/// The trait by which the helper's name is resolved.
fn resolved(visibility: &Visibility, name: &Ident) -> TokenStream {
    let text = name.unraw().to_string();
    let mut name = name.clone();
    // With this span, lints skip the trait.
    name.set_span(Span::call_site().located_at(name.span()));
    quote! {
        #[doc(hidden)]
        #visibility trait #name {
            fn __sde_helper(&self) -> ::sde::__private::Resolved;
        }
        impl #name for ::sde::__private::Helper {
            fn __sde_helper(&self) -> ::sde::__private::Resolved {
                ::std::option::Option::Some((::std::module_path!(), #text))
            }
        }
    }
}

const REFUSED: &str = "`#[sde::helper]` stands on a function, a method or a constant that has a body, or on a type: mark each of an `impl`; \
                       in brackets it takes `by_name` and nothing else";

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
    fn whatever_can_be_marked_tells_of_itself() {
        for item in [
            "pub fn f<T: Copy>(x: T) -> T { x }",
            "fn method(&mut self, x: f64) -> f64 { self.x * x }",
            "const fn r#try() -> u8 { 1 }",
            "const LIMIT: f64 = 1e-9;",
            "static TABLE: [u8; 2] = [1, 2];",
            "pub type Real<const N: usize> = [f64; N];",
            "enum Order { First = 2, Second }",
            "struct Grid<T> { points: T }",
        ] {
            let expanded = expanded(item).unwrap();
            assert!(expanded.contains("LinkedHelper"), "{expanded}");
        }
        assert!(expanded("fn r#try() {}").unwrap().contains("\"try\""));
    }

    #[test]
    fn anything_else_is_refused() {
        for item in ["fn declared(&self);", "mod m {}", "impl S { fn f() {} }"] {
            let told = expanded(item).unwrap_err();
            assert!(told.contains("that has a body"), "{item}: {told}");
        }
        let told = helper(
            &quote::quote!(name),
            quote::quote!(
                fn f() {}
            ),
        )
        .unwrap_err();
        assert!(told.to_string().contains("takes `by_name`"), "{told}");
    }
}
