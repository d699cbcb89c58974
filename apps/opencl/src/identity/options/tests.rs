use super::*;

fn options(texts: &[&str]) -> Vec<String> {
    let mut options = Options::default();
    texts.iter().for_each(|text| options.add(text).unwrap());
    options.list
}

fn one(option: &str) -> String {
    let mut options = Options::default();
    options.add_one(option).unwrap();
    options.text()
}

#[test]
fn blanks_do_not_count_and_order_does() {
    assert_eq!(
        options(&["-D  A=1   -cl-mad-enable", "-I x", " "]),
        options(&["-DA=1\t-cl-mad-enable -Ix"])
    );
    assert_ne!(options(&["-DA=1 -DA=2"]), options(&["-DA=2 -DA=1"]));
    // Those of other scripts are no blanks to a driver.
    assert_eq!(options(&["-DA=a\u{a0}b -I\u{3000}x"]).len(), 2);
}

/// A driver was given `-DX='n'` for `-DX='\n'`, and computed with another number.
#[test]
fn a_text_with_quotes_or_backslashes_is_sent_as_it_is_written() {
    for text in [
        r"-DX='\n'",
        r#"-D "TEXT=a  b" -I"dir with blanks" -DQ=\"x\""#,
        r#"-DF=f("a")"#,
        r"-DP=C:\temp\x   -w",
        "-DQ='\"'",
        "-DX=ends\\",
    ] {
        let mut all = Options::default();
        all.add(text).unwrap();
        assert_eq!(all.text(), text);
        assert_eq!(all.list, [text]);
    }
    assert_ne!(options(&[r"-DX='\n'"]), options(&["-DX='n'"]));
    assert_ne!(options(&["-DX=\"a\""]), options(&["-DX=a"]));
}

#[test]
fn one_option_is_one_whatever_is_in_it() {
    assert_eq!(one(r"-DX='\n'"), r"-DX='\n'");
    assert_eq!(one("-DX=\"text\""), "-DX=\"text\"");
    assert_eq!(one("-DX=unsigned int"), "-D\"X=unsigned int\"");
    let mut all = Options::default();
    for wrong in ["-DX=f(\"a b\")", r"-DX='\n' + 1", "-DX=\0"] {
        assert!(all.add_one(wrong).is_err(), "{wrong:?}");
    }
    all.add_one("-I/usr/my files").unwrap();
    assert_eq!(all.include_dirs(), [PathBuf::from("/usr/my files")]);
}

#[test]
fn directories_are_found_behind_quotes() {
    let mut all = Options::default();
    all.add("-Ia -I b").unwrap();
    all.add(r#"-I"dir with blanks" -DA="x" -I c"#).unwrap();
    let names = ["a", "b", "dir with blanks", "c"].map(PathBuf::from);
    assert_eq!(all.include_dirs(), names);
}

#[test]
fn what_can_not_be_told_apart_is_an_error() {
    for wrong in ["-D", "-I \"\" -DX", "nu\0ll", "-DA=1 -U", "-cl-nv-arch"] {
        assert!(Options::default().add(wrong).is_err(), "{wrong:?}");
    }
}

fn why(text: &str) -> Option<NotCacheable> {
    let mut all = Options::default();
    all.add(text).unwrap();
    all.not_cacheable()
}

/// Those that are known, and no others.
#[test]
fn an_option_that_may_read_a_file_is_not_cacheable() {
    let plain = "-DA=1 -D \"B=/a b\" -UA -Iinclude -I /usr/include -cl-std=CL3.0 -cl-mad-enable -w -Werror \
                 -Wno-error=x -g -O0 -std=CL2.0 -create-library -cl-ext=-all,+cl_khr_fp64 -cl-nv-arch sm_50";
    assert_eq!(why(plain), None);
    for wrong in [
        "-include a.h",
        "-includea.h",
        "--include=a.h",
        "--include a.h",
        "--include-directory=a",
        "-imacros a.h",
        "-isystem a",
        "-iquote a",
        "-idirafter a",
        "-iprefix a",
        "-iwithprefix a",
        "-iwithprefixbefore a",
        "--sysroot=a",
        "-isysroot a",
        "-save-temps",
        "-save-temps=cwd",
        "-x cl",
        "-Wp,-include,a.h",
        "-I-",
        "-I=a",
        "-I\"a b\"",
        "@file",
        "file.cl",
        "-fmodule-file=a",
        "-Xclang -include",
        "-cl-a=/b",
        "-D\"A=1 -I/elsewhere\"",
        "-DT=unsigned int",
        "\"open",
    ] {
        assert!(
            matches!(why(wrong), Some(NotCacheable::Option { .. })),
            "{wrong}"
        );
    }
    let clock = why("-DA=1 -DWHEN=__TIME__").unwrap();
    let text =
        "the option -DWHEN=__TIME__ has __TIME__, which is another from one build to the next";
    assert_eq!(clock.to_string(), text);
    assert_eq!(why("-DHAVE__TIME__=1 -DX__DATE__Y"), None);
    assert!(why("\"-DA=1\n#include <a.h>\"").is_some());
    let alone = why("-DT=unsigned int").unwrap().to_string();
    assert!(alone.contains("a value with a blank"), "{alone}");
}

/// Quotes and backslashes in values matter only where a driver that reads them in another way would see another option.
#[test]
fn quotes_are_cacheable_where_it_does_not_matter_who_reads_them() {
    for good in [
        r"-DX='\n' -cl-mad-enable",
        r#"-DF=f("a") -Iinclude"#,
        "-DX='a'",
        "-D\"A=a b\" -w",
        "-D \"A=1\" -Iin",
    ] {
        assert_eq!(why(good), None, "{good}");
    }
    for bad in [
        r#""-cl-mad-enable -include a.h""#,
        r#""-cl-nv-arch -include""#,
        r#"-D"A=1 -Idir -DB""#,
        r#"-DX=\" -include a.h \""#,
        r#"-DX="a\" -save-temps \"b""#,
        "-DX=' -save-temps '",
        "-DX='a b'",
        r#""-DX=\"a b\"""#,
        // Clover
        "-DQ='a -Iin1 -DY=b' -Iin2",
        r"-DQ=a\ -Iin1 -Iin2",
        // Rusticl
        r#"-DQ="-Iin2" -Iin1"#,
        r#"-DQ="-includein2/b.h" -Iin1"#,
        r#"-DQ=""-Iin2 -Iin1"#,
        "-DQ=\"x\"\t-Iin1 -Iin2",
        "-DX='\"' -w",
        "-DX=ends\\",
    ] {
        assert!(why(bad).is_some(), "{bad}");
    }
    // A driver reads all texts as one.
    for texts in [
        ["-DP=C:\\", "-Iin1", "-Iin2", ""],
        ["-DQ=it's", "-Iin1", "-DY=it's", "-Iin2"],
    ] {
        let mut all = Options::default();
        texts.iter().for_each(|text| all.add(text).unwrap());
        assert!(all.not_cacheable().is_some(), "{texts:?}");
    }
}
