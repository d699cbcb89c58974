//! `#[sde::app]`: a function becomes an app.
//!
//! The function `f` becomes a value `f` of a type of that name, which implements
//! `App`. Its typed `call` borrows the arguments from the caller, so that a hit
//! allocates nothing; its `App::run` takes them from `Inputs`. Both write the same
//! names and values to the key.

mod arguments;
mod attributes;
mod digest;
mod expand;

use proc_macro2::TokenStream;
use syn::ItemFn;

/// What the attribute expands to.
pub(crate) fn app(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let source = digest::of(item.clone());
    let attributes = syn::parse2(attribute)?;
    let function: ItemFn = syn::parse2(item)?;
    expand::expand(&attributes, &function, source)
}
