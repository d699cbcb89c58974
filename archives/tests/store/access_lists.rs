//! Access lists (ACLs) in stores of groups.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

use sde_archives::DirStore;

use super::groups::{ANNA, BERT, GROUP, Place, UMASKS, mode, segments};
use super::says::says;

/// A list closed to the group what the mode opened, and what mends that changed nothing.
#[test]
fn access_lists_close_nothing_and_are_removed() {
    let test = "access_lists_close_nothing_and_are_removed";
    let Some(place) = Place::new(test) else {
        return;
    };
    let list = |options: &[&str], path: &Path| {
        let set = Command::new("setfacl").args(options).arg(path).status();
        set.is_ok_and(|set| set.success())
    };
    let folder = place.dir.path().join("project");
    fs::create_dir(&folder).unwrap();
    chown(&folder, None, Some(GROUP)).unwrap();
    mode(&folder, 0o2770);
    let other = BERT + 1;
    let inherited = format!("u:{other}:rwx,g::---,m::rwx,o::rwx");
    if !list(&["-d", "-m", &inherited], &folder) {
        return println!("skipped {test}: no setfacl, or no access lists on this file system");
    }
    let lists = |path: &Path| {
        let found = Command::new("getfacl")
            .args(["-Rcs"])
            .arg(path)
            .output()
            .unwrap();
        assert!(found.status.success());
        String::from_utf8(found.stdout).unwrap()
    };
    for umask in UMASKS {
        let store = folder.join(umask);
        assert_eq!(place.run(ANNA, umask, &store, &[("to", 2)]), "computed 2");
        assert_eq!(place.run(BERT, umask, &store, &[("to", 3)]), "computed 1");
        assert_eq!(place.run(ANNA, umask, &store, &[("to", 3)]), "computed 0");
        assert_eq!(lists(&store), "");
        assert_ne!(lists(&folder), "");
    }
    let store = folder.join("022");
    for (closed, right) in [("entries", "x"), ("segment", "---")] {
        let path = match closed {
            "entries" => store.join(closed),
            _ => segments(&store)
                .into_iter()
                .find(|path| path.metadata().unwrap().uid() == ANNA)
                .unwrap(),
        };
        assert!(list(&["-m", &format!("u:{BERT}:{right}")], &path));
        let told = place.run(BERT, "022", &store, &[("to", 3)]);
        says(&told, "you may not read it; have its owner, user");
        let shared = DirStore::share_with_group(&store, GROUP).unwrap();
        assert_eq!(shared.changed, 1);
        assert_eq!(place.run(BERT, "022", &store, &[("to", 3)]), "computed 0");
    }
    // Whom a list lets write shows in the mode: such a file is not run, and one in a store of one's own is refused.
    let segment = segments(&store).remove(0);
    let write = format!("u:{other}:rw");
    assert!(list(&["-m", &write], &segment));
    assert_eq!(segment.metadata().unwrap().mode() & 0o777, 0o660);
    let own = place.dir.path().join("own");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(ANNA), None).unwrap();
    assert_eq!(place.run(ANNA, "022", &own, &[("to", 1)]), "computed 1");
    assert!(list(&["-m", &write], &segments(&own).remove(0)));
    let told = place.run(ANNA, "022", &own, &[("to", 1)]);
    says(&told, "others can write to it");
}
