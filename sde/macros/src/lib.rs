//! The derive and attribute macros of SDE; use them through the crate `sde`.

#![forbid(unsafe_code)]

mod app;

use proc_macro::TokenStream;

/// Makes a function an app; documented in the crate `sde`.
#[proc_macro_attribute]
pub fn app(attribute: TokenStream, item: TokenStream) -> TokenStream {
    app::app(attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
