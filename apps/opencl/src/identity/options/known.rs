//! Options that are known to read no file that is not followed.

/// Those that have their value behind a blank.
pub(super) const WITH_VALUE: [&str; 3] = ["-cl-nv-arch", "-cl-nv-maxrregcount", "-cl-nv-opt-level"];

/// Whether it is known that an option reads no file, but in the directories it names for the source,
/// and writes none. Compilers have many that do, under several names each; so these are told by name, and
/// all others are not.
pub(super) fn reads_no_file(option: &str) -> bool {
    const WHOLE: [&str; 4] = ["-w", "-g", "-create-library", "-enable-link-options"];
    const BEGIN: [&str; 4] = ["-spir-std=", "-std=", "-O", "-W"];
    let follows = |begin: &str, holds: &dyn Fn(&str) -> bool| {
        let rest = option.strip_prefix(begin);
        rest.is_some_and(holds)
    };
    WHOLE.contains(&option)
        || follows("-D", &is_macro)
        || follows("-U", &is_macro)
        || follows("-I", &is_dir)
        // A list of extensions has commas.
        || follows("-cl-", &|rest| is_word(&rest.replace(',', "")))
        || WITH_VALUE.iter().any(|name| follows(name, &is_value))
        || BEGIN.iter().any(|begin| follows(begin, &is_word))
}

/// No comma: `-Wp,` hands options on to another program. No slash: no path.
fn is_word(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.all(|c| c.is_ascii_alphanumeric() || "-_+.=".contains(c))
}

/// A word behind a blank that is no option.
fn is_value(rest: &str) -> bool {
    let value = rest.strip_prefix(' ');
    value.is_some_and(|value| is_word(value) && !value.starts_with('-'))
}

/// A directive ends with the line; and to a driver that parts options at blanks whatever the quotes,
/// a value must not have one that reads a file.
fn is_macro(rest: &str) -> bool {
    const MAY_READ: [&str; 4] = ["-i", "-I", "--", "@"];
    let may_read = |word: &str| MAY_READ.iter().any(|name| word.starts_with(name));
    let is_line = !rest.is_empty() && !rest.contains(['\n', '\r']);
    is_line && !rest.split_whitespace().skip(1).any(may_read)
}

/// `-I-` and `-I=` search in ways of their own; and not all drivers find what needs quotes, so that they
/// may read a file of the next directory.
fn is_dir(rest: &str) -> bool {
    let is_plain = !rest.contains(|c: char| c.is_ascii_whitespace() || "\"'\\".contains(c));
    is_plain && !rest.is_empty() && !rest.starts_with(['-', '='])
}
