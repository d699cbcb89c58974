//! What would be a trap is refused, with what to write instead.

use std::path::Path;

use crate::kit::Lab;

#[test]
fn each_trap_is_refused_and_nothing_runs() {
    let lab = Lab::new();
    let script = lab.script("job", "");
    let file = lab.write("elsewhere/data", "1");
    let (file, folder) = (file.to_str().unwrap(), lab.path("elsewhere"));
    let folder = folder.to_str().unwrap();
    lab.write("here", "1");
    let job = || lab.command(&script);
    let sh = || lab.command(Path::new("/bin/sh"));
    let cases = [
        (job().arg(file), format!("--uses {file}")),
        (
            job().arg(format!("--data={file}")),
            format!("--uses {file}"),
        ),
        (job().arg(format!("-I{folder}")), format!("--uses {folder}")),
        (job().arg(format!("a:{file}")), format!("-i {file}")),
        (job().arg(format!("{folder}/new.log")), "--text".to_owned()),
        (
            job().env("DATA", file),
            "the variable DATA is refused".to_owned(),
        ),
        (job().arg("elsewhere"), "--tree elsewhere".to_owned()),
        (job().input_file("elsewhere"), "--tree".to_owned()),
        (job().tree("here"), "-i".to_owned()),
        (
            job().input("x", "here").input("x", file),
            "has that place".to_owned(),
        ),
        (job().input("../x", file), "-i SOURCE=NAME".to_owned()),
        (
            job().tree("elsewhere").input("elsewhere/x", "here"),
            "has that place".to_owned(),
        ),
        (job().arg("/t*p/x"), "--text".to_owned()),
        (job().arg("/tm?/x"), "--text".to_owned()),
        (
            job().arg(format!("{}*/data", folder.trim_end_matches('e'))),
            "--text".to_owned(),
        ),
        (job().arg(format!("<{file}")), format!("--uses {file}")),
        (job().arg(format!("--x=@{file}")), format!("--uses {file}")),
        (job().arg(format!("file://{file}")), "--text".to_owned()),
        (
            job().arg("--in=../../../etc/passwd"),
            "leads out".to_owned(),
        ),
        (
            job().arg(format!("{folder}/../here")).uses(folder),
            "--text".to_owned(),
        ),
        (job().arg("~root/x"), "leads out".to_owned()),
        (job().arg("/"), "the root of the file system".to_owned()),
        (
            job().arg(format!("{file}+1")).uses(file),
            format!("--uses {file}+1"),
        ),
        (
            job().arg(format!("{file}*.dat")).text(file),
            "--text".to_owned(),
        ),
        (
            job().arg(format!("{file}~")).text(file),
            "--text".to_owned(),
        ),
        (job().arg(format!("$r{file}")), format!("--uses {file}")),
        (job().arg(format!("/x/r{file}")), format!("--uses {file}")),
        (job().arg(format!("%s{folder}/*")), "--text".to_owned()),
        (job().arg("file://localhost/x"), "--text".to_owned()),
        (sh().args(["-c", "cd / && pwd"]), "the root".to_owned()),
        (sh().args(["-c", "cd /\"tmp\"/x"]), "--text".to_owned()),
        (sh().args(["-c", "cd /{tmp,x}/y"]), "--text".to_owned()),
        (sh().args(["-c", "\\\\ls"]), "--uses ls".to_owned()),
        (sh().args(["-c", "l\"s\""]), "--uses ls".to_owned()),
        (
            sh().args(["-c", "ls | sort"]),
            "--uses ls --uses sort".to_owned(),
        ),
        (job().arg("."), "it is a folder".to_owned()),
        (
            sh().args(["-c", "cat ../../../etc/passwd"]),
            "leads out".to_owned(),
        ),
        (
            lab.command(Path::new("/usr/bin/nice"))
                .arg("ls")
                .input("ls", "here"),
            "--uses ls".to_owned(),
        ),
        (
            lab.command(Path::new("/usr/bin/env")).arg("-Sls"),
            "--uses ls".to_owned(),
        ),
        (
            lab.command(Path::new("/usr/bin/perl"))
                .arg("-e")
                .env("A", "1")
                .pass("A"),
            "named twice".to_owned(),
        ),
        (
            lab.command(Path::new("/usr/bin/perl")).arg("-mstrict"),
            "--text strict".to_owned(),
        ),
        (
            job()
                .uses("ls")
                .env("PATH", lab.path("elsewhere").to_str().unwrap()),
            "--uses ls".to_owned(),
        ),
        (job().pass("A=1"), "--env NAME=VALUE".to_owned()),
        (
            job().tree("elsewhere").output("elsewhere/out"),
            "beside it".to_owned(),
        ),
        (
            job().input("d/./b", "here").input("d/b", file),
            "has that place".to_owned(),
        ),
        (job().name("sde.rules"), "are taken".to_owned()),
        (job().program_is(""), "which program".to_owned()),
        (
            job().output("logs").reject("other/x:ERROR"),
            "-o other/x".to_owned(),
        ),
        (job().get("status", "x"), "choose another".to_owned()),
        (job().output("../x"), "without `..`".to_owned()),
        (job().output("/x"), "without `..`".to_owned()),
        (job().compare("x"), "-o x".to_owned()),
        (job().require("x.log:done"), "-o x.log".to_owned()),
        (job().uses("no-such-program"), "no-such-program".to_owned()),
        (sh().args(["-c", "ls | wc -l"]), "--uses ls".to_owned()),
        (
            lab.command(Path::new("/usr/bin/env")).args(["A=1", "ls"]),
            "--uses ls".to_owned(),
        ),
        (
            lab.command(Path::new("/usr/bin/nice")).arg("ls"),
            "--uses ls".to_owned(),
        ),
        (
            lab.command(Path::new("/usr/bin/perl")).arg("nothing.pl"),
            "there is no file nothing.pl here".to_owned(),
        ),
        (
            lab.command(Path::new("/no/such/program")),
            "/no/such/program".to_owned(),
        ),
    ];
    for (command, advice) in cases {
        let error = lab.error(&command);
        assert!(
            error.contains(&advice),
            "{command:?}\n{error}\nshould say {advice}"
        );
    }
    assert_eq!(lab.runs(), 0);
}

#[test]
fn each_way_out_is_taken() {
    let lab = Lab::new();
    let script = lab.script("job", "");
    let file = lab.write("elsewhere/data", "1");
    let file = file.to_str().unwrap();
    lab.script("bin/helper", "");
    lab.write("helper", "a file of that name");
    let helper = lab.path("bin/helper");
    let helper = helper.to_str().unwrap();
    let job = || lab.command(&script);
    let sh = || lab.command(Path::new("/bin/sh"));
    let commands = [
        job().arg(file).text(file),
        job().arg(file).uses(file),
        job().arg(format!("--data={file}")).input_file(file),
        job().arg("elsewhere").tree("elsewhere"),
        job().arg("elsewhere/data").tree("elsewhere"),
        job().arg("elsewhere").text("elsewhere"),
        job().env("DATA", file).uses(file),
        job().arg("elsewhere/data"),
        sh().args(["-c", "ls | wc -l"]).uses("ls").uses("wc"),
        sh().args(["-c", "ls"]).text("ls"),
        job().arg("/").text("/"),
        job().arg("1 / 2"),
        job()
            .arg("kcal/mol")
            .arg("2026/11/26")
            .arg("3/4")
            .arg("s/one/x/")
            .arg("s/../X/"),
        job()
            .arg("-d/")
            .arg("/^$/d")
            .arg("[O-]/[N+]")
            .arg("log(y)~x")
            .arg("T=~5"),
        job()
            .arg("https://example.org/no/such/x")
            .arg("--out=/dev/null"),
        job().env("LD_LIBRARY_PATH", "/usr/lib"),
        sh().args(["-c", "echo 1 > /dev/null"]),
        lab.command(Path::new("/usr/bin/perl"))
            .args(["-lane", "print 1", "elsewhere/data"]),
        lab.command(Path::new("/bin/sh"))
            .args(["-c", "helper"])
            .uses(helper)
            .env("PATH", lab.path("bin").to_str().unwrap()),
    ];
    for command in commands {
        lab.run(&command);
        assert!(lab.run(&command).is_remembered(), "{command:?}");
    }
}
