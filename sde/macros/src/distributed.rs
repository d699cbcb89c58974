//! `#[derive(Distributed)]`: a type whose fields lie on several ranks, each as its own type does, or
//! are the same on all of them.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Ident, Index, Member, Type};

/// The expansion of the derive.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let refuse = |span: Span, why: &str| Err(syn::Error::new(span, why));
    let fields = match &input.data {
        Data::Struct(data) => fields(&data.fields)?,
        Data::Enum(data) => {
            return refuse(
                data.enum_token.span(),
                "an enum may be another variant on each rank; implement `Distributed` by hand",
            );
        }
        Data::Union(data) => {
            return refuse(
                data.union_token.span(),
                "a union does not say which of its fields is meant; implement `Distributed` by hand",
            );
        }
    };
    if fields.iter().all(|field| field.is_same) {
        return refuse(
            input.ident.span(),
            "no field of it lies on several ranks: a result that is the same on all of them needs no `Distributed`",
        );
    }
    let name = &input.ident;
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        let clause = generics.make_where_clause();
        clause
            .predicates
            .push(syn::parse_quote!(Self: ::sde::__private::Storable));
        for Field { ty, is_same, .. } in &fields {
            clause.predicates.push(match is_same {
                true => syn::parse_quote!(#ty: ::sde::__private::Storable + ::sde::__private::Fingerprint + ::std::clone::Clone),
                false => syn::parse_quote!(#ty: ::sde::__private::Distributed),
            });
        }
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let functions = [
        part_descriptor(&fields),
        redistribute_parts(&fields),
        assemble(&fields),
        check(&fields),
        bind(&fields),
    ];
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::sde::__private::Distributed for #name #type_generics #where_clause {
            #(#functions)*
        }
    })
}

struct Field {
    member: Member,
    /// Its name in messages and fingerprints.
    name: String,
    place: usize,
    ty: Type,
    is_same: bool,
    span: Span,
}

impl Field {
    /// Its variable in generated functions.
    fn variable(&self) -> Ident {
        format_ident!("__field_{}", self.place)
    }
}

fn fields(fields: &Fields) -> syn::Result<Vec<Field>> {
    let field = |(place, field): (usize, &syn::Field)| {
        let name = field.ident.as_ref().map(|ident| ident.unraw().to_string());
        let mut is_same = false;
        for attribute in &field.attrs {
            if attribute.path().is_ident("distributed") {
                attribute.parse_nested_meta(|meta| {
                    is_same = meta.path.is_ident("same");
                    match is_same {
                        true => Ok(()),
                        false => Err(meta
                            .error("expected `same`, for a field that is the same on all ranks")),
                    }
                })?;
            }
        }
        Ok(Field {
            member: match &field.ident {
                Some(ident) => Member::Named(ident.clone()),
                None => Member::Unnamed(Index::from(place)),
            },
            name: name.unwrap_or_else(|| place.to_string()),
            place,
            ty: field.ty.clone(),
            is_same,
            span: field.ty.span(),
        })
    };
    fields.iter().enumerate().map(field).collect()
}

fn part_descriptor(fields: &[Field]) -> TokenStream {
    let descriptors = fields.iter().map(
        |Field {
             member,
             is_same,
             span,
             ..
         }| match is_same {
            true => quote_spanned!(*span=> ::sde::__private::descriptor_of_same(&self.#member)),
            false => quote_spanned!(*span=> ::sde::__private::Distributed::part_descriptor(&self.#member)),
        },
    );
    quote! {
        fn part_descriptor(&self) -> ::std::vec::Vec<u64> {
            ::sde::__private::join_descriptors(&[#(#descriptors),*])
        }
    }
}

fn redistribute_parts(fields: &[Field]) -> TokenStream {
    // All fields in one order on all ranks, since each redistribution is collective.
    let moved = fields.iter().map(|field| {
        let Field { member, place, ty, span, .. } = field;
        let variable = field.variable();
        let part = quote!(__part.map(|__part| &__part.#member));
        match field.is_same {
            true => quote_spanned!(*span=> let #variable = ::std::option::Option::Some(__over.same::<#ty>(#part)?);),
            false => quote_spanned! {*span=>
                let #variable = {
                    let __descriptors = ::sde::__private::descriptors_of(__over.descriptors(), #place)?;
                    let __over = __over.with_descriptors(__descriptors);
                    <#ty as ::sde::__private::Distributed>::redistribute_parts(#part, &__over)?
                };
            },
        }
    });
    let members = fields.iter().map(|field| &field.member);
    let variables: Vec<_> = fields.iter().map(Field::variable).collect();
    quote! {
        fn redistribute_parts(
            __part: ::std::option::Option<&Self>,
            __over: &::sde::__private::Redistribution<'_>,
        ) -> ::std::result::Result<::std::option::Option<Self>, ::sde::__private::AppError> {
            #(#moved)*
            ::std::result::Result::Ok(match (#(#variables,)*) {
                (#(::std::option::Option::Some(#variables),)*) => {
                    ::std::option::Option::Some(Self { #(#members: #variables),* })
                }
                _ => ::std::option::Option::None,
            })
        }
    }
}

fn assemble(fields: &[Field]) -> TokenStream {
    let (same, parted): (Vec<_>, Vec<_>) = fields.iter().partition(|field| field.is_same);
    let same = (!same.is_empty()).then(|| {
        let variables = same.iter().map(|field| field.variable());
        let members = same.iter().map(|field| &field.member);
        quote! {
            let (#(#variables,)*) = {
                let __part: Self = ::sde::__private::part_for(__parts, __rank, __ranks)?;
                (#(__part.#members,)*)
            };
        }
    });
    let parted = parted.iter().map(|field| {
        let Field { member, place, ty, span, .. } = field;
        let variable = field.variable();
        quote_spanned! {*span=>
            let #variable = {
                let __descriptors = ::sde::__private::descriptors_of(__parts.descriptors(), #place)?;
                let __read = |__part: usize| ::std::result::Result::Ok(__parts.read(__part)?.#member);
                let __parts = ::sde::__private::SavedParts::new(&__descriptors, &__read);
                <#ty as ::sde::__private::Distributed>::assemble(&__parts, __rank, __ranks)?
            };
        }
    });
    let members = fields.iter().map(|field| &field.member);
    let variables = fields.iter().map(Field::variable);
    quote! {
        fn assemble(
            __parts: &::sde::__private::SavedParts<'_, Self>,
            __rank: usize,
            __ranks: usize,
        ) -> ::std::result::Result<Self, ::sde::__private::AppError> {
            #same
            #(#parted)*
            ::std::result::Result::Ok(Self { #(#members: #variables),* })
        }
    }
}

fn check(fields: &[Field]) -> TokenStream {
    let checks = fields.iter().map(
        |Field {
             name,
             place,
             ty,
             is_same,
             ..
         }| {
            let check = match is_same {
                true => quote!(::sde::__private::check_same(#name, &__descriptors)?;),
                false => quote!(<#ty as ::sde::__private::Distributed>::check(&__descriptors)?;),
            };
            quote! {
                let __descriptors = ::sde::__private::descriptors_of(__all, #place)?;
                #check
            }
        },
    );
    quote! {
        fn check(
            __all: &[::std::vec::Vec<u64>],
        ) -> ::std::result::Result<(), ::sde::__private::AppError> {
            #(#checks)*
            ::std::result::Result::Ok(())
        }
    }
}

fn bind(fields: &[Field]) -> TokenStream {
    let parted = fields.iter().filter(|field| !field.is_same);
    let bound = parted.map(|Field { member, name, .. }| {
        quote!(::sde::__private::Distributed::bind(&self.#member, &__at.field(#name));)
    });
    quote! {
        fn bind(&self, __at: &::sde::__private::Placement) {
            #(#bound)*
        }
    }
}

#[cfg(test)]
mod tests {
    /// The error of the derive on a type.
    fn refused(item: &str) -> String {
        let input = syn::parse_str(item).unwrap();
        super::derive(&input)
            .expect_err("it is refused")
            .to_string()
    }

    #[test]
    fn what_is_not_supported_is_told_with_what_to_do() {
        let told = [
            (
                "enum E { A(DistArray<f64>), B }",
                "implement `Distributed` by hand",
            ),
            (
                "union U { a: f64, b: u64 }",
                "implement `Distributed` by hand",
            ),
            ("struct S;", "needs no `Distributed`"),
            (
                "struct S { #[distributed(same)] steps: u32 }",
                "needs no `Distributed`",
            ),
            (
                "struct S { #[distributed(skip)] a: DistArray<f64> }",
                "expected `same`",
            ),
            (
                "struct S { #[distributed(same = 1)] a: u32, b: DistArray<f64> }",
                "expected",
            ),
            (
                "struct S { #[distributed] a: u32, b: DistArray<f64> }",
                "distributed(...)",
            ),
        ];
        for (item, expected) in told {
            let said = refused(item);
            assert!(said.contains(expected), "{item}: {said}");
        }
    }
}
