//! The options in the brackets of `#[sde::app(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Token};

#[derive(Default)]
pub(super) struct Attributes {
    pub(super) name: Option<LitStr>,
    pub(super) version: Option<LitStr>,
    pub(super) about: Option<LitStr>,
    /// Whether the whole file is its code.
    pub(super) is_file: bool,
    pub(super) tags: Vec<Tag>,
    /// Whether all ranks run it together.
    pub(super) is_distributed: bool,
    /// Whether the result counts with its own memory size.
    pub(super) is_sized: bool,
    /// Whether two computations of one key may differ in bits.
    pub(super) is_not_compared: bool,
    /// Calls on the `AppInfo`: `.nondeterministic()`, `.citation("..")`.
    pub(super) info: TokenStream,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Intermediate,
    Expendable,
    NoCache,
    Distributed,
}

impl Tag {
    pub(super) fn path(self) -> TokenStream {
        match self {
            Self::Intermediate => quote!(::sde::__private::Tag::Intermediate),
            Self::Expendable => quote!(::sde::__private::Tag::Expendable),
            Self::NoCache => quote!(::sde::__private::Tag::NoCache),
            Self::Distributed => quote!(::sde::__private::Tag::Distributed),
        }
    }
}

impl Attributes {
    /// Whether each rank has a part of the result.
    pub(super) fn has_parts(&self) -> bool {
        self.tags.contains(&Tag::Distributed)
    }

    /// Whether the result is never saved, so that its type need not be serializable.
    pub(super) fn is_unsaved(&self) -> bool {
        self.tags.contains(&Tag::Expendable) || self.tags.contains(&Tag::NoCache)
    }
}

impl Parse for Attributes {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = Self::default();
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            attributes.take(&word, input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        attributes.check()?;
        Ok(attributes)
    }
}

impl Attributes {
    fn take(&mut self, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        let text = |input: ParseStream<'_>| -> syn::Result<LitStr> {
            input.parse::<Token![=]>()?;
            input.parse()
        };
        let once = |slot: &mut Option<LitStr>| match slot.replace(text(input)?) {
            None => Ok(()),
            Some(_) => Err(syn::Error::new(
                word.span(),
                format!("`{word}` is given twice"),
            )),
        };
        let add = match word.to_string().as_str() {
            "name" => return once(&mut self.name),
            "version" => return once(&mut self.version),
            "about" => return once(&mut self.about),
            "tags" => return self.take_tags(input),
            "code" => {
                self.is_file = true;
                return file(input);
            }
            "author" | "citation" => {
                let text = text(input)?;
                quote!(.#word(#text))
            }
            "failures" => failures(&text(input)?)?,
            "distributed" => {
                self.is_distributed = true;
                quote!(.distributed())
            }
            "sized" => {
                self.is_sized = true;
                return Ok(());
            }
            "not_compared" => {
                self.is_not_compared = true;
                return Ok(());
            }
            "nondeterministic" | "not_thread_safe" => quote!(.#word()),
            _ => {
                return Err(syn::Error::new(
                    word.span(),
                    format!(
                        "`{word}` is no option of `#[sde::app]`; there are: name, version, about, author, citation = \"..\"; code = file; \
                     tags(intermediate | expendable | no_cache | distributed); \
                     failures = \"permanent\" | \"transient\"; \
                     nondeterministic, distributed, not_thread_safe, sized, not_compared"
                    ),
                ));
            }
        };
        self.info.extend(add);
        Ok(())
    }

    fn take_tags(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let content;
        syn::parenthesized!(content in input);
        for word in Punctuated::<Ident, Token![,]>::parse_terminated(&content)? {
            self.tags.push(match word.to_string().as_str() {
                "intermediate" => Tag::Intermediate,
                "expendable" => Tag::Expendable,
                "no_cache" => Tag::NoCache,
                "distributed" => Tag::Distributed,
                _ => {
                    return Err(syn::Error::new(
                        word.span(),
                        format!(
                            "`{word}` is no tag; there are: intermediate, expendable, no_cache, distributed"
                        ),
                    ));
                }
            });
        }
        Ok(())
    }

    fn check(&self) -> syn::Result<()> {
        let kept = self.tags.iter().filter(|tag| **tag != Tag::Distributed);
        if kept.count() > 1 {
            return Err(syn::Error::new(
                Span::call_site(),
                "intermediate, expendable and no_cache exclude one another",
            ));
        }
        if self.tags.contains(&Tag::Distributed) && !self.is_distributed {
            return Err(syn::Error::new(
                Span::call_site(),
                "a result is distributed that all ranks make together: write `distributed, tags(distributed)`",
            ));
        }
        match &self.version {
            Some(version) if self.is_file => Err(syn::Error::new(
                version.span(),
                "a version takes the place of the source, so `code = file` has no effect: leave one of them out",
            )),
            Some(version) if version.value().is_empty() => Err(syn::Error::new(
                version.span(),
                "an empty version says nothing; leave it out to use the digest of the source",
            )),
            _ => Ok(()),
        }
    }
}

/// `= file`.
fn file(input: ParseStream<'_>) -> syn::Result<()> {
    input.parse::<Token![=]>()?;
    let word: Ident = input.parse()?;
    match word == "file" {
        true => Ok(()),
        false => Err(syn::Error::new(word.span(), "expected `code = file`")),
    }
}

fn failures(text: &LitStr) -> syn::Result<TokenStream> {
    match text.value().as_str() {
        "permanent" => Ok(quote!(.failures(::sde::__private::Failure::Permanent))),
        "transient" => Ok(quote!(.failures(::sde::__private::Failure::Transient))),
        _ => Err(syn::Error::new(
            text.span(),
            "expected \"permanent\" or \"transient\"",
        )),
    }
}
