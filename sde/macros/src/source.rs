//! The source of an app or a helper, as registered in the program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Expr, Item, Lit, Meta, MetaList, PatIdent, Token};

use crate::digest;

/// The `Source` value of this item.
pub(crate) fn of(item: &TokenStream) -> TokenStream {
    of_text(item.clone(), item)
}

/// The `Source` value of this item, with its whole file as its text.
pub(crate) fn of_file(item: &TokenStream) -> syn::Result<TokenStream> {
    let place = item.span();
    let refuse = |why: String| syn::Error::new(place, why);
    let mut files = Vec::new();
    // Tests of this crate have no files.
    if proc_macro::is_available() {
        find_files(item.clone(), &mut files);
    }
    let [Some(path)] = &files[..] else {
        return Err(refuse(
            "the compiler names no file that has all of this, as where a macro of another file makes it: leave \
             `code = file` out"
                .to_owned(),
        ));
    };
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| refuse(format!("can't read {}: {error}", path.display())))?;
    let tokens = text.parse::<TokenStream>();
    let tokens = tokens.map_err(|error| refuse(format!("{}: {error}", path.display())))?;
    let tokens: Vec<_> = tokens.into_iter().collect();
    // Inner documentation is three tokens: `#`, `!` and `[doc = ..]`.
    let is_doc = |three: &[TokenTree]| matches!(three, [_, _, TokenTree::Group(group)] if digest::is_doc(&group.stream()));
    let docs = tokens.chunks(3).take_while(|three| is_doc(three)).count();
    // What a macro made of the item is in no file.
    let text = tokens.into_iter().skip(3 * docs).chain(item.clone());
    Ok(of_text(text.collect(), item))
}

/// The files that the words of an item are in, each once.
fn find_files(item: TokenStream, files: &mut Vec<Option<PathBuf>>) {
    for token in item {
        let inner = match &token {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        };
        let file = token.span().unwrap().local_file();
        if !files.contains(&file) {
            files.push(file);
        }
        if let Some(inner) = inner {
            find_files(inner, files);
        }
    }
}

/// The `Source` value of this text. Bare names are those of the item, as they are resolved where it stands.
fn of_text(text: TokenStream, item: &TokenStream) -> TokenStream {
    let (digest, words) = (digest::of(text.clone()), digest::words(text.clone()));
    let mut conditions = Vec::new();
    find_conditions(text, &mut conditions);
    let names = names(item);
    quote! {
        ::sde::__private::Source {
            digest: [#(#digest),*],
            words: #words,
            conditions: &[#(::core::cfg!(#conditions)),*],
            names: #names,
        }
    }
}

/// A function that resolves each bare name of the item to its helper.
///
/// A helper's trait has the helper's name, and `use` imports both. Each name is imported from a module that has the
/// names of the item's module. If it is a helper's trait, its method is found; otherwise that of `NoHelper`. A
/// function of each name is in that module too, so that no import fails.
fn names(item: &TokenStream) -> TokenStream {
    let names = asked(item);
    if names.is_empty() {
        return quote!(::std::vec::Vec::new);
    }
    let texts = names.values().map(|name| name.unraw().to_string());
    let names: Vec<_> = names.values().collect();
    quote! {{
        mod __sde_names {
            mod scope {
                pub(super) use super::super::*;
                #(pub(super) use ::core::mem::drop as #names;)*
            }
            use ::sde::__private::NoHelper as _;
            pub(super) fn all() -> ::std::vec::Vec<::sde::__private::Name> {
                ::std::vec![#((#texts, {
                    use self::scope::#names as _;
                    (&::sde::__private::Helper).__sde_helper()
                })),*]
            }
        }
        __sde_names::all
    }}
}

/// The bare names of the item that may lead to a helper, without variables that are not called.
fn asked(item: &TokenStream) -> BTreeMap<String, Ident> {
    let mut names = BTreeMap::new();
    find_names(item.clone(), &mut names);
    let mut patterns = Patterns::default();
    if let Ok(mut item) = syn::parse2::<Item>(item.clone()) {
        patterns.visit_item_mut(&mut item);
    }
    digest::walk(item.clone(), &mut |_, text| {
        if let Some(count) = patterns.0.get_mut(text) {
            *count -= 1;
        }
    });
    // An upper-case name may be a constant, as may one that stands only in patterns: a variable is used elsewhere too.
    let is_variable = |name: &str| {
        let is_plain = !name.starts_with(|c: char| c == '_' || c.is_uppercase());
        is_plain && patterns.0.get(name).is_some_and(|count| *count < 0)
    };
    names
        .into_iter()
        .filter(|(text, (_, is_called))| *is_called || !is_variable(text))
        .map(|(text, (name, _))| (text, name))
        .collect()
}

/// The keywords before a declared name.
const DECLARING: [&str; 7] = ["fn", "const", "static", "struct", "enum", "union", "type"];

/// By text, the name and whether it is called.
type Names = BTreeMap<String, (Ident, bool)>;

fn find_names(tokens: TokenStream, names: &mut Names) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let sign = |at| digest::sign(&tokens, at);
    for (i, token) in tokens.iter().enumerate() {
        let before = (sign(i.wrapping_sub(2)), sign(i.wrapping_sub(1)));
        let after = (sign(i + 1), sign(i + 2));
        match token {
            TokenTree::Ident(name) => {
                let is_member = before.1 == '.' && before.0 != '.' || before == (':', ':');
                // Of a path, or of a field or parameter.
                let is_prefix = after.0 == ':' && (after.1 != ':' || sign(i + 3) != '<');
                let is_macro =
                    after.0 == '!' && matches!(tokens.get(i + 2), Some(TokenTree::Group(_)));
                let is_declared = i > 0 && DECLARING.contains(&&*tokens[i - 1].to_string());
                let is_named = is_member || is_prefix || is_macro || is_declared;
                if !is_named && before.1 != '\'' {
                    let is_called = after == (':', ':') || is_in_brackets(tokens.get(i + 1));
                    put(names, TokenTree::from(name.clone()).into(), is_called);
                }
            }
            // As in `"{LIMIT:.3}"`; words of a literal that can't be parsed are skipped.
            TokenTree::Literal(literal) => {
                for part in literal.to_string().split('{').skip(1) {
                    let is_other = |c: char| !(c == '_' || c.is_ascii_alphanumeric());
                    let name = part.split(is_other).next().unwrap_or_default();
                    if name.starts_with(|c: char| !c.is_ascii_digit()) {
                        put(names, name.parse().unwrap_or_default(), false);
                    }
                }
            }
            TokenTree::Group(group) if before.1 != '#' => find_names(group.stream(), names),
            TokenTree::Group(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn is_in_brackets(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

/// Adds a name, unless it is a keyword.
fn put(names: &mut Names, name: TokenStream, is_called: bool) {
    if let Ok(mut name) = syn::parse2::<Ident>(name) {
        // With this span, compile errors point at the name, and lints skip it.
        name.set_span(Span::call_site().located_at(name.span()));
        names.entry(name.to_string()).or_insert((name, false)).1 |= is_called;
    }
}

/// The number of times that each name stands alone in a pattern.
#[derive(Default)]
struct Patterns(BTreeMap<String, isize>);

impl VisitMut for Patterns {
    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        *self.0.entry(pattern.ident.to_string()).or_default() += 1;
        syn::visit_mut::visit_pat_ident_mut(self, pattern);
    }
}

/// The conditions of `cfg!(..)`, `#[cfg(..)]` and, first, of `#[cfg_attr(..)]`.
fn find_conditions(tokens: TokenStream, conditions: &mut Vec<Meta>) {
    let mut before = [String::new(), String::new()];
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            let first = |input: ParseStream<'_>| {
                let condition = input.parse()?;
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
                input.parse::<TokenStream>()?;
                Ok(condition)
            };
            let condition = match before.each_ref().map(String::as_str) {
                ["cfg", "!"] | ["", "cfg" | "cfg_attr"] => first.parse2(group.stream()).ok(),
                _ => None,
            };
            conditions.extend(condition.filter(is_condition));
            find_conditions(group.stream(), conditions);
        }
        let [_, last] = before;
        before = [last, token.to_string()];
    }
}

/// Whether `cfg!` accepts it.
fn is_condition(condition: &Meta) -> bool {
    let parts =
        |list: &MetaList| list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    match condition {
        Meta::Path(path) => path.get_ident().is_some(),
        Meta::NameValue(pair) => {
            matches!(&pair.value, Expr::Lit(value) if matches!(value.lit, Lit::Str(_)))
        }
        Meta::List(list) => {
            let is_known = ["all", "any", "not"]
                .iter()
                .any(|word| list.path.is_ident(word));
            is_known && parts(list).is_ok_and(|parts| parts.iter().all(is_condition))
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    #[test]
    fn bare_names_are_asked_for() {
        let source = "fn f(x: f64, held: u8) -> Real { #[cfg(a)] let y = x.cube(); held; held(y); m::scale(0..LIMIT, &of::<u8>); \
            match y { lowest => z, _HIDDEN => 0, y => y }; no!(other); const SOME: u8 = 1; 'l: loop { y } format!(\"{x} {SCALE:.1}\", ..step); S { field: y } }";
        let asked: Vec<_> = super::asked(&source.parse().unwrap()).into_keys().collect();
        let expected = "LIMIT Real S SCALE _HIDDEN f64 held lowest of other step u8 z";
        assert_eq!(asked.join(" "), expected);
    }

    #[test]
    fn conditions_count_with_their_values() {
        let item = quote! {
            fn f() {
                #[cfg(any(unix, not(feature = "fast")))]
                let x = cfg!(test);
                #[cfg_attr(windows, inline, cold)]
                fn inner() { all(cfg(1)); stringify!(cfg!(no condition)) }
            }
        };
        let mut conditions = Vec::new();
        super::find_conditions(item, &mut conditions);
        let conditions = conditions
            .iter()
            .map(|condition| quote!(#condition).to_string());
        let expected = ["any (unix , not (feature = \"fast\"))", "test", "windows"];
        assert_eq!(conditions.collect::<Vec<_>>(), expected);
    }
}
