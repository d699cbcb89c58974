use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn names(source: &str, folder: &tempfile::TempDir) -> Vec<String> {
    let found = closure(source, "test", &[folder.path().to_owned()]).unwrap();
    let names = found.included.into_iter().map(|one| match one.text {
        Some(_) => one.name,
        None => format!("no {}", one.name),
    });
    names.collect()
}

#[test]
fn what_is_included_includes_more_and_cycles_end() {
    let folder = folder(&[
        ("a.h", "#include \"sub/b.h\"\n"),
        ("sub/b.h", "#  include \"c.h\"\n#include \"a.h\"\n"),
        ("sub/c.h", "int c;"),
    ]);
    let source =
        "/* #include \"no.h\" */ #include \"a.h\"\n// #include \"no.h\"\nkernel void k() {}";
    assert_eq!(names(source, &folder), ["a.h", "sub/b.h", "c.h", "a.h"]);
}

#[test]
fn lines_are_joined_and_comments_are_no_lines() {
    let folder = folder(&[("a.h", ""), ("b.h", "")]);
    let source = "#in\\\nclude \"a.h\"\nconstant char t[] = \"/*\";\n#include /* here */ <b.h>\n";
    assert_eq!(names(source, &folder), ["a.h", "b.h"]);
}

#[test]
fn missing_is_an_error_where_every_build_reads_it_and_noted_elsewhere() {
    let folder = folder(&[]);
    let dirs = [folder.path().to_owned()];
    let error = closure("\n#include \"gone.h\"", "my.cl", &dirs).unwrap_err();
    assert!(
        matches!(&error, Error::NoInclude { name, from } if name == "gone.h" && from == "my.cl")
    );
    let source = "#ifdef X\n#if Y\n#endif\n#include \"gone.h\"\n#endif\n#include <system.h>";
    assert_eq!(names(source, &folder), ["no gone.h", "no system.h"]);
    let after = "#if X\n#endif\n#include \"gone.h\"";
    assert!(closure(after, "my.cl", &dirs).is_err());
}

#[test]
fn what_only_the_compiler_can_know_is_not_cacheable() {
    let why = |text: &str| closure(text, "t", &[]).unwrap().not_cacheable;
    assert!(
        matches!(why("#include NAME"), Some(NotCacheable::ComputedInclude { at, .. }) if at == "t:1")
    );
    assert!(
        matches!(why("\nint t = __TIME__;"), Some(NotCacheable::Volatile { at, .. }) if at == "t:2")
    );
    assert_eq!(why("#includes \"x\"\nint included;"), None);
}
