//! What is said of one result: of a function's, or of a field of `#[derive(Results)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Ident, Type};

/// The tags and traits of a result.
#[derive(Default)]
pub(crate) struct ResultOptions {
    tags: Vec<Tag>,
    /// Whether it counts with its own memory size.
    is_sized: bool,
    /// Whether two computations of one key may differ in bits.
    is_not_compared: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Intermediate,
    Expendable,
    NoCache,
}

impl Tag {
    fn path(self) -> TokenStream {
        match self {
            Self::Intermediate => quote!(::sde::__private::Tag::Intermediate),
            Self::Expendable => quote!(::sde::__private::Tag::Expendable),
            Self::NoCache => quote!(::sde::__private::Tag::NoCache),
        }
    }
}

impl ResultOptions {
    /// Takes the name of a tag.
    pub(crate) fn take_tag(&mut self, word: &Ident) -> syn::Result<()> {
        self.tags.push(match word.to_string().as_str() {
            "intermediate" => Tag::Intermediate,
            "expendable" => Tag::Expendable,
            "no_cache" => Tag::NoCache,
            "distributed" => {
                return Err(syn::Error::new(
                    word.span(),
                    "leave `distributed` out of the tags: it follows from the type of the result",
                ));
            }
            _ => {
                return Err(syn::Error::new(
                    word.span(),
                    format!("`{word}` is no tag; there are: intermediate, expendable, no_cache"),
                ));
            }
        });
        Ok(())
    }

    /// Takes `sized` or `not_compared`, and says whether it was one of these.
    pub(crate) fn take_trait(&mut self, word: &Ident) -> bool {
        self.is_sized |= word == "sized";
        self.is_not_compared |= word == "not_compared";
        word == "sized" || word == "not_compared"
    }

    /// Whether anything was said.
    pub(crate) fn is_any(&self) -> bool {
        !self.tags.is_empty() || self.is_sized || self.is_not_compared
    }

    /// Whether the result is never saved, so that its type need not be serializable, and a hit may lack it.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.tags.contains(&Tag::Expendable) || self.tags.contains(&Tag::NoCache)
    }

    pub(crate) fn check(&self, place: Span) -> syn::Result<()> {
        match self.tags.len() > 1 {
            true => Err(syn::Error::new(
                place,
                "intermediate, expendable and no_cache exclude one another",
            )),
            false => Ok(()),
        }
    }

    /// The `ResultSpec` of a result of this name and type, which has parts on all ranks if its type may and the app is
    /// `distributed`.
    pub(crate) fn spec(&self, name: &str, ty: &Type, is_distributed: bool) -> TokenStream {
        let spec = match self.is_unsaved() {
            is_unsaved if is_distributed => {
                let new = Ident::new(if is_unsaved { "unsaved" } else { "saved" }, ty.span());
                quote!({
                    use ::sde::__private::{OfParts as _, OfWhole as _};
                    (&::sde::__private::ValueType::<#ty>::NEW).lies().#new::<#ty>(#name)
                })
            }
            true => quote!(::sde::__private::ResultSpec::unsaved::<#ty>(#name)),
            false => quote!(::sde::__private::ResultSpec::new::<#ty>(#name)),
        };
        let tags: Vec<_> = self.tags.iter().map(|tag| tag.path()).collect();
        let tagged = (!tags.is_empty()).then(|| quote!(.tagged([#(#tags),*])));
        let sized = self.is_sized.then(|| quote!(.sized::<#ty>()));
        let not_compared = self.is_not_compared.then(|| quote!(.not_compared()));
        quote!(#spec #tagged #sized #not_compared)
    }
}
