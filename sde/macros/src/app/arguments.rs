//! The parameters of the function: how each is kept for a call, and how it is
//! found among `Inputs`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    FnArg, GenericArgument, Ident, Lifetime, Pat, PathArguments, Signature, Type, TypeReference,
};

/// What a function takes.
pub(super) struct Arguments {
    /// Whether the first parameter is the handle.
    pub(super) takes_handle: bool,
    pub(super) list: Vec<Argument>,
}

pub(super) struct Argument {
    pub(super) name: Ident,
    pub(super) text: String,
    /// As written.
    pub(super) written: Type,
    /// With every elided lifetime named `'call`.
    pub(super) borrowed: Type,
}

impl Arguments {
    pub(super) fn of(signature: &Signature) -> syn::Result<Self> {
        let mut takes_handle = false;
        let mut list = Vec::new();
        for (place, input) in signature.inputs.iter().enumerate() {
            let FnArg::Typed(typed) = input else {
                return Err(syn::Error::new(input.span(), "a method can't be an app"));
            };
            if place == 0 && is_handle(&typed.ty) {
                takes_handle = true;
                continue;
            }
            let Pat::Ident(pattern) = &*typed.pat else {
                return Err(syn::Error::new(
                    typed.pat.span(),
                    "the parameters of an app need names, which are part of the key",
                ));
            };
            if let Type::Reference(TypeReference {
                mutability: Some(word),
                ..
            }) = &*typed.ty
            {
                return Err(syn::Error::new(
                    word.span(),
                    "an app can't change its inputs: return the new value instead",
                ));
            }
            let mut borrowed = (*typed.ty).clone();
            NameLifetimes.visit_type_mut(&mut borrowed);
            list.push(Argument {
                text: pattern
                    .ident
                    .to_string()
                    .trim_start_matches("r#")
                    .to_owned(),
                name: pattern.ident.clone(),
                written: (*typed.ty).clone(),
                borrowed,
            });
        }
        Ok(Self { takes_handle, list })
    }
}

impl Argument {
    /// The argument taken from `inputs`.
    pub(super) fn found_in_inputs(&self) -> TokenStream {
        let text = &self.text;
        let ty = &self.written;
        let span = ty.span();
        match ty {
            Type::Reference(reference) => match &*reference.elem {
                Type::Path(path) if path.path.is_ident("str") => {
                    quote_spanned!(span=> inputs.text(#text)?)
                }
                Type::Slice(slice) => {
                    let item = &slice.elem;
                    quote_spanned!(span=> inputs.get::<::std::vec::Vec<#item>>(#text)?.as_slice())
                }
                inner => quote_spanned!(span=> inputs.get::<#inner>(#text)?),
            },
            _ => match argument_of(ty, "Value") {
                Some(inner) => quote_spanned!(span=> inputs.value::<#inner>(#text)?),
                None => {
                    quote_spanned!(span=> ::std::clone::Clone::clone(inputs.get::<#ty>(#text)?))
                }
            },
        }
    }
}

/// `T` of `Wrapper<T>` or `path::Wrapper<T, ..>`.
pub(super) fn argument_of<'t>(ty: &'t Type, wrapper: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    if last.ident != wrapper {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

fn is_handle(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else {
        return false;
    };
    let Type::Path(path) = &*reference.elem else {
        return false;
    };
    path.path
        .segments
        .last()
        .is_some_and(|last| last.ident == "Handle")
}

struct NameLifetimes;

impl VisitMut for NameLifetimes {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference
            .lifetime
            .get_or_insert_with(|| Lifetime::new("'call", reference.and_token.span()));
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = Lifetime::new("'call", lifetime.span());
        }
    }
}

/// The fields of a call: each argument until it is used.
pub(super) fn fields(list: &[Argument]) -> TokenStream {
    let types = list.iter().map(|argument| &argument.borrowed);
    quote!(#(::std::option::Option<#types>,)*)
}
