//! The parameters of the function: how each is kept for a call, and how it is
//! found among `Inputs`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, FnArg, GenericArgument, Ident, Lifetime, Pat, PatType, PathArguments, Signature,
    Type, TypeBareFn, TypeImplTrait, TypeReference, TypeTraitObject,
};

/// The parameters of a function.
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
            refuse_unsupported(place, typed)?;
            let Pat::Ident(pattern) = &*typed.pat else {
                return Err(syn::Error::new(
                    typed.pat.span(),
                    "the parameters of an app need names, which are part of the key",
                ));
            };
            if pattern.ident == signature.ident {
                return Err(syn::Error::new(
                    pattern.ident.span(),
                    "an argument can't have the name of its function, which is an app from here on",
                ));
            }
            let mut borrowed = (*typed.ty).clone();
            NameLifetimes.visit_type_mut(&mut borrowed);
            list.push(Argument {
                text: pattern.ident.unraw().to_string(),
                name: pattern.ident.clone(),
                written: (*typed.ty).clone(),
                borrowed,
            });
        }
        Ok(Self { takes_handle, list })
    }
}

/// Refuses a type that can't be an argument, and tells what to write instead.
fn refuse_unsupported(place: usize, typed: &PatType) -> syn::Result<()> {
    let ty = &*typed.ty;
    let refuse = |span, why: &str| Err(syn::Error::new(span, why));
    let is_cfg = |attribute: &&Attribute| {
        let path = attribute.path();
        path.is_ident("cfg") || path.is_ident("cfg_attr")
    };
    if let Some(attribute) = typed.attrs.iter().find(is_cfg) {
        return refuse(
            attribute.span(),
            "an argument can't be there in some builds only: put `#[cfg(..)]` on two functions",
        );
    }
    if place > 0 && is_handle(ty) {
        return refuse(
            ty.span(),
            "the handle comes first: `fn f(sde: &Handle, ..)`",
        );
    }
    if refers_to(ty, "Sde") {
        return refuse(
            ty.span(),
            "an app is given a handle: write `sde: &Handle`, first",
        );
    }
    let mut forbidden = Forbidden::default();
    forbidden.visit_type_mut(&mut ty.clone());
    if let Some(span) = forbidden.any_type {
        return refuse(
            span,
            "`impl Trait` is many apps under one name: name the type, or write one function for each",
        );
    }
    if let Some(span) = forbidden.static_borrow {
        return refuse(
            span,
            "an argument can't be borrowed for ever, since a run may own its inputs: leave `'static` out, or \
             take the value (`String` for `&'static str`)",
        );
    }
    match ty {
        Type::Reference(TypeReference {
            mutability: Some(word),
            ..
        }) => refuse(
            word.span(),
            "an app can't change its inputs: return the new value instead",
        ),
        _ => Ok(()),
    }
}

/// Parts that no argument's type may have.
#[derive(Default)]
struct Forbidden {
    any_type: Option<Span>,
    static_borrow: Option<Span>,
}

impl VisitMut for Forbidden {
    fn visit_type_impl_trait_mut(&mut self, ty: &mut TypeImplTrait) {
        self.any_type.get_or_insert(ty.span());
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if let Some(lifetime) = &reference.lifetime
            && lifetime.ident == "static"
        {
            self.static_borrow.get_or_insert(lifetime.span());
        }
        visit_mut::visit_type_reference_mut(self, reference);
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
                    quote_spanned!(span=> __inputs.text(#text)?)
                }
                _ if refers_to(ty, "Path") => {
                    quote_spanned!(span=> __inputs.get::<::std::path::PathBuf>(#text)?.as_path())
                }
                Type::Slice(slice) => {
                    let item = &slice.elem;
                    quote_spanned!(span=> __inputs.get::<::std::vec::Vec<#item>>(#text)?.as_slice())
                }
                inner => match argument_of(inner, "Value") {
                    Some(inner) => quote_spanned!(span=> &__inputs.value::<#inner>(#text)?),
                    None => quote_spanned!(span=> __inputs.get::<#inner>(#text)?),
                },
            },
            _ => match argument_of(ty, "Value") {
                Some(inner) => quote_spanned!(span=> __inputs.value::<#inner>(#text)?),
                None => quote_spanned!(span=> __inputs.owned::<#ty>(#text)?),
            },
        }
    }

    /// The type that it is declared with.
    fn declared(&self) -> Type {
        let owned = Owned::of(self);
        argument_of(owned.ty(), "Value")
            .unwrap_or(owned.ty())
            .clone()
    }
}

/// What the app declares of its inputs, made once.
pub(super) fn declared(list: &[Argument]) -> TokenStream {
    let one = list.iter().map(|argument| {
        let (ty, text) = (argument.declared(), &argument.text);
        quote!(.with::<#ty>(#text))
    });
    quote! {
        static __INPUTS: ::sde::__private::FunctionInputs = ::sde::__private::FunctionInputs::new(
            || ::std::sync::Arc::new(::sde::__private::DeclaredInputs::default() #(#one)*),
        );
    }
}

/// The place of a reference that is not for ever in the type of a value, or of a lifetime.
pub(super) fn borrowed(value: &Type) -> Option<Span> {
    struct Borrows(Option<Span>);
    impl VisitMut for Borrows {
        fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
            let lifetime = reference.lifetime.as_ref();
            if lifetime.is_none_or(|lifetime| lifetime.ident != "static") {
                self.0.get_or_insert(reference.span());
            }
        }

        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            if lifetime.ident != "static" {
                self.0.get_or_insert(lifetime.span());
            }
        }

        // The references in the type of a function or of a trait object are not the value's.
        fn visit_type_bare_fn_mut(&mut self, _: &mut TypeBareFn) {}
        fn visit_type_trait_object_mut(&mut self, _: &mut TypeTraitObject) {}
    }
    let mut found = Borrows(None);
    found.visit_type_mut(&mut value.clone());
    found.0
}

/// `T` of `Wrapper<T>` or `path::Wrapper<T, ..>`.
pub(crate) fn argument_of<'t>(ty: &'t Type, wrapper: &str) -> Option<&'t Type> {
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
    refers_to(ty, "Handle")
}

/// Whether this is `&Name` or `&path::Name`.
pub(super) fn refers_to(ty: &Type, name: &str) -> bool {
    let Type::Reference(reference) = ty else {
        return false;
    };
    let Type::Path(path) = &*reference.elem else {
        return false;
    };
    path.path
        .segments
        .last()
        .is_some_and(|last| last.ident == name)
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

/// The owned type of an argument, in `Inputs`.
pub(super) enum Owned {
    /// Exactly this type, so that the type of a number follows from it.
    Exactly(Type),
    /// Any type that converts into it.
    Into(Type),
}

impl Owned {
    pub(super) fn of(argument: &Argument) -> Self {
        let mut written = argument.written.clone();
        Forever.visit_type_mut(&mut written);
        let Type::Reference(reference) = &written else {
            return match argument_of(&written, "Value") {
                Some(_) => Self::Into(written),
                None => Self::Exactly(written),
            };
        };
        Self::Into(match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => {
                syn::parse_quote!(::std::string::String)
            }
            _ if refers_to(&written, "Path") => syn::parse_quote!(::std::path::PathBuf),
            Type::Slice(slice) => {
                let item = &slice.elem;
                syn::parse_quote!(::std::vec::Vec<#item>)
            }
            inner => inner.clone(),
        })
    }

    /// A generic parameter for it, if it has one, and the type that a verb takes.
    pub(super) fn taken((at, owned): (usize, &Self)) -> (Option<TokenStream>, TokenStream) {
        match owned {
            Self::Exactly(ty) => (None, quote!(#ty)),
            Self::Into(ty) => {
                let name = format_ident!("__A{at}");
                (
                    Some(quote!(#name: ::std::convert::Into<#ty>,)),
                    quote!(#name),
                )
            }
        }
    }

    fn ty(&self) -> &Type {
        match self {
            Self::Exactly(ty) | Self::Into(ty) => ty,
        }
    }
}

impl ToTokens for Owned {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.ty().to_tokens(tokens);
    }
}

/// Makes all borrows of a type `'static`, since `Inputs` borrow nothing else.
struct Forever;

impl VisitMut for Forever {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        let span = reference.span();
        reference.lifetime = Some(Lifetime::new("'static", span));
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        *lifetime = Lifetime::new("'static", lifetime.span());
    }
}
