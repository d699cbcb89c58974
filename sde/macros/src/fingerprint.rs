//! `#[derive(Fingerprint)]`: the type's declared name, its type arguments, and
//! every field that is not skipped.
//!
//! On the type: `name = ".."` in place of its own name. On a variant: `name`. On
//! a field: `skip`, `name = ".."`, `round = N`, `serde`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, LitInt, LitStr, Path, Token};

/// The expansion of the derive.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let options = Options::of(&input.attrs, Place::Type)?;
    let sde = options.sde.unwrap_or_else(|| syn::parse_quote!(::sde));
    let declared = options
        .name
        .unwrap_or_else(|| input.ident.unraw().to_string());
    let parts = match &input.data {
        Data::Struct(data) => of_struct(&sde, &declared, &data.fields)?,
        Data::Enum(data) => of_enum(&sde, data)?,
        Data::Union(data) => {
            return Err(syn::Error::new(
                data.union_token.span(),
                "a union does not say which of its fields is meant; implement `Fingerprint` by hand",
            ));
        }
    };
    let Parts {
        fingerprint,
        describe,
    } = parts;
    let mut generics = input.generics.clone();
    let written = written_types(&input.data)?;
    let params = generics.type_params().map(|param| param.ident.clone());
    let types: Vec<Ident> = params.filter(|ident| mentions(&written, ident)).collect();
    let of_no_size = of_no_size(&generics);
    let clause = generics.make_where_clause();
    for ty in &types {
        clause
            .predicates
            .push(syn::parse_quote!(#ty: #sde::Fingerprint));
        if of_no_size.contains(ty) {
            // Of types with a size it is known.
            clause
                .predicates
                .push(syn::parse_quote!(#ty: #sde::key::TypeShape));
        }
    }
    let constants: Vec<Ident> = generics.const_params().map(|p| p.ident.clone()).collect();
    let arguments = types.len() + constants.len();
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics #sde::Fingerprint for #name #type_generics #where_clause {
            fn fingerprint(
                &self,
                __to: &mut #sde::key::Encoder<'_>,
            ) -> ::std::result::Result<(), #sde::key::FingerprintError> {
                #fingerprint
            }

            fn describe(&self, __out: &mut #sde::key::Short) {
                #describe
            }

            fn shape(__to: &mut #sde::key::TypeWriter<'_, '_>) {
                __to.declared(#declared, #arguments);
                #(__to.of::<#types>();)*
                #(__to.constant(&#constants);)*
            }
        }
    })
}

/// The type parameters that are `?Sized`.
fn of_no_size(generics: &syn::Generics) -> Vec<Ident> {
    let relaxes = |bound: &syn::TypeParamBound| match bound {
        syn::TypeParamBound::Trait(bound) => {
            matches!(bound.modifier, syn::TraitBoundModifier::Maybe(_))
        }
        _ => false,
    };
    let in_clause = |param: &Ident| {
        let clause = generics.where_clause.iter();
        clause
            .flat_map(|clause| &clause.predicates)
            .any(|predicate| match predicate {
                syn::WherePredicate::Type(of) => {
                    matches!(&of.bounded_ty, syn::Type::Path(path) if path.path.is_ident(param))
                        && of.bounds.iter().any(relaxes)
                }
                _ => false,
            })
    };
    let params = generics.type_params();
    params
        .filter(|param| param.bounds.iter().any(relaxes) || in_clause(&param.ident))
        .map(|param| param.ident.clone())
        .collect()
}

/// The types of all written fields. A type parameter of skipped fields only (a logger's) need not be part of keys.
fn written_types(data: &Data) -> syn::Result<Vec<TokenStream>> {
    let all: Vec<&Fields> = match data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| &variant.fields)
            .collect(),
        Data::Union(_) => Vec::new(),
    };
    let mut types = Vec::new();
    for field in all.into_iter().flatten() {
        if !Options::of(&field.attrs, Place::Field)?.skip {
            types.push(field.ty.to_token_stream());
        }
    }
    Ok(types)
}

/// Whether the identifier stands anywhere in the tokens.
fn mentions(tokens: &[TokenStream], ident: &Ident) -> bool {
    tokens.iter().any(|tokens| {
        tokens.clone().into_iter().any(|token| match token {
            TokenTree::Ident(found) => found == *ident,
            TokenTree::Group(group) => mentions(&[group.stream()], ident),
            _ => false,
        })
    })
}

struct Parts {
    fingerprint: TokenStream,
    describe: TokenStream,
}

fn of_struct(sde: &Path, declared: &str, fields: &Fields) -> syn::Result<Parts> {
    let (pattern, list) = bind(fields)?;
    let write = write(sde, &list);
    let show = show(sde, "structure", declared, &list);
    Ok(Parts {
        fingerprint: quote! {
            let Self #pattern = self;
            __to.structure_of::<Self>(|__fields| { #write })
        },
        describe: quote! {
            let Self #pattern = self;
            #show
        },
    })
}

fn of_enum(sde: &Path, data: &syn::DataEnum) -> syn::Result<Parts> {
    let mut fingerprint = TokenStream::new();
    let mut describe = TokenStream::new();
    let mut names = Vec::new();
    for variant in &data.variants {
        let options = Options::of(&variant.attrs, Place::Variant)?;
        let ident = &variant.ident;
        let name = options.name.unwrap_or_else(|| ident.unraw().to_string());
        if names.contains(&name) {
            return Err(syn::Error::new(
                ident.span(),
                format!("two variants are named \"{name}\" in the key"),
            ));
        }
        let (pattern, list) = bind(&variant.fields)?;
        let write = write(sde, &list);
        let show = show(sde, "variant", &name, &list);
        fingerprint.extend(quote! {
            Self::#ident #pattern => __to.variant_of::<Self>(#name, |__fields| { #write }),
        });
        describe.extend(quote!(Self::#ident #pattern => { #show }));
        names.push(name);
    }
    if data.variants.is_empty() {
        return Ok(Parts {
            fingerprint: quote!({
                let _ = __to;
                match *self {}
            }),
            describe: quote!({
                let _ = __out;
                match *self {}
            }),
        });
    }
    Ok(Parts {
        fingerprint: quote!(match self { #fingerprint }),
        describe: quote!(match self { #describe }),
    })
}

/// One field that is written.
struct Field {
    variable: Ident,
    name: String,
    how: How,
    span: Span,
}

#[derive(Clone, Copy)]
enum How {
    Plain,
    Rounded(u8),
    BySerde,
}

/// A pattern that binds the written fields, and a list of them.
fn bind(fields: &Fields) -> syn::Result<(TokenStream, Vec<Field>)> {
    let mut list: Vec<Field> = Vec::new();
    let mut bindings = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        let options = Options::of(&field.attrs, Place::Field)?;
        let variable = format_ident!("__field_{}", place);
        let plain = match &field.ident {
            Some(ident) => ident.unraw().to_string(),
            None => place.to_string(),
        };
        let member = field.ident.as_ref();
        if options.skip {
            bindings.push(match member {
                Some(member) => quote!(#member: _),
                None => quote!(_),
            });
            continue;
        }
        let name = options.name.unwrap_or(plain);
        if list.iter().any(|other| other.name == name) {
            return Err(syn::Error::new(
                field.span(),
                format!("two fields are named \"{name}\" in the key"),
            ));
        }
        bindings.push(match member {
            Some(member) => quote!(#member: #variable),
            None => quote!(#variable),
        });
        list.push(Field {
            variable,
            name,
            how: options.how,
            span: field.span(),
        });
    }
    let pattern = match fields {
        Fields::Named(_) => quote!({ #(#bindings),* }),
        Fields::Unnamed(_) => quote!(( #(#bindings),* )),
        Fields::Unit => TokenStream::new(),
    };
    Ok((pattern, list))
}

fn write(sde: &Path, list: &[Field]) -> TokenStream {
    let lines = list.iter().map(|field| {
        let (variable, name) = (&field.variable, &field.name);
        match field.how {
            How::Plain => quote::quote_spanned!(field.span=> __fields.field(#name, #variable)?;),
            How::Rounded(digits) => quote::quote_spanned! {field.span=>
                __fields.field(#name, &#sde::key::Rounded::new(#variable, #digits))?;
            },
            How::BySerde => quote::quote_spanned! {field.span=>
                __fields.field(#name, &#sde::key::BySerde(#variable))?;
            },
        }
    });
    quote! {
        #(#lines)*
        let _ = __fields;
        ::std::result::Result::Ok(())
    }
}

fn show(sde: &Path, method: &str, name: &str, list: &[Field]) -> TokenStream {
    let method = format_ident!("{method}");
    let fields = list.iter().map(|field| {
        let (variable, name) = (&field.variable, &field.name);
        match field.how {
            How::Plain => quote!((#name, #variable)),
            How::Rounded(digits) => quote!((#name, &#sde::key::Rounded::new(#variable, #digits))),
            How::BySerde => quote!((#name, &#sde::key::BySerde(#variable))),
        }
    });
    quote!(__out.#method(#name, &[#(#fields),*]);)
}

/// The place of an attribute, which decides its options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Type,
    Variant,
    Field,
}

struct Options {
    name: Option<String>,
    skip: bool,
    how: How,
    sde: Option<Path>,
}

impl Options {
    fn of(attributes: &[Attribute], place: Place) -> syn::Result<Self> {
        let mut options = Self {
            name: None,
            skip: false,
            how: How::Plain,
            sde: None,
        };
        for attribute in attributes {
            if attribute.path().is_ident("fingerprint") {
                attribute.parse_args_with(|input: ParseStream<'_>| options.read(input, place))?;
            }
        }
        Ok(options)
    }

    fn read(&mut self, input: ParseStream<'_>, place: Place) -> syn::Result<()> {
        while !input.is_empty() {
            // `crate` is a keyword, so any identifier-like token is taken.
            let word = input.call(Ident::parse_any)?;
            let in_field = place == Place::Field;
            match word.to_string().as_str() {
                "name" => {
                    input.parse::<Token![=]>()?;
                    self.name = Some(input.parse::<LitStr>()?.value());
                }
                "skip" if in_field => self.skip = true,
                "serde" if in_field => self.how = How::BySerde,
                "round" if in_field => {
                    input.parse::<Token![=]>()?;
                    let digits = input.parse::<LitInt>()?;
                    self.how = How::Rounded(digits.base10_parse()?);
                }
                "crate" if place == Place::Type => {
                    input.parse::<Token![=]>()?;
                    self.sde = Some(input.parse()?);
                }
                _ => return Err(syn::Error::new(word.span(), place.expected())),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }
}

impl Place {
    fn expected(self) -> &'static str {
        match self {
            Self::Type => "expected `name = \"..\"` or `crate = path`",
            Self::Variant => "expected `name = \"..\"`",
            Self::Field => "expected `skip`, `name = \"..\"`, `round = DIGITS` or `serde`",
        }
    }
}
