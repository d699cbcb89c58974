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
    let found = closure(source, "test", &[folder.path().to_owned()], &[]).unwrap();
    let names = found.included.into_iter().map(|one| match one.content {
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

/// As PoCL does: those of the first list include the file, those of the second do not.
#[test]
fn lines_are_joined_before_comments_are_seen() {
    let folder = folder(&[("a.h", "")]);
    for source in [
        "/\\\n* */ #include \"a.h\"",
        "#inc\\ \t\nlude \"a.h\"",
        "// x\r#include \"a.h\"",
        "// x\r\n#inc\\\r\nlude \"a.h\"",
        "\u{b}%:include\t\"a.h\"",
        "#include \"a.h\"\\\n",
    ] {
        assert_eq!(names(source, &folder), ["a.h"], "{source:?}");
    }
    for source in ["// x\\\n#include \"a.h\"", "/* *\n/ #include \"a.h\" */"] {
        assert!(names(source, &folder).is_empty(), "{source:?}");
    }
}

#[test]
fn missing_is_an_error_where_every_build_reads_it_and_noted_elsewhere() {
    let folder = folder(&[]);
    let dirs = [folder.path().to_owned()];
    let error = closure("\n#include \"gone.h\"", "my.cl", &dirs, &[]).unwrap_err();
    assert!(
        matches!(&error, Error::NoInclude { name, from, .. } if name == "gone.h" && from == "my.cl")
    );
    let text = error.to_string();
    let place = folder.path().display().to_string();
    assert!(
        text.contains(&format!("not in {place} or the working directory")),
        "{text}"
    );
    let source = "#ifdef X\n#if Y\n#endif\n#include \"gone.h\"\n#endif\n#include <system.h>";
    assert_eq!(names(source, &folder), ["no gone.h", "no system.h"]);
    let after = "#if X\n#endif\n#include \"gone.h\"";
    assert!(closure(after, "my.cl", &dirs, &[]).is_err());
}

#[test]
fn what_only_the_compiler_can_know_is_not_cacheable() {
    let why = |text: &str| closure(text, "t", &[], &[]).unwrap().not_cacheable;
    assert!(
        matches!(why("#include NAME"), Some(NotCacheable::ComputedInclude { at, .. }) if at == "t:1")
    );
    assert!(
        matches!(why("\nint t = __TIME__;"), Some(NotCacheable::Volatile { at, .. }) if at == "t:2")
    );
    assert!(
        matches!(why("\n??=include \"x\""), Some(NotCacheable::Ambiguous { at, .. }) if at == "t:2")
    );
    assert_eq!(why("#includes \"x\"\nint included;"), None);
}

#[test]
fn an_absolute_name_needs_no_directory() {
    let folder = folder(&[("a.h", "int a;")]);
    let path = folder.path().join("a.h");
    let path = path.to_str().unwrap();
    for source in [
        format!("#include \"{path}\""),
        format!("#include <{path}>"),
        format!("#if X\n#include \"{path}\"\n#endif"),
    ] {
        let found = closure(&source, "t", &[], &[]).unwrap();
        let content = Some(Content::Text("int a;".to_owned()));
        assert_eq!(found.included[0].content, content, "{source}");
    }
    let gone = format!("#if X\n#include \"{path}.gone\"\n#endif");
    assert_eq!(
        closure(&gone, "t", &[], &[]).unwrap().included[0].content,
        None
    );
}

/// The tests run in the directory of the crate.
#[test]
fn what_is_in_the_working_directory_counts_beside_what_is_found() {
    let contents = |source: &str, dirs: &[PathBuf]| {
        let found = closure(source, "t", dirs, &[]).unwrap();
        let contents = found.included.into_iter().map(|one| one.content.unwrap());
        contents.collect::<Vec<_>>()
    };
    let here = Content::of(fs::read("Cargo.toml").unwrap());
    for source in ["#include \"Cargo.toml\"", "#include <Cargo.toml>"] {
        assert_eq!(contents(source, &[]), std::slice::from_ref(&here));
        let folder = folder(&[("Cargo.toml", "other")]);
        let both = [Content::Text("other".to_owned()), here.clone()];
        assert_eq!(contents(source, &[folder.path().to_owned()]), both);
        // One file by two names is one.
        let dir = std::env::current_dir().unwrap();
        assert_eq!(contents(source, &[dir]), std::slice::from_ref(&here));
    }
}

#[test]
fn the_next_file_of_a_name_and_embedded_files_are_not_followed() {
    let folder = folder(&[("a.h", "#include_next <a.h>")]);
    let dirs = [folder.path().to_owned()];
    let why = |source: &str| closure(source, "t", &dirs, &[]).unwrap().not_cacheable;
    for source in [
        "#include \"a.h\"",
        "# embed \"a.h\"",
        "#include_next\"a.h\"",
    ] {
        assert!(
            matches!(why(source), Some(NotCacheable::Directive { .. })),
            "{source}"
        );
    }
    assert_eq!(why("#embedded x\n#include_nextly <a.h>"), None);
    assert_eq!(
        names("#import \"b.h\"", &self::folder(&[("b.h", "")])),
        ["b.h"]
    );
}

#[test]
fn a_header_that_is_no_text_is_followed_and_its_bytes_count() {
    let folder = folder(&[("b.h", "")]);
    let latin = |letter: u8| {
        let mut bytes = b"/* F".to_vec();
        bytes.push(letter);
        bytes.extend_from_slice(b"r */\n#include \"b.h\"\n");
        fs::write(folder.path().join("a.h"), &bytes).unwrap();
        let found = closure("#include \"a.h\"", "t", &[folder.path().to_owned()], &[]).unwrap();
        assert_eq!(found.included[0].content, Some(Content::Bytes(bytes)));
        assert_eq!(found.included[1].name, "b.h");
        found.included
    };
    assert_ne!(latin(0xfc), latin(0xe4));
}

#[test]
fn what_only_some_builds_read_may_miss_what_it_includes() {
    let folder = folder(&[("nv.h", "#include \"gone.h\"")]);
    let source = "#ifdef NV\n#include \"nv.h\"\n#endif";
    assert_eq!(names(source, &folder), ["nv.h", "no gone.h"]);
    assert_eq!(names("#include <nv.h>", &folder), ["nv.h", "no gone.h"]);
    let dirs = [folder.path().to_owned()];
    assert!(closure("#include \"nv.h\"", "t", &dirs, &[]).is_err());
}

/// By each of these a header was included by Clang and not seen here: a changed one gave the old code.
#[test]
fn what_compilers_read_in_different_ways_is_not_cacheable() {
    let why = |text: &str| closure(text, "t", &[], &[]).unwrap().not_cacheable;
    for text in [
        // Clang passes over the rest of such a line, and reads the next.
        "#warning see /* there\n#include \"a.h\"\n/* */",
        "#if X\n # error /*\n#endif */",
        "%:error/*\n*/",
        "#\\\n\rinclude \"a.h\"",
        "\0#include \"a.h\"",
        "#\0include \"a.h\"",
        // C++ for OpenCL
        "constant char s[] = R\"(\n/*\n)\";\n#include \"a.h\"\n/* */",
        "int a = 1'000, b = '\"'; constant char s[] = \"/*\";\n#include \"a.h\"\n/**/",
    ] {
        let why = why(text);
        assert!(
            matches!(why, Some(NotCacheable::Ambiguous { .. })),
            "{text:?}: {why:?}"
        );
    }
    for text in [
        "#if X\n#include \"a\\\"b.h\"\n#endif",
        "#include <a/*b.h>\n",
        "#include <.//a.h>",
    ] {
        let why = why(text);
        assert!(
            matches!(why, Some(NotCacheable::Directive { .. })),
            "{text:?}: {why:?}"
        );
    }
    for text in [
        "#warning see /* there */\n/*\n*/ #error don't /* x\nint x;",
        "int a;\n\r\nint b;\r\nint c;\r",
        "char r = 'R', s = L'x'; constant char t[] = \"R\"; f(R, \"(\");",
    ] {
        assert_eq!(why(text), None, "{text:?}");
    }
}

/// The assembler reads them, whatever the text around it looks like.
#[test]
fn files_that_an_assembler_reads_are_not_followed() {
    let why = |text: &str| closure(text, "t", &[], &[]).unwrap().not_cacheable;
    for text in [
        "__asm__(\".incbin \\\"t.bin\\\"\");",
        "#define DATA __asm__(\".incbin \\\"t.bin\\\"\")",
        "asm(\n\"  .include \\\"t.s\\\"\"\n);",
    ] {
        assert!(
            matches!(why(text), Some(NotCacheable::Directive { .. })),
            "{text}"
        );
    }
    assert_eq!(why("float a = s.i + s.included; // .incbin"), None);
    assert_eq!(why("#if X\n#include \"gone.include\"\n#endif"), None);
}

/// Opening a pipe never ends.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_read() {
    let folder = folder(&[]);
    let pipe = folder.path().join("pipe.h");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for name in [pipe.to_str().unwrap(), "/dev/zero"] {
        let source = format!("#if 0\n#include \"{name}\"\n#endif");
        let found = closure(&source, "t", &[], &[]).unwrap();
        assert_eq!(found.included[0].content, None, "{name}");
    }
}

/// Made a text, it was looked for by another name, and missing for ever.
#[test]
fn a_name_that_is_no_text_is_not_cacheable() {
    let folder = folder(&[]);
    fs::write(
        folder.path().join("a.h"),
        b"#if X\n#include \"d\xe9.h\"\n#endif",
    )
    .unwrap();
    let dirs = [folder.path().to_owned()];
    let found = closure("#include \"a.h\"", "t", &dirs, &[]).unwrap();
    assert!(matches!(
        found.not_cacheable,
        Some(NotCacheable::Directive { .. })
    ));
}

/// Each is guarded, so that a compiler comes to an end, too.
#[test]
fn files_that_include_one_another_by_the_parent_are_read_once() {
    let folder = folder(&[]);
    for (dir, name, other) in [("a", "x.h", "../b/y.h"), ("b", "y.h", "../a/x.h")] {
        fs::create_dir(folder.path().join(dir)).unwrap();
        let text = format!("#ifndef {dir}\n#define {dir}\n#include \"{other}\"\n#endif\n");
        fs::write(folder.path().join(dir).join(name), text).unwrap();
    }
    let found = closure("#include \"a/x.h\"", "t", &[folder.path().to_owned()], &[]).unwrap();
    assert!(found.included.len() <= 3, "{:?}", found.included);
}

/// As hashcat names its headers.
#[test]
fn what_a_user_says_of_computed_includes_is_followed() {
    let folder = folder(&[
        ("a.h", "#include \"b.h\"\n#include OTHER"),
        ("b.h", "int b;"),
    ]);
    let dirs = [folder.path().to_owned()];
    let source = "#include M2S(PATH/a.h)";
    let found = closure(source, "t", &dirs, &["a.h".to_owned()]).unwrap();
    let names: Vec<_> = found.included.iter().map(|one| &*one.name).collect();
    // It includes itself, for all that is known here.
    assert_eq!(
        (names, found.not_cacheable),
        (vec!["a.h", "b.h", "a.h"], None)
    );
    let error = closure(source, "t", &dirs, &["gone.h".to_owned()]).unwrap_err();
    assert!(matches!(error, Error::NoInclude { .. }), "{error}");
    // What no macro says is not promised.
    for source in ["#include <.//a.h>", "#include", "#include \"open"] {
        let found = closure(source, "t", &dirs, &["a.h".to_owned()]).unwrap();
        assert!(
            matches!(found.not_cacheable, Some(NotCacheable::Directive { .. })),
            "{source}"
        );
    }
    // It is looked for beside the file that has the macro, as compilers do.
    let sub = self::folder(&[
        ("sub/l.h", "#include FILE"),
        ("sub/x.h", "int near;"),
        ("x.h", "int far;"),
    ]);
    let dirs = [sub.path().to_owned()];
    let found = closure("#include \"sub/l.h\"", "t", &dirs, &["x.h".to_owned()]).unwrap();
    let contents: Vec<_> = found
        .included
        .iter()
        .filter_map(|one| one.content.clone())
        .collect();
    for text in ["int near;", "int far;"] {
        assert!(
            contents.contains(&Content::Text(text.to_owned())),
            "{contents:?}"
        );
    }
    // It is a promise of these and of nothing else.
    let dirs = [folder.path().to_owned()];
    let source = "#include FILE\nint t = __TIME__;";
    let found = closure(source, "t", &dirs, &["b.h".to_owned()]).unwrap();
    assert!(matches!(
        found.not_cacheable,
        Some(NotCacheable::Volatile { .. })
    ));
}

/// Files that each include the next one overflowed the stack.
#[test]
fn files_that_include_one_another_too_deep_are_not_followed() {
    let files = |count: usize| {
        let text = |n: usize| (format!("{n}.h"), format!("#include \"{}.h\"", n + 1));
        let mut all: Vec<_> = (0..count).map(text).collect();
        all.push((format!("{count}.h"), String::new()));
        let all: Vec<_> = all.iter().map(|(name, text)| (&**name, &**text)).collect();
        folder(&all)
    };
    let why = |count: usize| {
        let folder = files(count);
        let dirs = [folder.path().to_owned()];
        let found = closure("#include \"0.h\"", "t", &dirs, &[]).unwrap();
        found.not_cacheable
    };
    assert_eq!(why(150), None);
    assert!(matches!(why(3000), Some(NotCacheable::TooDeep { .. })));
}
