//! The options in the brackets of `#[sde::app(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Token};

use crate::result::ResultOptions;

#[derive(Default)]
pub(super) struct Attributes {
    pub(super) name: Option<LitStr>,
    pub(super) version: Option<LitStr>,
    pub(super) about: Option<LitStr>,
    /// Whether each field of the value is a result.
    pub(super) by_field: bool,
    /// Whether the whole file is its code.
    pub(super) is_file: bool,
    /// Of the result.
    pub(super) result: ResultOptions,
    /// Whether all ranks run it together.
    pub(super) is_distributed: bool,
    /// Calls on the `AppInfo`: `.nondeterministic()`, `.citation("..")`.
    pub(super) info: TokenStream,
}

impl Attributes {
    /// Whether they say nothing but what the code is.
    pub(super) fn say_only_the_code(&self) -> bool {
        let Self {
            name,
            version,
            about,
            is_distributed,
            by_field,
            ..
        } = self;
        let texts = [name, version, about];
        let is_any = *is_distributed || *by_field || self.result.is_any() || !self.info.is_empty();
        !is_any && texts.iter().all(|text| text.is_none())
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
            "results" => {
                self.by_field = true;
                return Ok(());
            }
            _ if self.result.take_trait(word) => return Ok(()),
            "nondeterministic" | "not_thread_safe" => quote!(.#word()),
            _ => {
                return Err(syn::Error::new(
                    word.span(),
                    format!(
                        "`{word}` is no option of `#[sde::app]`; there are: name, version, about, author, citation = \"..\"; code = file; \
                     tags(intermediate | expendable | no_cache); \
                     failures = \"permanent\" | \"transient\"; \
                     nondeterministic, distributed, not_thread_safe, sized, not_compared, results"
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
            self.result.take_tag(&word)?;
        }
        Ok(())
    }

    fn check(&self) -> syn::Result<()> {
        self.result.check(Span::call_site())?;
        if self.by_field && self.result.is_any() {
            return Err(syn::Error::new(
                Span::call_site(),
                "with `results` each field has its own tags and options: write `#[result(..)]` there",
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
    if word == "file" {
        Ok(())
    } else {
        Err(syn::Error::new(word.span(), "expected `code = file`"))
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
