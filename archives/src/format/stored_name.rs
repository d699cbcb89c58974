//! The names of types in a store.
//!
//! A type's path changes when the type moves, and compilers may print it differently. So types are named without
//! crates and modules. Their structure is compared by the [schema](crate::cbor::schema).

fn in_path(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | ':' | '\'')
}

/// The name without crate and modules.
fn last(path: &str) -> &str {
    path.rsplit_once("::").map_or(path, |(_, last)| last)
}

/// The stored name of a type.
pub(crate) fn stored_name(type_name: &str) -> String {
    let pieces = type_name.split_inclusive(|c| !in_path(c));
    pieces.map(last).collect()
}

/// Whether two type names are equal, each as stored or as the compiler prints it.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    one == other || names(one).eq(names(other))
}

/// The names in a type's name, without lifetimes, which compilers may leave out.
fn names(type_name: &str) -> impl Iterator<Item = &str> {
    let names = type_name.split(|c| !in_path(c)).map(last);
    names.filter(|name| !name.is_empty() && !name.starts_with('\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_without_their_modules() {
        let path = "alloc::vec::Vec<(sde_engine::app::scratch::Kept<u8>, [user::File; 3])>";
        let name = "Vec<(Kept<u8>, [File; 3])>";
        assert_eq!(stored_name(path), name);
        assert_eq!(stored_name(name), name);
        for same in [path, name, "std::Vec<(sde::Kept<u8>, [a::b::File; 3])>"] {
            assert!(is_same_name(same, name) && is_same_name(name, same));
        }
        assert!(is_same_name("alloc::borrow::Cow<'_, str>", "std::Cow<str>"));
        for other in [
            "Vec<(Kept<u8>, [File; 4])>",
            "Vec<(Kept<i8>, [File; 3])>",
            "Vec",
        ] {
            assert!(!is_same_name(path, other));
        }
    }
}
