//! Which files a key holds, and which programs have none.

use std::fs;
use std::path::Path;

use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Content, Context, Environment, Included, Material, NotCacheable, ProgramSpec};

use crate::fixture::context;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// What is found of a program.
pub struct Scan {
    included: Vec<Included>,
    pub cacheable: Result<(), NotCacheable>,
    pub options: String,
}

pub fn scan_spec(spec: &ProgramSpec) -> Scan {
    let program = context(&Simulated::new()).describe(0, spec).unwrap();
    let Material::Source { included, .. } = &program.full_key().material else {
        unreachable!("it is a source");
    };
    Scan {
        included: included.clone(),
        cacheable: program.is_cacheable().map_err(NotCacheable::clone),
        options: program.options().to_owned(),
    }
}

fn spec(text: &str, dirs: &[&Path]) -> ProgramSpec {
    let spec = ProgramSpec::source(text).named("t");
    dirs.iter().fold(spec, |spec, dir| spec.include_dir(dir))
}

fn scan(text: &str, dirs: &[&Path]) -> Scan {
    scan_spec(&spec(text, dirs))
}

fn promised(text: &str, dir: &Path, reads: &[&str]) -> Scan {
    let spec = spec(text, &[dir]).reads_no_other();
    scan_spec(&reads.iter().fold(spec, |spec, file| spec.reads(*file)))
}

fn names(scan: &Scan) -> Vec<&str> {
    scan.included.iter().map(|one| &*one.name).collect()
}

fn contents(scan: &Scan) -> Vec<&str> {
    let texts = scan.included.iter().map(|one| match &one.content {
        Content::Text(text) => &**text,
        _ => "no text",
    });
    texts.collect()
}

#[test]
fn what_is_included_includes_more_and_cycles_end() {
    let folder = folder(&[
        ("a.h", "#include \"sub/b.h\"\n"),
        ("sub/b.h", "#  include \"c.h\"\n#include \"a.h\"\n"),
        ("sub/c.h", "int c;"),
    ]);
    let source = "/* #include \"a.h\" */\n// #include \"no.h\"\n%:include\t<a.h> // here\nkernel void k() {}";
    let scan = scan(source, &[folder.path()]);
    assert_eq!(names(&scan), ["a.h", "sub/b.h", "c.h"]);
    assert_eq!(scan.cacheable, Ok(()));
}

/// Which of them a compiler reads is its affair. The tests run in the directory of the crate.
#[test]
fn all_files_that_an_include_may_mean_count() {
    let one = folder(&[
        ("Cargo.toml", "one"),
        ("sub/x.h", "#include \"y.h\""),
        ("sub/y.h", "near"),
    ]);
    let two = folder(&[("Cargo.toml", "two"), ("y.h", "far")]);
    let dirs = [one.path(), two.path()];
    for source in [
        "#include \"Cargo.toml\"",
        "#if 0\n#include <Cargo.toml>\n#endif",
    ] {
        let here = fs::read_to_string("Cargo.toml").unwrap();
        assert_eq!(contents(&scan(source, &dirs)), ["one", "two", &here]);
    }
    let beside = scan("#include \"sub/x.h\"", &dirs);
    assert_eq!(contents(&beside)[1..], ["near", "far"]);
    let absolute = one.path().join("sub/y.h");
    let absolute = scan(&format!("#include <{}>", absolute.display()), &[]);
    assert_eq!(contents(&absolute), ["near"]);
}

/// By each of these a compiler may read a file, or the time, that is not in the key: a changed one would give old code. Some are
/// of a compiler that was seen to do so.
#[test]
fn what_may_read_anything_else_is_not_cacheable() {
    let folder = folder(&[("a.h", "")]);
    for text in [
        // Not found here; a driver has directories of its own.
        "#include \"gone.h\"",
        "#if X\n#include <gone.h>\n#endif",
        "/* // */ #include \"gone.h\"",
        // A name that is computed, or not the same for all.
        "#include NAME",
        "#include M2S(PATH/a.h)",
        "#include \"d\\\"a.h\"",
        "#include <.//a.h>",
        "#include <a/*b.h>",
        "#include \"open",
        "#include",
        // Other directives.
        "#include_next <a.h>",
        "#import \"a.h\"",
        "@import a;",
        "# embed \"a.h\"",
        "#pragma include_alias(\"x.h\", \"a.h\")",
        "_Pragma(\"include_alias\")",
        "#if __has_include(\"a.h\")\n#endif",
        "#if __has_embed(\"a.h\")\n#endif",
        // Put together by a macro.
        "#define CAT(a, b) a##b\n#if CAT(__has_,include)(\"a.h\")\n#endif",
        "#define C(a, b) a %:%: b\nint t[] = C(__TI, ME__);",
        "#define C(a, b) a##b\nC(as, m)(\".incbin \\\"a.h\\\"\");",
        "#define C(a, b) a##b\n#define S(x) #x\nC(as, m)(\".incbin\" S(\"a.h\"));",
        // The time.
        "int t = __TIME__;",
        "char *d = __DATE__ /* */ ;",
        "__TIME\\\nSTAMP__",
        // An assembler.
        "__asm__(\".incbin \\\"a.h\\\"\");",
        "__asm__(\".inc\" \"bin \\\"a.h\\\"\");",
        "asm(\n\"  .include \\\"a.h\\\"\"\n);",
        "asm volatile (\".incbin a.h\" ::: );",
        "asm(R\"(.incbin \"a.h\")\");",
        "#define S(x) #x\n#define I(x)\n#define Q __asm__\nI (\"nop\")\nQ(S(.incbin \"f\"));",
        "#define S(x) #x\n#define I(x)\n#define Q(x...) __asm__ I(\"nop\") (x)\nQ(S(.incbin \"f\"));",
        "#define S(x) #x\n#define volatile(x)\n#define Q(x...) __asm__ volatile(\"nop\") (x)\nQ(S(.incbin \"f\"));",
        "#define C(a,b) a##b\n#define S(e,x) e###x\nC(__as,m__)(S(,.incbin \"f\"));",
        "#define S(x) #x\n__asm__(\"nop\" S(;.incbin \"f\"));",
        // Read in different ways.
        "??=include \"a.h\"",
        "// ??/\n#include \"a.h\"",
        "// x\r#include \"a.h\"",
        "#\\\n\rinclude \"a.h\"",
        "// x\\ \n#include \"a.h\"",
        "\0#include \"a.h\"",
        "#/*\n*/include \"a.h\"",
    ] {
        let why = scan(text, &[folder.path()]).cacheable;
        let why = why.expect_err(text).to_string();
        assert!(
            why.contains("t ") || why.contains("what a macro"),
            "{text:?}: {why}"
        );
    }
}

/// Hidden from one who reads as a compiler does, and found all the same.
#[test]
fn what_looks_like_an_include_is_followed_wherever_it_stands() {
    let folder = folder(&[("a.h", "")]);
    for text in [
        "#in\\\nclude \"a.h\"",
        "#inc\\\r\nlude \"a.h\"",
        "/\\\n* */ #include \"a.h\"",
        "#warning see /* there\n#include \"a.h\"\n/* */",
        "constant char s[] = R\"(\n/*\n)\";\n#include \"a.h\"\n/* */",
        "int a = 1'000, b = '\"';\n#include \"a.h\"\n/**/",
        "\u{feff}#include \"a.h\"",
        "\u{b}#\u{c}include\t\"a.h\"",
        "#\u{a0}include \"a.h\"",
        "// x */ #include \"a.h\"",
        "/* // */ #include \"a.h\"",
    ] {
        let scan = scan(text, &[folder.path()]);
        let got = (names(&scan), &scan.cacheable);
        assert_eq!(got, (vec!["a.h"], &Ok(())), "{text:?}");
    }
}

#[test]
fn what_reads_nothing_is_cacheable() {
    for text in [
        "kernel void k() {}",
        "#includ \"x\"\nint included; // what #include does, ???\n",
        "#define S(x) #x\n",
        "#define CPREC(a) a##f\n #define X\nint s, m, i, t; float as_float;",
        "#if __has_builtin(__builtin_assume)\n#endif\nint HAVE__TIME__, __TIME, DATE__;",
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma unroll 4\n#\n# 5 \"x\"",
        "asm(TEXT);",
        "asm volatile(\"shfl.sync.idx.b32 %0, %%laneid;\" : \"=r\"(ret) );\n__asm__ (\"nop\");",
        "printf(\"%d # of a include\\n\", 1); char c = '\\\\'; // asmodeus\r\n",
    ] {
        assert_eq!(scan(text, &[]).cacheable, Ok(()), "{text:?}");
    }
}

/// As hashcat names its headers: its author says which they are.
#[test]
fn what_an_author_promises_is_followed() {
    let folder = folder(&[
        (
            "a.h",
            "#include \"b.h\"\n#include OTHER\n#include \"gone.h\"",
        ),
        ("b.h", "asm(\"\\t\");"),
        ("sub/l.h", "#include FILE"),
        ("sub/x.h", "near"),
        ("x.h", "far"),
    ]);
    let source = "#include M2S(PATH/a.h)";
    let found = promised(source, folder.path(), &["a.h"]);
    assert_eq!(found.cacheable, Ok(()));
    assert!(
        names(&found).starts_with(&["a.h", "b.h"]),
        "{:?}",
        names(&found)
    );
    assert!(scan(source, &[folder.path()]).cacheable.is_err());
    let assembly = "asm(\".incbin\" NAME);";
    assert_eq!(promised(assembly, folder.path(), &[]).cacheable, Ok(()));
    // Beside the file that has the macro, too.
    let found = promised("#include \"sub/l.h\"", folder.path(), &["x.h"]);
    for text in ["near", "far"] {
        assert!(contents(&found).contains(&text), "{:?}", contents(&found));
    }
    // It is a promise of files.
    for text in ["int t = __TIME__;", "#define C(a) __TI##a\nC(ME__)"] {
        assert!(
            promised(text, folder.path(), &["x.h"]).cacheable.is_err(),
            "{text}"
        );
    }
}

/// Words may stand in one file and be put together in another.
#[test]
fn pieces_of_words_are_looked_for_in_all_files_and_options() {
    let folder = folder(&[("cat.h", "#define CAT(a, b) a##b")]);
    let text = "#include \"cat.h\"\nint t = CAT(A, ME__);";
    let spec = spec(text, &[folder.path()]);
    let with = |option: &str| scan_spec(&spec.clone().option(option)).cacheable;
    assert!(with("-DA=__TI").is_err());
    assert_eq!(with("-DA=__TIMER"), Ok(()));
}

#[test]
fn a_header_that_is_no_text_is_followed_and_its_bytes_count() {
    let folder = folder(&[("b.h", "")]);
    let latin = |letter: u8| {
        let bytes = [b"/* F", &[letter][..], b"r */\n#include \"b.h\"\n"].concat();
        fs::write(folder.path().join("a.h"), &bytes).unwrap();
        let found = scan("#include \"a.h\"", &[folder.path()]);
        assert_eq!(found.included[0].content, Content::Bytes(bytes));
        assert_eq!(names(&found), ["a.h", "b.h"]);
        found.included
    };
    assert_ne!(latin(0xfc), latin(0xe4));
    // A name that is none is no name that could be looked for.
    fs::write(folder.path().join("a.h"), b"#include \"d\xe9.h\"").unwrap();
    let found = scan("#include \"a.h\"", &[folder.path()]);
    assert!(found.cacheable.is_err());
}

/// Each of these was found to read another file than the one in the key.
#[test]
fn a_file_is_found_where_all_compilers_look() {
    let files = folder(&[
        ("sub/x.h", "#include <y.h>"),
        ("sub/y.h", ""),
        ("mine/v.h", ""),
        ("map.hmap", "pamh"),
    ]);
    let path = files.path();
    // In angle brackets not beside the file that includes it, and not in the working directory.
    assert!(scan("#include \"sub/x.h\"", &[path]).cacheable.is_err());
    assert_eq!(
        scan("#include \"sub/x.h\"", &[path, &path.join("sub")]).cacheable,
        Ok(())
    );
    let here = scan("#include \"Cargo.toml\"", &[]).cacheable.unwrap_err();
    let why = "t includes \"Cargo.toml\", which is found where not all compilers look; name its directory by `include_dir`";
    assert_eq!(here.to_string(), why);
    // Everybody looks for an absolute path in one place.
    let absolute = format!("#include \"{}\"", path.join("sub/y.h").display());
    assert_eq!(scan(&absolute, &[]).cacheable, Ok(()));
    // A file in place of a directory may be a map of headers.
    let (map, mine) = (path.join("map.hmap"), path.join("mine"));
    assert!(scan("#include \"v.h\"", &[&map, &mine]).cacheable.is_err());
    assert_eq!(
        scan("#include \"v.h\"", &[&path.join("gone"), &mine]).cacheable,
        Ok(())
    );
    // No directory is the one of a file without a directory in its path, and takes no option that follows.
    let scan = scan_spec(&ProgramSpec::source("").include_dir("").option("-DX=1"));
    assert_eq!(scan.options, "-I. -DX=1");
}

/// A compiler reads a file with `#pragma once` a single time, by whatever path it comes there. A folder that was a link to another was
/// replaced by a copy, and the binary of one reading was served where a compiler reads two files.
#[cfg(unix)]
#[test]
fn which_of_the_files_are_one_is_in_the_key() {
    let files = folder(&[("one/x.h", "#pragma once\nCOUNT\n")]);
    let [first, second] = ["one", "two"].map(|name| files.path().join(name));
    let spec = spec(
        "#include \"one/x.h\"\n#include \"two/x.h\"",
        &[files.path()],
    );
    let key = || {
        let context = context(&Simulated::new());
        context.describe(0, &spec).unwrap().key()
    };
    std::os::unix::fs::symlink("one", &second).unwrap();
    let one_file = key();
    fs::remove_file(&second).unwrap();
    fs::create_dir(&second).unwrap();
    fs::hard_link(first.join("x.h"), second.join("x.h")).unwrap();
    assert_eq!(key(), one_file);
    fs::remove_file(second.join("x.h")).unwrap();
    fs::copy(first.join("x.h"), second.join("x.h")).unwrap();
    assert_ne!(key(), one_file);
}

/// PoCL looks first beside the file that it writes the source to.
#[test]
fn a_file_in_the_cache_of_a_driver_counts() {
    let files = folder(&[("inc/v.h", "far"), ("cache/v.h", "near")]);
    let (include, cache) = (files.path().join("inc"), files.path().join("cache"));
    let cache = cache.to_str().unwrap().to_owned();
    let variables = move || vec![("POCL_CACHE_DIR".to_owned(), cache.clone())];
    let context =
        Context::simulated(&Simulated::new()).environment(Environment::reading(variables));
    let spec = spec("#include \"v.h\"", &[&include]);
    let program = context.build().unwrap().describe(0, &spec).unwrap();
    let Material::Source { included, .. } = &program.full_key().material else {
        unreachable!("it is a source");
    };
    let texts: Vec<_> = included.iter().map(|one| &one.content).collect();
    assert_eq!(
        texts,
        [&Content::Text("near".into()), &Content::Text("far".into())]
    );
    assert_eq!(program.is_cacheable(), Ok(()));
}

/// What a switch holds a compiler may read as options.
#[test]
fn a_switch_that_may_hold_options_or_a_path_is_not_cacheable() {
    let is_cacheable = |value: &'static str| {
        let variables = || vec![("POCL_EXTRA_BUILD_FLAGS".to_owned(), value.to_owned())];
        let environment = Environment::reading(variables);
        let context = Context::simulated(&Simulated::new()).environment(environment);
        let program = context
            .build()
            .unwrap()
            .describe(0, &spec("", &[]))
            .unwrap();
        program.is_cacheable().map_err(ToString::to_string)
    };
    for plain in ["", "1", "-1", "loopvec", "cpu,basic", "a=b;c = 2.5"] {
        assert_eq!(is_cacheable(plain), Ok(()), "{plain}");
    }
    for value in [
        "-DT=__TIME__",
        "X=__DATE__",
        "-I/elsewhere",
        "-O3",
        "a,-include",
        "a=--x",
        "/etc/x",
        "@file",
        "C:\\x",
        "\0no text",
    ] {
        let why = is_cacheable(value).unwrap_err();
        assert!(why.contains("POCL_EXTRA_BUILD_FLAGS"), "{why}");
    }
}

/// A second a megabyte: each mark was looked at with all that stands before it in its line.
#[test]
fn a_long_line_takes_no_longer_than_many() {
    for piece in ["a##b ", "# ", "asm (", "// # "] {
        scan(&piece.repeat(1 << 20), &[]);
    }
}

/// Opening a pipe never ends.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_read() {
    let folder = folder(&[("two/pipe.h", "")]);
    let pipe = folder.path().join("pipe.h");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for name in [pipe.to_str().unwrap(), "/dev/zero"] {
        let found = scan(&format!("#include \"{name}\""), &[]);
        assert!(found.cacheable.is_err());
    }
    // A compiler reads it, before the file of its name.
    let two = folder.path().join("two");
    let found = scan("#include \"pipe.h\"", &[folder.path(), &two]);
    assert!(found.cacheable.is_err());
}

/// Files that each include the next one overflowed the stack, and such as include one another by the parent had ever longer names.
#[test]
fn files_that_include_one_another_come_to_an_end() {
    let folder = folder(&[
        ("a/x.h", "#include \"../b/y.h\""),
        ("b/y.h", "#include \"../a/x.h\""),
    ]);
    for n in 0..20_000 {
        let text = format!("#include \"{}.h\"", n + 1);
        fs::write(folder.path().join(format!("{n}.h")), text).unwrap();
    }
    let got = names(&scan("#include \"0.h\"", &[folder.path()])).len();
    assert_eq!(got, 20_000);
    let both = scan("#include \"a/x.h\"", &[folder.path()]);
    assert!(both.included.len() <= 3, "{:?}", names(&both));
}
