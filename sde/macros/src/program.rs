//! `#[sde::main]`: a program's function, which ends with a status that batch scripts understand.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, ReturnType, parse_quote};

const REFUSED: &str =
    "`#[sde::main]` stands, without options, on a function `fn main() -> Result<(), E>`";

/// The expansion of the attribute. The body becomes a function within: when it has returned, all that it made is gone.
pub(crate) fn main(attribute: &TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    if !attribute.is_empty() {
        return Err(syn::Error::new_spanned(attribute, REFUSED));
    }
    let mut outer: ItemFn =
        syn::parse2(item.clone()).map_err(|_| syn::Error::new_spanned(&item, REFUSED))?;
    let signature = &outer.sig;
    let is_plain = signature.asyncness.is_none()
        && signature.constness.is_none()
        && signature.unsafety.is_none()
        && signature.abi.is_none()
        && signature.generics.params.is_empty()
        && signature.inputs.is_empty();
    if !is_plain || matches!(signature.output, ReturnType::Default) {
        return Err(syn::Error::new_spanned(signature, REFUSED));
    }
    let (inner, body) = (signature.clone(), &outer.block);
    let name = &inner.ident;
    outer.block = parse_quote!({
        #inner #body
        match #name() {
            ::std::result::Result::Ok(()) => ::std::process::ExitCode::SUCCESS,
            ::std::result::Result::Err(error) => {
                use ::sde::__private::{OfDisplay as _, OfError as _, OfPointer as _};
                (&&&::sde::__private::Ended(&error)).tell()
            }
        }
    });
    outer.sig.output = parse_quote!(-> ::std::process::ExitCode);
    Ok(quote!(#outer))
}
