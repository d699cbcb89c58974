//! `#[derive(Settings)]`: each field of a struct is a parameter or a slot of an app.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Expr, Fields, Ident, LitStr, Type, Visibility};

use crate::app::first_paragraph;
use crate::source;

/// A field, which is a parameter or a slot.
struct Field {
    field: Ident,
    ty: Type,
    name: String,
    about: String,
    is_slot: bool,
    default: Option<Expr>,
    /// Calls on the `Parameter`.
    more: TokenStream,
}

/// The expansion of the derive.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let refuse = |place: &dyn ToTokens, why| Err(syn::Error::new_spanned(place, why));
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => &fields.named,
            _ => {
                return refuse(
                    &input.ident,
                    "settings have names: `Settings` goes on a struct with named fields",
                );
            }
        },
        _ => {
            return refuse(
                &input.ident,
                "an app has the same settings at every run: `Settings` goes on a struct",
            );
        }
    };
    if !input.generics.params.is_empty() {
        return refuse(
            &input.generics,
            "a generic app is many apps under one name: leave the generics out",
        );
    }
    let fields = fields.iter().map(Field::of);
    let fields = fields.collect::<syn::Result<Vec<_>>>()?;
    let (name, visibility) = (&input.ident, &input.vis);
    let app = format_ident!("{name}App");
    let (text, about) = (name.unraw().to_string(), first_paragraph(&input.attrs));
    let docs = format!("The app [`{name}`] with its settings.");
    let declared = fields.iter().map(Field::declared);
    let read = fields.iter().map(Field::read);
    let setters = fields.iter().map(|field| field.setter(visibility));
    let source = source::of(&input.to_token_stream());
    let of_fields = format!("settings {text}");
    Ok(quote! {
        #[doc = #docs]
        #[derive(Clone, Debug)]
        #[must_use = "an app does nothing until it is run"]
        #visibility struct #app(::sde::__private::Instance);

        #[automatically_derived]
        impl ::sde::__private::Settings for #name {
            const NAME: &'static str = #text;

            fn declare(__info: ::sde::__private::AppInfo) -> ::sde::__private::AppInfo {
                let __info = match __info.description() {
                    "" => __info.about(#about),
                    _ => __info,
                };
                // Which field is which setting is code of the app.
                (__info #(#declared)*).counting(#of_fields.to_owned(), #source.digest())
            }

            fn read(__sde: &::sde::__private::Handle) -> ::sde::__private::Result<Self> {
                let _ = __sde;
                ::std::result::Result::Ok(Self { #(#read,)* })
            }
        }

        // A program need not set each.
        #[allow(dead_code)]
        #[automatically_derived]
        impl #name {
            /// The app with its defaults.
            #visibility fn app() -> #app {
                #app(::sde::__private::app_of::<#name>())
            }
        }

        #[allow(dead_code)]
        #[automatically_derived]
        impl #app {
            #(#setters)*
        }

        #[automatically_derived]
        impl ::sde::__private::AppSource for #app {
            fn resolve(
                &self,
                __sde: &::sde::__private::Handle,
            ) -> ::sde::__private::Result<::sde::__private::CalledApp<'_>> {
                ::sde::__private::AppSource::resolve(&self.0, __sde)
            }
        }

        #[automatically_derived]
        impl ::std::convert::From<#app> for ::sde::__private::Instance {
            fn from(__app: #app) -> Self {
                __app.0
            }
        }

        #[automatically_derived]
        impl ::std::convert::From<#app> for ::sde::__private::SubApp {
            fn from(__app: #app) -> Self {
                ::std::convert::Into::into(__app.0)
            }
        }
    })
}

impl Field {
    fn of(field: &syn::Field) -> syn::Result<Self> {
        let Some(ident) = field.ident.clone() else {
            return Err(syn::Error::new(field.span(), "settings have names"));
        };
        let mut found = Self {
            name: ident.unraw().to_string(),
            about: first_paragraph(&field.attrs),
            is_slot: field.attrs.iter().any(|one| one.path().is_ident("slot")),
            field: ident,
            ty: field.ty.clone(),
            default: None,
            more: TokenStream::new(),
        };
        for attribute in &field.attrs {
            let is_setting = attribute.path().is_ident("setting");
            if is_setting && found.is_slot {
                return Err(syn::Error::new(
                    attribute.span(),
                    "a field is a setting or a slot, not both",
                ));
            }
            let is_list = matches!(attribute.meta, syn::Meta::List(_));
            if is_list && (is_setting || attribute.path().is_ident("slot")) {
                attribute.parse_nested_meta(|meta| found.take(&meta))?;
            }
        }
        Ok(found)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let word = meta.path.require_ident()?;
        let text = || Ok::<_, syn::Error>(meta.value()?.parse::<LitStr>()?.value());
        let ty = &self.ty;
        match word.to_string().as_str() {
            "name" => self.name = text()?,
            "about" => self.about = text()?,
            "default" => self.default = Some(meta.value()?.parse()?),
            "check" | "check_with" if !self.is_slot => {
                let check: Expr = meta.value()?.parse()?;
                let span = Span::call_site().located_at(check.span());
                self.more
                    .extend(quote_spanned!(span=> .#word::<#ty>(#check)));
            }
            "transparent" if !self.is_slot => self.more.extend(quote!(.transparent())),
            _ => {
                let what = match self.is_slot {
                    true => "slot; there are: default = app; name, about = \"..\"",
                    false => {
                        "setting; there are: default = value; check, check_with = function; transparent; name, about = \"..\""
                    }
                };
                return Err(meta.error(format!("`{word}` is no option of a {what}")));
            }
        }
        Ok(())
    }

    /// Adds it to an `AppInfo`.
    fn declared(&self) -> TokenStream {
        let Self {
            ty,
            name,
            about,
            more,
            ..
        } = self;
        let span = Span::call_site().located_at(ty.span());
        match (self.is_slot, &self.default) {
            (true, Some(app)) => {
                quote!(.slot(::sde::__private::Slot::new(#name, #app).about(#about)))
            }
            (true, None) => quote!(.slot(::sde::__private::Slot::required(#name).about(#about))),
            (false, Some(value)) => quote_spanned! {span=>
                .parameter(::sde::__private::Parameter::new::<#ty>(#name, #value).about(#about) #more)
            },
            (false, None) => quote_spanned! {span=>
                .parameter(::sde::__private::Parameter::required::<#ty>(#name).about(#about) #more)
            },
        }
    }

    /// Takes it from the handle `__sde`.
    fn read(&self) -> TokenStream {
        let Self {
            field, ty, name, ..
        } = self;
        let span = Span::call_site().located_at(ty.span());
        match self.is_slot {
            true => quote_spanned!(span=> #field: __sde.sub_app(#name)?),
            false => quote_spanned! {span=>
                #field: ::std::clone::Clone::clone(__sde.parameter::<#ty>(#name)?)
            },
        }
    }

    /// The method that sets it.
    fn setter(&self, visibility: &Visibility) -> TokenStream {
        let Self {
            field,
            ty,
            name,
            about,
            ..
        } = self;
        let docs = match about.as_str() {
            "" => format!("Sets `{name}`."),
            about => format!("Sets `{name}`: {about}"),
        };
        let (given, set) = match self.is_slot {
            true => (
                quote!(impl ::std::convert::Into<::sde::__private::SubApp>),
                quote!(filled(#name, ::std::convert::Into::into(__value))),
            ),
            false => (quote!(#ty), quote!(with(#name, __value))),
        };
        quote! {
            #[doc = #docs]
            #visibility fn #field(self, __value: #given) -> Self {
                Self(self.0.#set)
            }
        }
    }
}
