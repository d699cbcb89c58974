//! The derive and attribute macros of SDE; use them through the crate `sde`.

#![forbid(unsafe_code)]

mod app;
mod digest;
mod distributed;
mod fingerprint;
mod free;
mod helper;
mod memory_size;
mod program;
mod result;
mod results;
mod settings;
mod source;

use proc_macro::TokenStream;

/// Makes a function an app; programs write `#[sde::app]`.
#[proc_macro_attribute]
pub fn app(attribute: TokenStream, item: TokenStream) -> TokenStream {
    app::app(attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Counts a function as code of the apps that name it; programs write `#[sde::helper]`.
#[proc_macro_attribute]
pub fn helper(attribute: TokenStream, item: TokenStream) -> TokenStream {
    helper::helper(&attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Ends a program with a status that batch scripts understand; programs write `#[sde::main]`.
#[proc_macro_attribute]
pub fn main(attribute: TokenStream, item: TokenStream) -> TokenStream {
    program::main(&attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives the trait `Distributed`; programs write `#[derive(sde::Distributed)]`.
#[proc_macro_derive(Distributed, attributes(distributed))]
pub fn derive_distributed(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    distributed::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives the trait `Fingerprint`; programs write `#[derive(sde::Fingerprint)]`.
#[proc_macro_derive(Fingerprint, attributes(fingerprint))]
pub fn derive_fingerprint(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    fingerprint::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives the trait `Results`; programs write `#[derive(sde::Results)]`.
#[proc_macro_derive(Results, attributes(result))]
pub fn derive_results(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    results::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives the trait `Settings`; programs write `#[derive(sde::Settings)]`.
#[proc_macro_derive(Settings, attributes(setting, slot))]
pub fn derive_settings(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    settings::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives the trait `MemorySize`; programs write `#[derive(sde::MemorySize)]`.
#[proc_macro_derive(MemorySize, attributes(memory_size))]
pub fn derive_memory_size(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    memory_size::derive(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
