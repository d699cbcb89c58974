//! `#[derive(MemorySize)]`: the size of the type itself, and of the memory that each field owns.
//!
//! On a field: `skip`, for memory that is counted elsewhere, or a type that has no `MemorySize`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Field, Fields};

/// The expansion of the derive.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let variants: Vec<(TokenStream, &Fields)> = match &input.data {
        Data::Struct(data) => vec![(quote!(Self), &data.fields)],
        Data::Enum(data) => {
            let variants = data.variants.iter();
            let path = |name: &syn::Ident| quote!(Self::#name);
            variants
                .map(|variant| (path(&variant.ident), &variant.fields))
                .collect()
        }
        Data::Union(data) => {
            return Err(syn::Error::new_spanned(
                data.union_token,
                "a union does not say which of its fields is meant; implement `MemorySize` by hand",
            ));
        }
    };
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter
            .bounds
            .push(syn::parse_quote!(::sde::__private::MemorySize));
    }
    let mut arms = TokenStream::new();
    for (path, fields) in variants {
        let mut bindings = Vec::new();
        let mut counted = Vec::new();
        for (place, (member, field)) in fields.members().zip(fields).enumerate() {
            if is_skipped(field)? {
                continue;
            }
            let variable = format_ident!("__field_{place}");
            bindings.push(quote!(#member: #variable));
            counted.push(variable);
        }
        arms.extend(quote! {
            #path { #(#bindings,)* .. } => 0_usize #(.saturating_add(::sde::__private::MemorySize::owned_size(#counted)))*,
        });
    }
    let owned = if arms.is_empty() {
        quote!(0_usize)
    } else {
        quote!(match self { #arms })
    };
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::sde::__private::MemorySize for #name #type_generics #where_clause {
            fn memory_size(&self) -> usize {
                let __owned = #owned;
                ::std::mem::size_of::<Self>().saturating_add(__owned)
            }
        }
    })
}

fn is_skipped(field: &Field) -> syn::Result<bool> {
    let mut is_skipped = false;
    for attribute in field
        .attrs
        .iter()
        .filter(|one| one.path().is_ident("memory_size"))
    {
        attribute.parse_nested_meta(|meta| {
            is_skipped = meta.path.is_ident("skip");
            if is_skipped {
                Ok(())
            } else {
                Err(meta.error("expected `skip`"))
            }
        })?;
    }
    Ok(is_skipped)
}
