//! The names under which types are stored.

use std::borrow::Cow;

/// The crates whose types a store names without the modules in which they lie.
const OWN_CRATES: [&str; 6] = [
    "sde",
    "sde_engine",
    "sde_archives",
    "sde_mpi",
    "sde_opencl",
    "sde_apps",
];

/// The name under which a type is stored: a path of ours is `sde::Name`, so that moving a type between our modules and
/// crates is no other type.
pub(crate) fn stored_name(type_name: &str) -> Cow<'_, str> {
    let is_own = |path: &str| {
        OWN_CRATES
            .iter()
            .any(|own| path.split("::").next() == Some(own))
    };
    let in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut paths = type_name.split(|c| !in_path(c));
    // Most have none, which is seen at once.
    if !type_name.contains("sde") || !paths.any(is_own) {
        return Cow::Borrowed(type_name);
    }
    let mut name = String::new();
    let mut rest = type_name;
    while !rest.is_empty() {
        let (path, after) = rest.split_at(rest.find(|c| !in_path(c)).unwrap_or(rest.len()));
        match path.rsplit_once("::") {
            Some((_, last)) if is_own(path) => name.extend(["sde::", last]),
            _ => name.push_str(path),
        }
        let (between, next) = after.split_at(after.find(in_path).unwrap_or(after.len()));
        name.push_str(between);
        rest = next;
    }
    Cow::Owned(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_types_are_named_without_their_modules() {
        let moved = "alloc::vec::Vec<(sde_engine::app::scratch::Kept<u8>, user::sde::File)>";
        assert_eq!(
            stored_name(moved),
            "alloc::vec::Vec<(sde::Kept<u8>, user::sde::File)>"
        );
        assert_eq!(stored_name("sde::app::scratch::Kept<u8>"), "sde::Kept<u8>");
        assert!(matches!(stored_name("[sdef::Kept; 3]"), Cow::Borrowed(_)));
    }
}
