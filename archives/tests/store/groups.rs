//! Stores that users share.
//!
//! The users are numbers without accounts, so only the administrator can run these tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sde::{SavePolicy, Sde};
use sde_archives::{DirStore, Retention, StoreOptions};

use super::apps::page;
use super::child::{Worker, setting, tell};
use super::output_files::{self, report};
use super::says::says;

pub const GROUP: u32 = 64_100;
pub const ANNA: u32 = 64_001;
pub const BERT: u32 = 64_002;
pub const UMASKS: [&str; 3] = ["002", "022", "077"];

/// Computes pages, or makes room, as a member of a group; tells what came of it.
pub fn member(dir: &Path) {
    let options = match setting("reads") {
        Some(_) => StoreOptions::new().read_only(),
        None => StoreOptions::new().grace(std::time::Duration::ZERO),
    };
    let options = match setting("runs") {
        Some(_) => options.runs_results(),
        None => options,
    };
    let store = match options.open(dir) {
        Err(error) => return tell(format_args!("refused: {error:#}")),
        Ok(store) => store,
    };
    if setting("room").is_some() {
        let done = store.compact(&Retention::new()).unwrap();
        return tell(format_args!("replaced {}", done.replaced));
    }
    let policy = match setting("reads") {
        Some(_) => SavePolicy::Never,
        None => SavePolicy::EveryResult,
    };
    let sde = Sde::builder().store(store).save(policy).build().unwrap();
    for number in 0..setting("to").unwrap() {
        page.call(&sde, number).unwrap();
    }
    if setting("reads").is_none() {
        sde.finish().unwrap();
    }
    tell(format_args!("computed {}", sde.stats().total.computed));
}

/// A folder that all can enter, with this program, where everybody can run it.
pub struct Place {
    pub dir: tempfile::TempDir,
    program: PathBuf,
}

impl Place {
    /// `None`, and a line that says so, if this user can't be another.
    pub fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped {test}: only the administrator can be several users");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        mode(dir.path(), 0o755);
        let program = dir.path().join("program");
        // By a process of its own: what another thread starts meanwhile would have a file of ours open for writing, and
        // nobody could execute that.
        let mut copy = Command::new("cp");
        copy.arg(std::env::current_exe().unwrap()).arg(&program);
        assert!(copy.status().unwrap().success());
        mode(&program, 0o755);
        Some(Self { dir, program })
    }

    /// A store of the group that Anna has made.
    fn store(&self) -> PathBuf {
        let path = self.dir.path().join("store");
        DirStore::share_with_group(&path, GROUP).unwrap();
        for path in files(&path).iter().chain([&path]) {
            chown(path, Some(ANNA), Some(GROUP)).unwrap();
        }
        mode(&path, 0o2770);
        path
    }

    pub fn run(&self, user: u32, umask: &str, store: &Path, settings: &[(&str, u64)]) -> String {
        self.run_in(GROUP, user, umask, store, settings)
    }

    /// What this user's program tells last.
    fn run_in(
        &self,
        group: u32,
        user: u32,
        umask: &str,
        store: &Path,
        settings: &[(&str, u64)],
    ) -> String {
        let mut command = Command::new("sh");
        let line = "umask $1; shift; exec setpriv --reuid $1 --regid $1 --groups $2 \"$3\" \
                    --exact child::job --nocapture --test-threads=1";
        command.args(["-c", line, "sh", umask, &user.to_string()]);
        command.arg(group.to_string()).arg(&self.program);
        command.env("XDG_CONFIG_HOME", self.dir.path());
        let mut worker = Worker::by(command, "member", store, settings);
        let told = worker.rest();
        told.last().unwrap().clone()
    }
}

pub fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// All in a folder, with its folders.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        }
        all.push(path);
    }
    all
}

pub fn segments(store: &Path) -> Vec<PathBuf> {
    let mut all = files(&store.join("entries"));
    all.sort();
    all
}

/// Files were the maker's alone, and a store whose owner had opened them was refused.
#[test]
fn members_find_what_each_other_saved_under_any_umask() {
    let Some(place) = Place::new("members_find_what_each_other_saved_under_any_umask") else {
        return;
    };
    for umask in UMASKS {
        let store = place.store();
        let run = |user, settings: &[_]| place.run(user, umask, &store, settings);
        assert_eq!(run(ANNA, &[("to", 3)]), "computed 3", "{umask}");
        assert_eq!(run(BERT, &[("to", 5)]), "computed 2", "{umask}");
        assert_eq!(run(ANNA, &[("to", 5)]), "computed 0", "{umask}");
        assert_eq!(
            run(BERT, &[("to", 5), ("reads", 1)]),
            "computed 0",
            "{umask}"
        );
        for path in files(&store) {
            let found = path.metadata().unwrap();
            let modes = [0o640, 0o2770];
            assert_eq!(
                found.mode() & 0o7777,
                modes[usize::from(path.is_dir())],
                "{path:?}"
            );
            assert_eq!(found.gid(), GROUP, "{path:?}");
        }
        let stranger = place.run_in(GROUP + 1, BERT, umask, &store, &[("to", 5)]);
        assert!(stranger.starts_with("refused: "), "{stranger}");
        fs::remove_dir_all(&store).unwrap();
    }
}

/// A store made in a folder of a group is that group's.
#[test]
fn a_store_in_a_groups_folder_is_the_groups() {
    let Some(place) = Place::new("a_store_in_a_groups_folder_is_the_groups") else {
        return;
    };
    let folder = place.dir.path().join("project");
    fs::create_dir(&folder).unwrap();
    chown(&folder, None, Some(GROUP)).unwrap();
    mode(&folder, 0o2770);
    let store = folder.join("runs/store");
    assert_eq!(place.run(ANNA, "077", &store, &[("to", 2)]), "computed 2");
    assert_eq!(place.run(BERT, "077", &store, &[("to", 2)]), "computed 0");
    // A folder that all can write to shares nothing.
    mode(&folder, 0o3777);
    let own = folder.join("own");
    assert_eq!(place.run(ANNA, "002", &own, &[("to", 2)]), "computed 2");
    assert_eq!(own.metadata().unwrap().mode() & 0o777, 0o700);
}

/// The owner of a file is the author of what is in it.
#[test]
fn each_member_makes_room_among_his_own_segments() {
    let Some(place) = Place::new("each_member_makes_room_among_his_own_segments") else {
        return;
    };
    let store = place.store();
    for user in [ANNA, BERT] {
        for to in 1..4 {
            let to = to + u64::from(user - ANNA) * 3;
            assert_eq!(place.run(user, "022", &store, &[("to", to)]), "computed 1");
        }
    }
    let owners = || {
        let of = |path: PathBuf| path.metadata().unwrap().uid();
        let mut owners: Vec<u32> = segments(&store).into_iter().map(of).collect();
        owners.sort_unstable();
        owners
    };
    assert_eq!(owners(), [ANNA, ANNA, ANNA, BERT, BERT, BERT]);
    let replaced = place.run(ANNA, "022", &store, &[("room", 1)]);
    assert_eq!(replaced, "replaced 3");
    assert_eq!(owners(), [ANNA, BERT, BERT, BERT]);
    assert_eq!(place.run(BERT, "022", &store, &[("room", 1)]), "replaced 3");
    assert_eq!(owners(), [ANNA, BERT]);
    assert_eq!(place.run(ANNA, "022", &store, &[("to", 6)]), "computed 0");
}

/// A colleague's results were computed again, without a word.
#[test]
fn what_a_member_may_not_read_is_told_when_the_store_is_opened() {
    let Some(place) = Place::new("what_a_member_may_not_read_is_told_when_the_store_is_opened")
    else {
        return;
    };
    let store = place.store();
    assert_eq!(place.run(ANNA, "022", &store, &[("to", 2)]), "computed 2");
    let hidden = segments(&store).remove(0);
    mode(&hidden, 0o600);
    let manifest = files(&store.join("manifests")).remove(0);
    for (path, kept) in [(&hidden, 0o640), (&manifest, 0o640)] {
        mode(path, 0o600);
        let told = place.run(BERT, "022", &store, &[("to", 2)]);
        says(
            &told,
            &format!("of its {:?}", path.strip_prefix(&store).unwrap().display()),
        );
        says(
            &told,
            &format!("owner, user {ANNA}, run `sde init --group`"),
        );
        mode(path, kept);
        mode(&hidden, 0o640);
    }
    mode(&store.join("entries"), 0o2700);
    let told = place.run(BERT, "022", &store, &[("to", 2)]);
    says(
        &told,
        &format!("of its \"entries\": you may not read it; have its owner, user {ANNA}"),
    );
    mode(&store.join("entries"), 0o2770);
    assert_eq!(place.run(BERT, "022", &store, &[("to", 2)]), "computed 0");
}

/// What a member saved in such a folder was closed to all others, and what he was at.
#[test]
fn a_folder_that_does_not_pass_the_group_on_is_refused() {
    let Some(place) = Place::new("a_folder_that_does_not_pass_the_group_on_is_refused") else {
        return;
    };
    let store = place.store();
    assert_eq!(place.run(ANNA, "022", &store, &[("to", 1)]), "computed 1");
    for ((name, umask), (group, bits)) in [
        (("entries", "002"), (GROUP, 0o770)),
        (("entries", "022"), (GROUP + 1, 0o2755)),
        (("work", "022"), (GROUP, 0o770)),
        (("work", "077"), (GROUP, 0o700)),
    ] {
        let folder = store.join(name);
        let _ = fs::create_dir(&folder);
        for settings in [&[("to", 2)][..], &[("to", 1), ("reads", 1)]] {
            chown(&folder, Some(ANNA), Some(group)).unwrap();
            mode(&folder, bits);
            let told = place.run(BERT, umask, &store, settings);
            says(
                &told,
                &format!("of its {name:?}: files made in it are closed to group"),
            );
            says(
                &told,
                &format!("owner, user {ANNA}, run `sde init --group`"),
            );
        }
        let shared = DirStore::share_with_group(&store, GROUP).unwrap();
        assert_eq!(shared.changed, 1);
        assert_eq!(place.run(BERT, umask, &store, &[("to", 1)]), "computed 0");
    }
}

#[test]
fn what_others_can_write_to_is_refused_in_a_groups_store() {
    let Some(place) = Place::new("what_others_can_write_to_is_refused_in_a_groups_store") else {
        return;
    };
    let store = place.store();
    assert_eq!(place.run(ANNA, "022", &store, &[("to", 2)]), "computed 2");
    let segment = segments(&store).remove(0);
    let refused = |why: &str| {
        let told = place.run(BERT, "022", &store, &[("to", 2)]);
        assert!(told.starts_with("refused: "), "{told}");
        says(&told, why);
    };
    for (path, right, wrong) in [
        (&segment, 0o640, 0o646),
        (&store.join("FORMAT"), 0o640, 0o642),
        (&store.join("entries"), 0o2770, 0o2772),
    ] {
        mode(path, wrong);
        refused("users outside the group can write to it");
        mode(path, right);
    }
    chown(&segment, None, Some(GROUP + 1)).unwrap();
    mode(&segment, 0o664);
    refused(&format!("group {} can write to it", GROUP + 1));
    // What another group only reads is no danger, as where the file system loses the group.
    mode(&segment, 0o644);
    assert_eq!(place.run(BERT, "022", &store, &[("to", 2)]), "computed 0");
    chown(&segment, None, Some(GROUP)).unwrap();
    // A link may lead anywhere.
    let aside = place.dir.path().join("aside");
    fs::rename(&segment, &aside).unwrap();
    symlink(&aside, &segment).unwrap();
    refused("it is a link");
    fs::remove_file(&segment).unwrap();
    fs::rename(&aside, &segment).unwrap();
    // The mode of the store is all that shares it.
    for mode_of_store in [0o770, 0o2750, 0o2777] {
        mode(&store, mode_of_store);
        refused("belongs to user");
    }
    mode(&store, 0o2770);
    fs::write(store.join("GROUP"), "all may write").unwrap();
    assert_eq!(place.run(BERT, "022", &store, &[("to", 2)]), "computed 0");
}

/// Somebody who shares a store must not give away a file of his that another member has named there.
#[test]
fn sharing_gives_the_group_what_the_user_owns() {
    let Some(place) = Place::new("sharing_gives_the_group_what_the_user_owns") else {
        return;
    };
    let store = place.dir.path().join("store");
    let own = Sde::builder()
        .store(DirStore::open(&store).unwrap())
        .save(SavePolicy::EveryResult)
        .build()
        .unwrap();
    page.call(&own, 1).unwrap();
    own.finish().unwrap();
    drop(own);
    let secret = place.dir.path().join("secret");
    fs::write(&secret, "a key").unwrap();
    mode(&secret, 0o600);
    let planted = store.join("entries/planted.sde");
    fs::hard_link(&secret, &planted).unwrap();

    let shared = DirStore::share_with_group(&store, GROUP).unwrap();
    assert!(shared.changed >= 5, "{shared:?}");
    assert!(shared.of_others.is_empty());
    assert_eq!(shared.linked, [planted.canonicalize().unwrap()]);
    let found = secret.metadata().unwrap();
    assert_eq!((found.mode() & 0o777, found.gid()), (0o600, 0));
    fs::remove_file(&planted).unwrap();
    assert_eq!(
        DirStore::share_with_group(&store, GROUP).unwrap().changed,
        0
    );
    assert_eq!(place.run(BERT, "022", &store, &[("to", 2)]), "computed 1");
}

/// A member can put a link in the place of any folder, and any file.
#[test]
fn sharing_follows_no_link() {
    let Some(place) = Place::new("sharing_follows_no_link") else {
        return;
    };
    let store = place.store();
    assert_eq!(place.run(ANNA, "022", &store, &[("to", 1)]), "computed 1");
    let private = place.dir.path().join("private");
    fs::create_dir(&private).unwrap();
    let secret = private.join("secret.sde");
    fs::write(&secret, "a key").unwrap();
    mode(&secret, 0o600);
    for (name, target) in [
        ("entries", &private),
        ("manifests", &private),
        ("work", &private),
        ("entries/link.sde", &secret),
    ] {
        let (link, aside) = (store.join(name), place.dir.path().join("aside"));
        let moved = link.exists().then(|| fs::rename(&link, &aside).unwrap());
        symlink(target, &link).unwrap();
        let refused = DirStore::share_with_group(&store, GROUP).unwrap_err();
        says(
            &refused.to_string(),
            &format!("of its {name:?}: it is a link"),
        );
        fs::remove_file(&link).unwrap();
        moved.inspect(|()| fs::rename(&aside, &link).unwrap());
        let found = secret.metadata().unwrap();
        assert_eq!((found.mode() & 0o777, found.gid()), (0o600, 0), "{name}");
        assert_eq!(private.metadata().unwrap().gid(), 0, "{name}");
    }
    DirStore::share_with_group(&store, GROUP).unwrap();
}

/// A member of a group gives others values, and code only to those who say so.
#[test]
fn what_would_be_run_counts_only_if_its_author_is_trusted() {
    let Some(place) = Place::new("what_would_be_run_counts_only_if_its_author_is_trusted") else {
        return;
    };
    let store = place.store();
    assert_eq!(place.run(ANNA, "022", &store, &[("to", 2)]), "computed 2");
    let runs = || place.run(BERT, "022", &store, &[("to", 2), ("runs", 1), ("reads", 1)]);
    assert_eq!(runs(), "computed 2");
    // Nothing in the store trusts anybody.
    fs::write(store.join("trusted"), format!("{ANNA}\n")).unwrap();
    assert_eq!(runs(), "computed 2");

    let folder = place.dir.path().join("sde");
    let list = folder.join("trusted");
    fs::create_dir(&folder).unwrap();
    fs::write(&list, format!("{ANNA}\n")).unwrap();
    for (path, bits) in [(&folder, 0o755), (&list, 0o644)] {
        chown(path, Some(BERT), None).unwrap();
        mode(path, bits);
    }
    assert_eq!(runs(), "computed 0");
    // Whoever can write to the file may be its author.
    let segment = segments(&store).remove(0);
    mode(&segment, 0o660);
    assert_eq!(runs(), "computed 2");
    mode(&segment, 0o640);
    // A file of another user that has Anna's name counts as the other's.
    chown(&segment, Some(BERT + 1), None).unwrap();
    assert_eq!(runs(), "computed 2");
    chown(&segment, Some(ANNA), None).unwrap();
    assert_eq!(runs(), "computed 0");
    // Who could have written the list?
    for (path, right, wrong) in [(&list, 0o644, 0o664), (&folder, 0o755, 0o777)] {
        mode(path, wrong);
        says(&runs(), "others can change it or its folder");
        mode(path, right);
    }
    chown(&list, Some(ANNA), None).unwrap();
    says(&runs(), "others can change it or its folder");
    fs::remove_file(&list).unwrap();
    assert_eq!(runs(), "computed 2");
}

/// Found by an attack: a member's result named a file of the reader's, who had it written.
#[test]
fn a_file_of_another_users_result_is_never_put_back() {
    if !rustix::process::geteuid().is_root() {
        return println!(
            "skipped a_file_of_another_users_result_is_never_put_back: only the administrator can give files away"
        );
    }
    let place = output_files::Place::new();
    assert_eq!(place.call("file", "text"), 1);
    for file in fs::read_dir(place.store().join("entries")).unwrap() {
        chown(file.unwrap().path(), Some(BERT), None).unwrap();
    }
    let file = place.file("file");
    let computed = || {
        let store = StoreOptions::new().trust_others().read_only();
        let store = store.open(place.store()).unwrap();
        let sde = Sde::builder().store(store).build().unwrap();
        report.call(&sde, &file, "text").unwrap();
        sde.stats().total.computed
    };
    assert_eq!(computed(), 0, "it is in its place");
    fs::write(&file, "another").unwrap();
    assert_eq!(computed(), 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
}
