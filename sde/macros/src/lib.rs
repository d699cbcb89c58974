//! The derive and attribute macros of SDE; use them through the crate `sde`.

#![forbid(unsafe_code)]

mod app;
mod digest;
mod distributed;
mod fingerprint;
mod free;
mod helper;
mod memory_size;
mod result;
mod results;
mod settings;
mod source;

use proc_macro::TokenStream;

/// Makes a function an app; documented in the crate `sde`.
#[proc_macro_attribute]
pub fn app(attribute: TokenStream, item: TokenStream) -> TokenStream {
    app::app(attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Has a function count as code of the apps that name it; documented in the crate `sde`.
#[proc_macro_attribute]
pub fn helper(attribute: TokenStream, item: TokenStream) -> TokenStream {
    helper::helper(&attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `Distributed`; documented in the crate `sde`.
#[proc_macro_derive(Distributed, attributes(distributed))]
pub fn derive_distributed(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    distributed::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `Fingerprint`; documented in the crate `sde`.
#[proc_macro_derive(Fingerprint, attributes(fingerprint))]
pub fn derive_fingerprint(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    fingerprint::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `Results`; documented in the crate `sde`.
#[proc_macro_derive(Results, attributes(result))]
pub fn derive_results(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    results::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `Settings`; documented in the crate `sde`.
#[proc_macro_derive(Settings, attributes(setting, slot))]
pub fn derive_settings(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    settings::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `MemorySize`; documented in the crate `sde`.
#[proc_macro_derive(MemorySize, attributes(memory_size))]
pub fn derive_memory_size(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    memory_size::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
