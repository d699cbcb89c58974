//! Stores with something else in the place of a folder, or without their `FORMAT` file.

use super::kit::{Sample, says};

/// `ls` and `verify` gave up, with the advice to name another directory.
#[test]
fn a_file_in_the_place_of_a_folder_is_told_of_and_the_rest_is_listed() {
    for folder in ["entries", "scratch", "manifests"] {
        let sample = Sample::new();
        let path = sample.path.join(folder);
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::write(&path, "no folder").unwrap();
        for command in ["ls", "stats"] {
            let done = sample.run(command, &[]);
            assert_eq!(done.status, 1, "{command}: {}{}", done.out, done.err);
            says(&done.err, &format!("damaged: {folder} at byte 0"));
            assert_eq!(done.out.contains("cli.energy"), folder != "entries");
        }
        let verify = sample.run("verify", &[]);
        assert_eq!(verify.status, 1, "{}{}", verify.out, verify.err);
        let said = format!("damaged: {folder}, bytes 0..9: it is no folder\n");
        assert!(verify.out.contains(&said), "{}", verify.out);
        let gc = sample.run("gc", &[]);
        assert_eq!(gc.status, 2);
        says(&gc.err, "move it away");
    }
}

/// The advice was to name an empty directory.
#[test]
fn a_store_without_its_format_file_is_told_how_to_get_one() {
    let sample = Sample::new();
    let format = sample.path.join("FORMAT");
    let text = std::fs::read(&format).unwrap();
    std::fs::remove_file(&format).unwrap();
    for command in ["ls", "verify"] {
        let done = sample.run(command, &[]);
        let advice = "FORMAT file is lost or damaged; that of any store of the same release does";
        assert_eq!(done.status, 1);
        assert!((done.out + &done.err).contains(advice), "{command}");
    }
    let gc = sample.run("gc", &[]);
    says(&gc.err, "its FORMAT file is lost;");
    std::fs::write(&format, text).unwrap();
    sample.run("verify", &[]).well();
}
