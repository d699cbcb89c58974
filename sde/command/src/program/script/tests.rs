use super::*;

fn line(text: &str) -> Result<(String, Option<String>), &'static str> {
    match parse(Path::new("/script"), text.as_bytes()) {
        Ok(Interpreter { path, by_env }) => Ok((
            path.into_os_string().into_string().unwrap(),
            by_env.map(|name| name.into_string().unwrap()),
        )),
        Err(ProgramError::Interpreter { why, .. }) => Err(why),
        Err(other) => panic!("{other}"),
    }
}

#[track_caller]
fn is(text: &str, path: &str, by_env: Option<&str>) {
    assert_eq!(
        line(text),
        Ok((path.to_owned(), by_env.map(str::to_owned))),
        "{text:?}"
    );
}

#[test]
fn line_is_read_as_the_kernel_reads_it() {
    is("#!/bin/sh\n", "/bin/sh", None);
    is("#!/bin/sh", "/bin/sh", None);
    is("#! \t/bin/sh -e -u \nmore", "/bin/sh", None);
    is("#!/bin/sh\t-e", "/bin/sh", None);
    is("#!/bin/sh\r\n", "/bin/sh\r", None);
    is("#!/bin/sh\0more", "/bin/sh", None);
    assert_eq!(line("#!\n/bin/sh"), Err("names no interpreter"));
    assert_eq!(line("#!  "), Err("names no interpreter"));
    assert_eq!(
        line("#!bin/sh\n"),
        Err("is relative to the folder of the run")
    );
}

#[test]
fn line_that_the_kernel_cuts_is_refused() {
    let long = format!("#!/{}\n", "x".repeat(HEAD - 4));
    assert_eq!(long.len(), HEAD);
    assert!(line(&long).is_ok());
    assert!(
        line(&long.replace('\n', "x"))
            .unwrap_err()
            .contains("longer")
    );
}

#[test]
fn program_of_env_is_told() {
    is("#!/usr/bin/env python3\n", "/usr/bin/env", Some("python3"));
    is(
        "#!/usr/bin/env   python3  \n",
        "/usr/bin/env",
        Some("python3"),
    );
    is("#!/bin/env -S python3 -u\n", "/bin/env", Some("python3"));
    is(
        "#!/usr/bin/env -Spython3 -u\n",
        "/usr/bin/env",
        Some("python3"),
    );
    is(
        "#!/usr/bin/env -S\tpython3\t-c '${X}'\n",
        "/usr/bin/env",
        Some("python3"),
    );
    is(
        "#!/usr/bin/env /opt/python\n",
        "/usr/bin/env",
        Some("/opt/python"),
    );
    // Without `-S`, all of it is one name.
    is(
        "#!/usr/bin/env python3 -u\n",
        "/usr/bin/env",
        Some("python3 -u"),
    );
}

#[test]
fn what_env_may_change_is_refused() {
    for arguments in [
        "-i sh",
        "-S -i sh",
        "-S PATH=/opt sh",
        "PATH=/opt",
        "-S 'sh'",
        "-S ${SHELL}",
        "-S s\\h",
        "-S\"sh\"",
        "-vS sh",
        "--split-string=sh",
        "-u PATH",
        "-S -S sh",
        "-S #sh",
    ] {
        let read = line(&format!("#!/usr/bin/env {arguments}\n"));
        assert!(read.unwrap_err().contains("not followed"), "{arguments}");
    }
    assert_eq!(line("#!/usr/bin/env\n"), Err("names no program for env"));
    assert_eq!(line("#!/usr/bin/env -S\n"), Err("names no program for env"));
    assert_eq!(
        line("#!/usr/bin/env ./sh\n"),
        Err("is relative to the folder of the run")
    );
}
