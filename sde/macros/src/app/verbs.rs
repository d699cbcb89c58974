//! The verbs of a function that take owned arguments, which the trait `CallApp` has.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Visibility};

use super::arguments::{Argument, Owned};

/// The implementation of `CallApp`, and its verbs as methods, which take what converts into the arguments. An app without
/// arguments has none for many calls.
pub(super) fn verbs(
    visibility: &Visibility,
    name: &Ident,
    list: &[Argument],
    given: &TokenStream,
) -> TokenStream {
    let owned: Vec<_> = list.iter().map(Owned::of).collect();
    let names: Vec<_> = (0..list.len()).map(|at| format_ident!("__a{at}")).collect();
    let texts = list.iter().map(|argument| &argument.text);
    let (generics, types): (Vec<_>, Vec<_>) = owned.iter().enumerate().map(Owned::taken).unzip();
    let converted = owned.iter().zip(&names).map(|(owned, name)| match owned {
        Owned::Exactly(_) => quote!(#name),
        Owned::Into(ty) => quote!(::std::convert::Into::<#ty>::into(#name)),
    });
    let args = tuple(owned.iter().map(|owned| quote!(#owned)));
    let item = tuple(types);
    let pattern = tuple(names.iter().map(|name| quote!(#name)));
    let converted = tuple(converted);
    let is_exact = |owned: &Owned| matches!(owned, Owned::Exactly(_));
    let items = if owned.iter().all(is_exact) {
        quote!(__items)
    } else {
        quote!(__items.into_iter().map(|#pattern| #converted))
    };
    let many = (!list.is_empty()).then(|| {
        quote! {
            /// Calls the app with each of many arguments on several threads: `sde::CallApp::par_call`.
            ///
            /// # Errors
            /// That of the first item that failed, which it names.
            #visibility fn par_call<#(#generics)* __I: ::std::iter::IntoIterator<Item = #item>>(
                &self,
                __sde: &::sde::__private::Handle,
                __items: __I,
            ) -> ::sde::__private::Result<::std::vec::Vec<#given>> {
                ::sde::__private::CallApp::par_call(self, __sde, #items)
            }

            /// Calls the app with each of many arguments, and gives the value or the error of each.
            #visibility fn try_par_call<#(#generics)* __I: ::std::iter::IntoIterator<Item = #item>>(
                &self,
                __sde: &::sde::__private::Handle,
                __items: __I,
            ) -> ::std::vec::Vec<::sde::__private::Result<#given>> {
                ::sde::__private::CallApp::try_par_call(self, __sde, #items)
            }

            /// Calls the app with each of many arguments, and gives each value to a function as it comes:
            /// `sde::CallApp::par_call_each`.
            ///
            /// # Errors
            /// As `par_call`.
            #visibility fn par_call_each<#(#generics)* __I, __C: ::sde::__private::GoesOn>(
                &self,
                __sde: &::sde::__private::Handle,
                __items: __I,
                __each: impl ::std::ops::FnMut(usize, #given) -> __C + ::std::marker::Send,
            ) -> ::sde::__private::Result<()>
            where
                __I: ::std::iter::IntoIterator<Item = #item>,
                __I::IntoIter: ::std::marker::Send,
            {
                ::sde::__private::CallApp::par_call_each(self, __sde, #items, __each)
            }
        }
    });
    quote! {
        impl ::sde::__private::CallApp for #name {
            type Args = #args;
            type Given = #given;

            fn resolved() -> &'static ::sde::__private::ResolvedOnce {
                &__RESOLVED
            }

            fn to_inputs(#pattern: Self::Args) -> ::sde::__private::Inputs {
                ::sde::__private::Inputs::new()#(.with(#texts, #names))*
            }
        }

        #[allow(dead_code)]
        impl #name {
            /// A call with a policy: `sde::CallApp::request`.
            #visibility fn request<'__a, #(#generics)*>(
                &'__a self,
                __sde: &'__a ::sde::__private::Handle,
                #pattern: #item,
            ) -> ::sde::__private::CallRequest<'__a, Self> {
                ::sde::__private::CallApp::request(self, __sde, #converted)
            }

            #many
        }
    }
}

/// A tuple, or its only part.
fn tuple(parts: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    let parts: Vec<_> = parts.into_iter().collect();
    match &*parts {
        [part] => part.clone(),
        _ => quote!((#(#parts,)*)),
    }
}
