//! The programs of a page: what they print, and that a second run computes nothing.

use std::path::Path;

use super::kit::example;

fn printed(name: &str, folder: &Path) -> String {
    let output = example(name)
        .current_dir(folder)
        .output()
        .expect("it starts");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn each_computes_once() {
    let folder = tempfile::tempdir().unwrap();
    for (name, expected, computed) in [
        ("arguments", "9.000000\n", 1),
        ("results", "3.414214 [0.500, 0.707, 0.500]\n", 1),
        ("settings", "1.772454\n2.746851\n", 152),
        ("nested", "  1 blocks: 3.141583104\n", 43),
        ("dynamic", "9 7\n", 10),
        ("restart", " in the middle\n", 1),
    ] {
        let first = printed(name, folder.path());
        assert!(first.contains(expected), "{first}");
        assert!(
            first.ends_with(&format!("{computed} computed\n")),
            "{first}"
        );
        let again = printed(name, folder.path());
        let results = first.trim_end_matches(&format!("{computed} computed\n"));
        assert_eq!(again, format!("{results}0 computed\n"));
    }
}

/// An error is remembered by a program, and not saved.
#[test]
fn a_failed_point_ends_no_sweep() {
    let folder = tempfile::tempdir().unwrap();
    for computed in [3, 0] {
        let text = printed("sweep_errors", folder.path());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines[0], lines[2]), ("  4.0 2.000000", "  2.0 1.414214"));
        assert!(
            lines[1].contains("-1.0 item 1 ") && lines[1].contains("a negative number"),
            "{text}"
        );
        assert_eq!(lines[4], format!("{computed} computed"));
    }
}

#[test]
fn ranks_make_an_array_together() {
    let folder = tempfile::tempdir().unwrap();
    let text = printed("array", folder.path());
    let line =
        |rank| format!("rank {rank}: 3 points of its own, [1.000, 1.000, 1.000], 1 computed\n");
    assert_eq!(text, [0, 1, 2].map(line).concat());
}
