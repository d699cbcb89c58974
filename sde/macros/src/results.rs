//! `#[derive(Results)]`: each field of a struct is a result.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Ident, LitStr, Type, Visibility};

use crate::app::{argument_of, first_paragraph};
use crate::result::ResultOptions;
use crate::source;

/// A field, which is a result.
struct Field {
    field: Ident,
    visibility: Visibility,
    name: String,
    about: String,
    options: ResultOptions,
    /// Without `Value` around it.
    value: Type,
    is_shared: bool,
}

/// The expansion of the derive.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let refuse = |place: &dyn ToTokens, why| Err(syn::Error::new_spanned(place, why));
    let Data::Struct(data) = &input.data else {
        return refuse(
            &input.ident,
            "an app has the same results at every run: `Results` goes on a struct",
        );
    };
    let Fields::Named(fields) = &data.fields else {
        return refuse(
            &input.ident,
            "results have names: `Results` goes on a struct with named fields",
        );
    };
    if !input.generics.params.is_empty() {
        return refuse(
            &input.generics,
            "a function returns one type: leave the generics out",
        );
    }
    let fields = fields.named.iter().map(Field::of);
    let fields = fields.collect::<syn::Result<Vec<_>>>()?;
    let (name, visibility) = (&input.ident, &input.vis);
    let values = format_ident!("{name}Values");
    let about = format!("The values of a [`{name}`], shared with the cache.");
    let declared = fields.iter().map(Field::declared);
    let specs = fields.iter().map(Field::spec);
    let withs = fields.iter().map(Field::with);
    let found = fields.iter().map(Field::found);
    let needed = fields.iter().filter(|field| !field.options.is_unsaved());
    let needed = needed.map(|field| &field.name);
    let text = values.to_string();
    let source = source::of(&input.to_token_stream());
    Ok(quote! {
        #[doc = #about]
        #[derive(Clone)]
        // A program need not read each.
        #[allow(dead_code)]
        #visibility struct #values {
            #(#declared,)*
        }

        #[automatically_derived]
        impl ::std::fmt::Debug for #values {
            fn fmt(&self, __to: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                __to.debug_struct(#text).finish_non_exhaustive()
            }
        }

        #[automatically_derived]
        impl ::sde::__private::FromResults for #values {
            const NAMES: &'static [&'static str] = &[#(#needed),*];

            fn from_map(
                __map: &::sde::__private::ResultMap,
            ) -> ::sde::__private::Result<Self> {
                let _ = __map;
                ::std::result::Result::Ok(Self { #(#found,)* })
            }
        }

        #[automatically_derived]
        impl ::sde::__private::Results for #name {
            type Values = #values;

            fn specs() -> ::std::vec::Vec<::sde::__private::ResultSpec> {
                ::std::vec![#(#specs),*]
            }

            fn code() -> ::sde::__private::Digest {
                #source.digest()
            }

            fn into_map(self) -> ::sde::__private::ResultMap {
                ::sde::__private::ResultMap::new()#(#withs)*
            }
        }

        #[automatically_derived]
        impl ::std::convert::From<#name> for ::sde::__private::ResultMap {
            fn from(__results: #name) -> Self {
                ::sde::__private::Results::into_map(__results)
            }
        }
    })
}

impl Field {
    fn of(field: &syn::Field) -> syn::Result<Self> {
        let Some(ident) = field.ident.clone() else {
            return Err(syn::Error::new(field.span(), "results have names"));
        };
        let value = argument_of(&field.ty, "Value");
        let mut found = Self {
            name: ident.unraw().to_string(),
            about: first_paragraph(&field.attrs),
            field: ident,
            visibility: field.vis.clone(),
            options: ResultOptions::default(),
            is_shared: value.is_some(),
            value: value.unwrap_or(&field.ty).clone(),
        };
        for attribute in field
            .attrs
            .iter()
            .filter(|one| one.path().is_ident("result"))
        {
            attribute.parse_nested_meta(|meta| {
                let word = meta.path.require_ident()?;
                let text = || Ok::<_, syn::Error>(meta.value()?.parse::<LitStr>()?.value());
                match word.to_string().as_str() {
                    "name" => found.name = text()?,
                    "about" => found.about = text()?,
                    _ if found.options.take_trait(word) => {}
                    "intermediate" | "expendable" | "no_cache" | "distributed" => {
                        found.options.take_tag(word)?;
                    }
                    _ => {
                        return Err(meta.error(format!(
                            "`{word}` is no option of a result; there are: name, about = \"..\"; intermediate, expendable, \
                             no_cache; sized, not_compared"
                        )));
                    }
                }
                Ok(())
            })?;
        }
        found.options.check(found.field.span())?;
        Ok(found)
    }

    /// The field of the values that a call gives.
    fn declared(&self) -> TokenStream {
        let Self {
            field,
            visibility,
            value,
            about,
            ..
        } = self;
        let value = quote!(::sde::__private::Value<#value>);
        let value = if self.options.is_unsaved() {
            quote!(::std::option::Option<#value>)
        } else {
            value
        };
        quote!(#[doc = #about] #visibility #field: #value)
    }

    fn spec(&self) -> TokenStream {
        let Self { about, value, .. } = self;
        let spec = self.options.spec(&self.name, value, true);
        quote_spanned!(value.span()=> #spec.about(#about))
    }

    /// Adds it to a result map.
    fn with(&self) -> TokenStream {
        let Self { field, name, .. } = self;
        if self.is_shared {
            quote!(.with_value(#name, self.#field))
        } else {
            quote!(.with(#name, self.#field))
        }
    }

    /// Takes it from `__map`.
    fn found(&self) -> TokenStream {
        let Self { field, name, .. } = self;
        if self.options.is_unsaved() {
            quote!(#field: __map.get(#name).ok())
        } else {
            quote!(#field: __map.get(#name)?)
        }
    }
}
