//! Traces written by hand; `cli/tests` has those of strace itself.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::follow::Follow;
use super::known::{Declared, Known};
use super::{Traced, Undeclared, Use};

/// A trace in which `{/a b}` stands for that text as strace writes it.
fn heard(declared: &Declared, own: &Path, trace: &str) -> Traced {
    let mut known = Known::new(declared, own);
    let mut follow = Follow::new(&own.join("work"));
    for line in trace.lines() {
        let mut text = String::new();
        for (at, part) in line.split(['{', '}']).enumerate() {
            match at % 2 {
                0 => text.push_str(part),
                _ => text.extend(part.bytes().map(|byte| format!("\\x{byte:02x}"))),
            }
        }
        follow.line(text.trim(), &mut |access| known.take(&access));
    }
    follow.end(&mut |access| known.take(&access));
    let (undeclared, more) = known.undeclared();
    Traced {
        cut: follow.cut,
        undeclared,
        more,
    }
}

/// What was found in a whole trace of a run in `/own`, which has no such folder.
fn found(declared: &Declared, trace: &str) -> Vec<String> {
    let traced = heard(declared, Path::new("/own"), trace);
    assert_eq!(traced.cut, None);
    let shown = |one: &Undeclared| format!("{} {}", one.used.words(), one.path);
    traced.undeclared.iter().map(shown).collect()
}

fn cut(trace: &str) -> String {
    let traced = heard(&Declared::default(), Path::new("/own"), trace);
    assert!(!traced.is_clean());
    traced.cut.unwrap()
}

fn files(paths: &[&str]) -> Declared {
    Declared {
        files: paths.iter().map(PathBuf::from).collect(),
        ..Declared::default()
    }
}

#[test]
fn a_relative_path_is_that_of_the_folder_of_its_process() {
    let trace = r#"1 access("{in}", R_OK) = 0
        1 chdir("{/no-x}") = 0
        1 access("{a}", R_OK) = 0
        1 clone(flags=CLONE_CHILD_SETTID|SIGCHLD) = 2
        2 chdir("{../no-y}") = 0
        2 access("{b}", R_OK) = -1 ENOENT (No such file or directory)
        1 access("{c}", R_OK) = 0
        1 clone3() = 3
        1 clone3(flags=CLONE_VM|CLONE_FS|CLONE_THREAD => parent_tid=[4]) = 4
        4 fchdir(5<{/no-z}>) = 0
        1 access("{d}", R_OK) = 0
        3 access("{e}", R_OK) = 0
        3 openat(7<{/no-z/sub}>, "{f}", O_RDONLY) = -1 EACCES (Permission denied)
        3 openat(7<{/no-z/sub}>, "{g}", O_RDONLY) = 8<{/no-z/sub/g}>
        3 openat(AT_FDCWD<{/no-w}>, "{h}", O_RDONLY) = 8<{/no-w/h}>
        3 readlink("{i}", "{x}"..., 4095) = 3
        3 getdents64(8<{/no-w}>, 0x55 /* 2 entries */, 32768) = 48
        3 +++ exited with 0 +++
        4 +++ exited with 0 +++
        2 +++ killed by SIGTERM +++
        1 +++ exited with 0 +++"#;
    let expected = [
        "listed /no-w",
        "read /no-w/h",
        "looked at /no-w/i",
        "looked at /no-x",
        "looked at /no-x/a",
        "looked at /no-x/c",
        "looked at /no-x/e",
        "looked at /no-y",
        "looked for, not there /no-y/b",
        "looked at /no-z/d",
        "looked at /no-z/sub/f",
        "read /no-z/sub/g",
    ];
    assert_eq!(found(&Declared::default(), trace), expected);
}

/// A child's lines may come before its parent knows it, and another process may come in the midst of a call.
#[test]
fn lines_come_in_any_order() {
    let trace = r#"1 chdir("{/no-x}") = 0
        1 vfork( <unfinished ...>
        2 access("{a}", R_OK) = 0
        2 vfork( <unfinished ...>
        3 access("{b}", R_OK) = 0
        3 execve("{c}", [...], 0x7f /* 2 vars */ <unfinished ...>
        2 <... vfork resumed>) = 3
        3 <... execve resumed>) = 0
        1 <... vfork resumed>)              = 2
        2 +++ exited with 0 +++
        1 openat(AT_FDCWD<{/no-x}>, "{d}", O_RDONLY <unfinished ...>
        3 +++ exited with 1 +++
        1 <... openat resumed>)             = -1 ENOENT (No such file or directory)
        1 clone(flags=CLONE_VM|CLONE_FS|CLONE_THREAD) = 5
        5 execve("{e}", [...], 0x7f /* 2 vars */ <pid changed to 1 ...>
        1 +++ superseded by execve in pid 5 +++
        1 <... execve resumed>)             = 0
        1 +++ exited with 0 +++"#;
    let expected = [
        "looked at /no-x",
        "looked at /no-x/a",
        "looked at /no-x/b",
        "started /no-x/c",
        "looked for, not there /no-x/d",
        "started /no-x/e",
    ];
    assert_eq!(found(&Declared::default(), trace), expected);
}

#[test]
fn what_a_trace_can_not_tell_cuts_it() {
    let cases = [
        ("1 access(\"{/x}\", R_OK) = 0", "lived on"),
        ("1 chroot(\"{/no-x}\") = 0", "chroot"),
        ("1 io_uring_setup(8, {}) = 3", "io_uring_setup"),
        ("1 unshare(CLONE_NEWNS|CLONE_NEWUSER) = 0", "unshare"),
        (
            "1 openat2(5, \"{/y}\", RESOLVE_IN_ROOT, 24) = -1 ENOENT (No)",
            "openat2",
        ),
        ("1 setns(3, CLONE_NEWNS) = 0", "setns"),
        ("1 clone(flags=CLONE_UNTRACED|SIGCHLD) = 2", "clone"),
        (
            "1 mount(\"{x}\", \"{/y}\", NULL, MS_BIND, NULL) = 0",
            "mount",
        ),
        ("nonsense", "another kind"),
        ("1 nonsense", "another kind"),
        ("1 <... access resumed>) = 0", "without its beginning"),
        ("2 access(\"{/x}\", R_OK) = 0", "lived on"),
    ];
    for (line, why) in cases {
        let trace = format!("1 execve(\"{{/x}}\", [...], 0x7f) = 0\n{line}").replace("{}", "0x7f");
        let cut = cut(&trace);
        assert!(cut.contains(why), "{line}: {cut}");
    }
    // What fails changes nothing.
    let ends =
        "1 chroot(\"{/own/x}\") = -1 EPERM (Operation not permitted)\n1 +++ exited with 0 +++";
    assert_eq!(found(&Declared::default(), ends), [""; 0]);
}

#[test]
fn what_is_declared_or_made_is_not_named() {
    let declared = Declared {
        files: vec!["/no-d/bin/prog".into()],
        folders: vec!["/no-p/params".into()],
        names: vec!["tool".into()],
        search: vec!["/no-s".into(), "/no-t".into()],
    };
    let trace = r#"1 execve("{/no-d/bin/prog}", [...], 0x7f) = 0
        1 openat(AT_FDCWD<{/own/work}>, "{a}", O_RDONLY) = 3<{/own/a}>
        1 openat(AT_FDCWD<{/own/work}>, "{/no-p/params/x/y}", O_RDONLY) = 3<{/no-p/other}>
        1 access("{/no-p/params/z}", R_OK) = -1 ENOENT (No such file or directory)
        1 readlink("{/no-d/bin}", 0x7f, 4095) = -1 EINVAL (Invalid argument)
        1 access("{/}", R_OK) = 0
        1 getdents64(3<{/no-d}>, 0x55, 32768) = 48
        1 access("{/no-d/bin/other}", R_OK) = -1 ENOENT (No such file or directory)
        1 openat(AT_FDCWD<{/own/work}>, "{/no-m/new}", O_RDWR|O_CREAT|O_EXCL, 0666) = 3<{/no-m/new}>
        1 openat(AT_FDCWD<{/own/work}>, "{/no-m/new}", O_RDONLY) = 3<{/no-m/new}>
        1 openat(AT_FDCWD<{/own/work}>, "{/no-m/old}", O_RDWR|O_CREAT, 0666) = 3<{/no-m/old}>
        1 openat(AT_FDCWD<{/own/work}>, "{/no-m/log}", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3<{/no-m/log}>
        1 openat(AT_FDCWD<{/own/work}>, "{/no-m/temporary}", O_RDWR|O_TMPFILE, 0666) = 3<{/no-m/temporary/#1}>(deleted)
        1 openat(AT_FDCWD<{/own/work}>, "{/no-m/temporary/x}", O_RDONLY) = 3<{/no-m/temporary/x}>
        1 mkdir("{/no-m/folder}", 0777) = 0
        1 access("{/no-m/folder/x}", R_OK) = -1 ENOENT (No such file or directory)
        1 mkdir("{/no-m/there}", 0777) = -1 EEXIST (File exists)
        1 rename("{/no-m/new}", "{/no-m/newer}") = 0
        1 access("{/no-m/newer}", R_OK) = 0
        1 rename("{/no-m/theirs}", "{/no-m/mine}") = 0
        1 symlinkat("{../out}", AT_FDCWD<{/own/work}>, "{/no-m/a/link}") = 0
        1 symlink("{in}", "{link}") = 0
        1 access("{/no-m/a/link}", R_OK) = 0
        1 access("{/no-s/tool}", X_OK) = -1 ENOENT (No such file or directory)
        1 access("{/no-u/tool}", X_OK) = -1 ENOENT (No such file or directory)
        1 access("{/no-t/tool}", X_OK) = 0
        1 +++ exited with 0 +++"#;
    let expected = [
        "listed /no-d",
        "looked for, not there /no-d/bin/other",
        "looked at /no-m/log",
        "read /no-m/old",
        "looked at /no-m/out",
        "looked at /no-m/temporary",
        "read /no-m/temporary/x",
        "read /no-m/theirs",
        "looked at /no-m/there",
        "looked at /no-t/tool",
        "looked for, not there /no-u/tool",
    ];
    assert_eq!(found(&declared, trace), expected);
}

/// The loader looks in many folders before it finds a library; who asks for one by its name later is none.
#[test]
fn a_library_is_looked_for_by_the_loader_until_it_is_loaded() {
    let declared = files(&["/no-l/prog", "/no-l/libx.so.1"]);
    let looks = |at: &str, number: u32| {
        format!(
            "{number} openat(AT_FDCWD<{{/own/work}}>, \"{{{at}/libx.so.1}}\", O_RDONLY) = -1 ENOENT (No)\n"
        )
    };
    let loads =
        "openat(AT_FDCWD<{/own/work}>, \"{/no-l/libx.so.1}\", O_RDONLY) = 3<{/no-l/libx.so.1}>\n";
    let trace = [
        "1 execve(\"{/no-l/prog}\", [...], 0x7f) = 0\n",
        &looks("/no-1", 1),
        "1 newfstatat(AT_FDCWD<{/own/work}>, \"{/no-1}\", 0x7f, 0) = 0\n",
        &looks("/no-0/tls", 1),
        "1 newfstatat(AT_FDCWD<{/own/work}>, \"{/no-0/tls}\", 0x7f, 0) = -1 ENOENT (No)\n",
        "1 newfstatat(AT_FDCWD<{/own/work}>, \"{/no-0}\", 0x7f, 0) = 0\n",
        &format!("1 {loads}"),
        &looks("/no-2", 1),
        "1 fork() = 2\n",
        &looks("/no-3", 2),
        "2 execve(\"{/no-l/prog}\", [...], 0x7f) = 0\n",
        &looks("/no-4", 2),
        &format!("2 {loads}"),
        "2 +++ exited with 0 +++\n1 +++ exited with 0 +++",
    ];
    let expected = [
        "looked at /no-0",
        "looked for, not there /no-2/libx.so.1",
        "looked for, not there /no-3/libx.so.1",
    ];
    assert_eq!(found(&declared, &trace.concat()), expected);
}

#[test]
fn links_lead_to_what_counts() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let (own, data) = (real.join("own"), real.join("data"));
    fs::create_dir_all(own.join("work")).unwrap();
    fs::create_dir(&data).unwrap();
    fs::write(data.join("used"), "").unwrap();
    std::os::unix::fs::symlink(&data, own.join("work/out")).unwrap();
    std::os::unix::fs::symlink(data.join("used"), real.join("current")).unwrap();
    fs::write(own.join("work/script"), "#!/no-i/perl -w\n").unwrap();
    let at = |path: &Path| path.to_str().unwrap().to_owned();
    let trace = format!(
        r#"1 access("{{out/used}}", R_OK) = 0
        1 access("{{out/absent}}", R_OK) = -1 ENOENT (No such file or directory)
        1 openat(AT_FDCWD<{{{work}}}>, "{{/proc/self/fd/3}}", O_RDONLY) = 4<{{/no-1/opened}}>
        1 openat(AT_FDCWD<{{{work}}}>, "{{/proc/self/fd/3}}", O_RDONLY) = 4<{{{work}/gone}}>(deleted)
        1 access("{{/proc/self/status}}", R_OK) = 0
        1 access("{{/proc/7/task/7/cwd/no-2}}", R_OK) = 0
        1 access("{{/proc/self/fd/3/no-3}}", R_OK) = 0
        1 openat(AT_FDCWD<{{{work}}}>, "{{{current}}}", O_RDONLY) = 4<{{{used}}}>
        1 execve("{{./script}}", [...], 0x7f) = 0
        1 access("{{/dev/shm/no-4}}", R_OK) = 0
        1 +++ exited with 0 +++"#,
        work = at(&own.join("work")),
        used = at(&data.join("used")),
        current = at(&real.join("current")),
    );
    let traced = heard(&files(&[]), &own, &trace);
    let mut found: Vec<&str> = traced.undeclared.iter().map(|one| &*one.path).collect();
    let mut expected = ["used", "absent"].map(|name| at(&data.join(name))).to_vec();
    expected.push(at(&real.join("current")));
    let more = [
        "/dev/shm/no-4",
        "/no-1/opened",
        "/no-i/perl",
        "/proc/7/task/7/cwd/no-2",
        "/proc/self/fd/3/no-3",
    ];
    expected.extend(more.map(str::to_owned));
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    // A declared file may be named by another path, which may lead elsewhere tomorrow.
    let declared = files(&[&at(&data.join("used"))]);
    let traced = heard(&declared, &own, &trace);
    let is_named = |path: PathBuf| traced.undeclared.iter().any(|one| one.path == at(&path));
    assert!(!is_named(data.join("used")));
    assert!(is_named(real.join("current")));
}

#[test]
fn what_is_kept_is_read_again() {
    let mut traced = Traced {
        cut: None,
        undeclared: Vec::new(),
        more: 0,
    };
    assert!(Traced::read(&traced.kept()).is_clean());
    for used in Use::ALL {
        let path = super::told::shown(Path::new(std::ffi::OsStr::from_bytes(b"/a b\n\"\xff")));
        assert_eq!(path, "/a b\\n\"\u{fffd}");
        traced.undeclared.push(Undeclared { used, path });
    }
    (traced.cut, traced.more) = (Some("why\\n not".to_owned()), 7);
    assert_eq!(Traced::read(&traced.kept()), traced);
    for damaged in [
        "",
        "whole",
        "whole\nread",
        "whole\neaten /x\n",
        "whole\nmore x\n",
    ] {
        assert!(!Traced::read(damaged).is_clean(), "{damaged}");
    }
}

#[test]
fn names_are_few_and_all_are_counted() {
    let mut trace = String::new();
    for number in 0..3000 {
        trace += &format!("1 access(\"{{/no-x/{number}}}\", R_OK) = 0\n");
        trace += &format!("1 access(\"{{/no-x/{number}}}\", R_OK) = 0\n");
    }
    trace += "1 +++ exited with 0 +++";
    let traced = heard(&Declared::default(), Path::new("/own"), &trace);
    assert_eq!((traced.undeclared.len(), traced.more), (1000, 2000));
    let told = traced.to_string();
    assert!(told.lines().all(|line| line.len() < 200), "{told}");
    assert!(told.contains(" and 992 more") && told.contains("and 2000 more files"));
}

/// Found by an attack: each was clean.
#[test]
fn a_name_that_is_exchanged_and_a_file_that_is_added_to_count() {
    let trace = r#"1 renameat2(AT_FDCWD</own>, "{/no-a}", AT_FDCWD</own>, "{/no-b}", RENAME_EXCHANGE) = 0
        1 openat(AT_FDCWD</own>, "{/no-c}", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3<{/no-c}>
        1 +++ exited with 0 +++"#;
    let expected = ["read /no-a", "read /no-b", "looked at /no-c"];
    assert_eq!(found(&Declared::default(), trace), expected);
}

#[test]
fn what_a_text_frees_is_kept_and_left_out_at_each_call() {
    let trace = r#"1 stat("{/no-x}", 0) = 0
        1 openat(AT_FDCWD</own>, "{/no-x/y}", O_RDONLY) = 3<{/no-x/y}>
        1 openat(AT_FDCWD</own>, "{/no-z}", O_RDONLY) = 3<{/no-z}>
        1 +++ exited with 0 +++"#;
    let traced = heard(&Declared::default(), Path::new("/own"), trace);
    let left = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let left = traced.without(&texts).undeclared;
        left.into_iter().map(|one| one.path).collect::<Vec<_>>()
    };
    assert_eq!(left(&[]), ["/no-x", "/no-x/y", "/no-z"]);
    assert_eq!(left(&["/no-x/y"]), ["/no-z"]);
    assert_eq!(left(&["/no-z", "no-x"]), ["/no-x", "/no-x/y"]);
    assert_eq!(left(&["/no-z", "/no-x"]), [""; 0]);
}
