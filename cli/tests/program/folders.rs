//! Stores with something else in the place of a folder.

use super::kit::Sample;

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
            assert!(
                done.err.contains(&format!("damaged: {folder} at byte 0")),
                "{}",
                done.err
            );
            assert_eq!(done.out.contains("cli.energy"), folder != "entries");
        }
        let verify = sample.run("verify", &[]);
        assert_eq!(verify.status, 1, "{}{}", verify.out, verify.err);
        let said = format!("damaged: {folder}, bytes 0..9: it is no folder\n");
        assert!(verify.out.contains(&said), "{}", verify.out);
        let gc = sample.run("gc", &[]);
        assert_eq!(gc.status, 2);
        assert!(gc.err.contains("move it away"), "{}", gc.err);
    }
}
