//! The methods that call an app with many arguments at once.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Visibility;

use super::arguments::{Argument, Owned};

/// `par_call`, `try_par_call` and `par_call_each`; nothing for an app without arguments.
pub(super) fn methods(
    visibility: &Visibility,
    list: &[Argument],
    given: &TokenStream,
) -> TokenStream {
    if list.is_empty() {
        return TokenStream::new();
    }
    let owned: Vec<_> = list.iter().map(Owned::of).collect();
    let generics: Vec<_> = (0..list.len()).map(|at| format_ident!("__A{at}")).collect();
    let names: Vec<_> = (0..list.len()).map(|at| format_ident!("__a{at}")).collect();
    let texts: Vec<_> = list.iter().map(|argument| &argument.text).collect();
    let is_exact = |owned: &Owned| matches!(owned, Owned::Exactly(_));
    let parameters: Vec<_> = owned
        .iter()
        .zip(&generics)
        .filter(|(owned, _)| !is_exact(owned))
        .map(|(owned, name)| {
            let ty = owned.ty();
            quote!(#name: ::std::convert::Into<#ty>)
        })
        .collect();
    let types: Vec<_> = owned
        .iter()
        .zip(&generics)
        .map(|(owned, name)| match owned {
            Owned::Exactly(ty) => quote!(#ty),
            Owned::Into(_) => quote!(#name),
        })
        .collect();
    let tys = owned.iter().map(Owned::ty);
    let (item, pattern) = match (&*types, &*names) {
        ([ty], [name]) => (quote!(#ty), quote!(#name)),
        _ => (quote!((#(#types,)*)), quote!((#(#names,)*))),
    };
    let to_inputs = quote! {
        |#pattern| ::sde::__private::Inputs::new()
            #(.with(#texts, ::std::convert::Into::<#tys>::into(#names)))*
    };
    quote! {
        /// Calls it with each of these arguments on several threads: tuples, or plain values
        /// if it takes one argument. Gives the values in the order of the arguments, equal arguments once. After
        /// an error what has begun is finished, and nothing more begins; on several ranks, what was dealt out is.
        ///
        /// # Errors
        /// That of the first item that failed, which it names.
        #[allow(dead_code)]
        #visibility fn par_call<#(#parameters,)* __I: ::std::iter::IntoIterator<Item = #item>>(
            &self,
            __sde: &::sde::__private::Handle,
            __items: __I,
        ) -> ::sde::__private::Result<::std::vec::Vec<#given>> {
            let __list: ::std::vec::Vec<::sde::__private::Inputs> =
                __items.into_iter().map(#to_inputs).collect();
            __sde.par_call_linked(self, &__RESOLVED, &__list)
        }

        /// As `par_call`, but an error of one item stops no other: gives the value or the error of each.
        #[allow(dead_code)]
        #visibility fn try_par_call<#(#parameters,)* __I: ::std::iter::IntoIterator<Item = #item>>(
            &self,
            __sde: &::sde::__private::Handle,
            __items: __I,
        ) -> ::std::vec::Vec<::sde::__private::Result<#given>> {
            let __list: ::std::vec::Vec<::sde::__private::Inputs> =
                __items.into_iter().map(#to_inputs).collect();
            __sde.try_par_call_linked(self, &__RESOLVED, &__list)
        }

        /// As `par_call`, but gives each value, with the number of its item, to a function as it comes, and holds it no
        /// longer. Equal arguments are found in the cache, or computed again if they are not kept. The function may
        /// return a `ControlFlow<()>`: after a `Break` nothing more begins. On several ranks items are dealt out in blocks, and all ranks end with
        /// the block in which one breaks.
        ///
        /// # Errors
        /// As `par_call`.
        #[allow(dead_code)]
        #visibility fn par_call_each<#(#parameters,)* __I, __C: ::sde::__private::GoesOn>(
            &self,
            __sde: &::sde::__private::Handle,
            __items: __I,
            __each: impl ::std::ops::FnMut(usize, #given) -> __C + ::std::marker::Send,
        ) -> ::sde::__private::Result<()>
        where
            __I: ::std::iter::IntoIterator<Item = #item>,
            __I::IntoIter: ::std::marker::Send,
        {
            let __items = __items.into_iter().map(#to_inputs);
            __sde.par_call_each_linked(self, &__RESOLVED, __items, __each)
        }
    }
}
