//! Scripts, their interpreters, and what `env` finds.

use super::*;

#[test]
fn edited_program_script_and_interpreter_have_other_digests() {
    let room = Room::new();
    let shell = room.shell("shell");
    let script = room.script("script", format!("#!{}\n", shell.display()));
    let before = room.read(&script, &[], &[]).unwrap();
    assert_eq!(before.interpreters, std::slice::from_ref(&shell));
    assert!(names(&before).iter().any(|name| name.contains("libc")));
    let bytes = fs::read(&shell).unwrap();
    fs::write(&shell, [&bytes[..], b"edited"].concat()).unwrap();
    let after = room.read(&script, &[], &[]).unwrap();
    let digest = |program: &Program, name| part(program, name).digest;
    assert_ne!(
        digest(&before, "interpreter shell"),
        digest(&after, "interpreter shell")
    );
    assert_eq!(digest(&before, "script"), digest(&after, "script"));
    room.script("script", format!("#!{}\n#edited", shell.display()));
    let edited = room.read(&script, &[], &[]).unwrap();
    assert_ne!(digest(&edited, "script"), digest(&after, "script"));
}

#[test]
fn interpreter_has_the_name_of_its_file() {
    let room = Room::new();
    room.shell("shell1.2");
    symlink("shell1.2", room.at("shell")).unwrap();
    let script = room.script("script", format!("#!{}\n", room.text("shell")));
    let program = room.read(&script, &[], &[]).unwrap();
    part(&program, "interpreter shell1.2");
    assert_eq!(program.interpreters, [room.at("shell")]);
}

#[test]
fn interpreter_of_env_is_the_first_in_the_callers_path_and_runs() {
    let room = Room::new();
    room.shell("a/shell");
    room.shell("b/shell");
    let script = room.script("bin/script", format!("#!/usr/bin/env shell\n{TELLS}"));
    // One beside the script comes later in the run's PATH than the one that was identified.
    room.shell("bin/shell");
    for first in ["a", "b"] {
        let last = if first == "a" { "b" } else { "a" };
        let program = room.read(&script, &[first, last], &[]).unwrap();
        assert_eq!(program.interpreters, [room.at(first).join("shell")]);
        assert_eq!(room.ran(&program, &[]), room.at(first).join("shell"));
        part(&program, "interpreter env");
    }
    // Earlier in PATH than before.
    let before = room.read(&script, &["c", "a"], &[]).unwrap();
    room.shell("c/shell");
    let after = room.read(&script, &["c", "a"], &[]).unwrap();
    assert_ne!(digests_of(&before), digests_of(&after));
}

#[test]
fn interpreter_of_env_with_arguments_runs() {
    let room = Room::new();
    room.shell("a/shell");
    let script = room.script("script", format!("#!/usr/bin/env -S shell -e\n{TELLS}"));
    let program = room.read(&script, &["a"], &[]).unwrap();
    assert_eq!(room.ran(&program, &[]), room.at("a/shell"));
}

#[test]
fn declared_path_decides_over_the_callers() {
    let room = Room::new();
    room.shell("a/shell");
    room.shell("b/shell");
    let script = room.script("script", format!("#!/usr/bin/env shell\n{TELLS}"));
    let path = format!("{}:{}", room.text("b"), room.text("a"));
    let environment = [("PATH", path.as_str())];
    let program = room.read(&script, &["a"], &environment).unwrap();
    assert_eq!(program.interpreters, [room.at("b/shell")]);
    assert_eq!(room.ran(&program, &environment), room.at("b/shell"));
    assert_eq!(
        search_path(&program, &owned(&environment)).unwrap(),
        OsStr::new(&path)
    );
}

#[test]
fn declared_path_that_first_looks_in_the_run_is_refused() {
    let room = Room::new();
    room.shell("a/shell");
    let script = room.script("script", "#!/usr/bin/env shell\n");
    for path in [
        format!(":{}", room.text("a")),
        format!("bin:{}", room.text("a")),
    ] {
        let read = room.read(&script, &[], &[("PATH", &path)]);
        assert!(
            matches!(read, Err(ProgramError::Hidden { .. })),
            "{path}: {read:?}"
        );
    }
    let path = format!("{}:", room.text("a"));
    room.read(&script, &[], &[("PATH", &path)]).unwrap();
    // A path is not looked for.
    let script = room.script("script", "#!/usr/bin/env /bin/sh\n");
    room.read(&script, &[], &[("PATH", ":/bin")]).unwrap();
}

#[test]
fn chain_of_interpreters_is_followed() {
    let room = Room::new();
    room.shell("deep/shell");
    room.script("a/middle", "#!/usr/bin/env shell\n");
    let script = room.script("script", "#!/usr/bin/env middle\n");
    let program = room.read(&script, &["a", "deep"], &[]).unwrap();
    assert_eq!(
        program.interpreters,
        [room.at("a/middle"), room.at("deep/shell")]
    );
    part(&program, "interpreter middle");
    part(&program, "interpreter shell");
    // In the run, the folder of `middle` comes first, so another shell in it would run.
    room.shell("a/shell");
    let read = room.read(&script, &["deep", "a"], &[]);
    assert!(matches!(read, Err(ProgramError::Hidden { .. })), "{read:?}");
}

#[test]
fn chain_that_is_too_deep_or_a_circle_is_refused() {
    let room = Room::new();
    let mut before = room.shell("0");
    for depth in 1..=5 {
        let line = format!("#!{}\n", before.display());
        before = room.script(&depth.to_string(), &line);
    }
    assert_eq!(
        room.read(&room.at("4"), &[], &[])
            .unwrap()
            .interpreters
            .len(),
        4
    );
    assert!(matches!(
        room.read(&room.at("5"), &[], &[]),
        Err(ProgramError::Deep { .. })
    ));
    let circle = room.script("circle", format!("#!{}\n", room.text("circle")));
    assert!(matches!(
        room.read(&circle, &[], &[]),
        Err(ProgramError::Deep { .. })
    ));
}

#[test]
fn interpreter_that_is_absent_is_told_with_its_script() {
    let room = Room::new();
    for line in ["#!/none/shell\n", "#!/usr/bin/env none\n", "#!/bin/sh\r\n"] {
        let script = room.script("script", line);
        let said = room.read(&script, &["a"], &[]).unwrap_err().to_string();
        assert!(
            said.contains("not there") && said.contains("script"),
            "{said}"
        );
    }
    assert!(
        room.read(&room.at("script"), &[], &[])
            .unwrap_err()
            .to_string()
            .contains(r"/bin/sh\r")
    );
}
