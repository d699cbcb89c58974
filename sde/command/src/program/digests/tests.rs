use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

/// A cache, a file in it whose digest was kept, and a time at which that file has settled.
struct Kept {
    folder: TempDir,
    digests: Digests,
    file: PathBuf,
    later: SystemTime,
    digest: Digest,
}

fn cache_in(folder: &TempDir, rehash: bool) -> Digests {
    Digests::in_folder(Some(folder.path().join("cache/sde/digests")), rehash)
}

impl Kept {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let digests = cache_in(&folder, false);
        let file = folder.path().join("file");
        fs::write(&file, "before").unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        let digest = digests.of_at(&file, later).unwrap();
        Self {
            folder,
            digests,
            file,
            later,
            digest,
        }
    }

    fn entries(&self) -> Vec<PathBuf> {
        let list = fs::read_dir(self.digests.folder.as_ref().unwrap()).unwrap();
        list.map(|entry| entry.unwrap().path()).collect()
    }

    fn entry(&self) -> PathBuf {
        let [entry] = <[PathBuf; 1]>::try_from(self.entries()).unwrap();
        entry
    }

    /// Makes the cache lie, which tells whether it was asked.
    fn plant(&self) -> Digest {
        let lie = Digest::from([7; 32]);
        fs::write(self.entry(), lie.to_string()).unwrap();
        lie
    }

    fn of_later(&self) -> Digest {
        self.digests.of_at(&self.file, self.later).unwrap()
    }
}

fn blake3_of(text: &str) -> Digest {
    Digest::from(*blake3::hash(text.as_bytes()).as_bytes())
}

#[test]
fn digest_is_plain_blake3() {
    assert_eq!(Kept::new().digest, blake3_of("before"));
}

#[test]
fn kept_digest_is_used_and_rehash_replaces_it() {
    let kept = Kept::new();
    let lie = kept.plant();
    assert_eq!(kept.of_later(), lie);
    let rehash = cache_in(&kept.folder, true);
    assert_eq!(rehash.of_at(&kept.file, kept.later).unwrap(), kept.digest);
    assert_eq!(kept.of_later(), kept.digest);
}

#[test]
fn changed_content_with_the_old_mtime_is_read() {
    let kept = Kept::new();
    let before = kept.file.metadata().unwrap();
    // Until the clock of the file system has moved on.
    while kept.file.metadata().unwrap().ctime_nsec() == before.ctime_nsec() {
        fs::write(&kept.file, "behind").unwrap();
        let file = File::options().write(true).open(&kept.file).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }
    let after = kept.file.metadata().unwrap();
    assert_eq!(
        (after.len(), after.mtime_nsec()),
        (before.len(), before.mtime_nsec())
    );
    assert_eq!(kept.of_later(), blake3_of("behind"));
}

#[test]
fn replaced_file_of_the_same_size_is_read() {
    let kept = Kept::new();
    let new = kept.folder.path().join("new");
    fs::write(&new, "behind").unwrap();
    let file = File::options().write(true).open(&new).unwrap();
    file.set_modified(kept.file.metadata().unwrap().modified().unwrap())
        .unwrap();
    fs::rename(&new, &kept.file).unwrap();
    assert_eq!(kept.of_later(), blake3_of("behind"));
}

#[test]
fn inode_alone_tells_files_apart() {
    let times = |state: &Metadata| {
        (
            state.ctime(),
            state.ctime_nsec(),
            state.mtime(),
            state.mtime_nsec(),
        )
    };
    for _ in 0..1000 {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        for path in &paths {
            fs::write(path, "text").unwrap();
        }
        let [one, other] = paths.map(|path| path.metadata().unwrap());
        // Made in one tick of the clock.
        if times(&one) == times(&other) {
            assert_ne!(identity(&one), identity(&other));
            return;
        }
    }
    println!("not tested: the clock of this file system is too fine");
}

#[test]
fn recent_file_is_neither_kept_nor_looked_up() {
    let kept = Kept::new();
    let lie = kept.plant();
    let changed = kept.file.metadata().unwrap();
    let changed =
        SystemTime::UNIX_EPOCH + Duration::new(changed.ctime() as u64, changed.ctime_nsec() as u32);
    let at = |now| kept.digests.of_at(&kept.file, now).unwrap();
    let almost = SETTLES - Duration::from_nanos(1);
    assert_eq!(at(changed + almost), kept.digest);
    // The clock went back.
    assert_eq!(at(changed - Duration::from_secs(9)), kept.digest);
    assert_eq!(at(changed + SETTLES), lie);

    fs::remove_file(kept.entry()).unwrap();
    at(changed + almost);
    at(changed - Duration::from_secs(9));
    assert!(kept.entries().is_empty());
}

#[test]
fn ctime_of_whole_seconds_is_never_trusted() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    assert!(is_settled(10, 1, now));
    assert!(!is_settled(10, 0, now));
    assert!(!is_settled(-10, 1, now));
    assert!(!is_settled(i64::MAX, 1, now));
}

#[test]
fn damaged_entry_is_ignored_and_mended() {
    let kept = Kept::new();
    let lie = Digest::from([7; 32]).to_string();
    let long = format!("{lie}0");
    for damaged in [
        "",
        &lie[..63],
        &long,
        &lie.replacen('0', "x", 1),
        "\u{fffd}",
    ] {
        fs::write(kept.entry(), damaged).unwrap();
        assert_eq!(kept.of_later(), kept.digest, "{damaged:?}");
        assert_eq!(
            fs::read_to_string(kept.entry()).unwrap(),
            kept.digest.to_string()
        );
    }
    fs::write(kept.entry(), b"\xff\xfe").unwrap();
    assert_eq!(kept.of_later(), kept.digest);
}

#[test]
fn entry_that_others_can_write_is_ignored() {
    let kept = Kept::new();
    kept.plant();
    fs::set_permissions(kept.entry(), fs::Permissions::from_mode(0o620)).unwrap();
    assert_eq!(kept.of_later(), kept.digest);
}

#[test]
fn entry_that_is_a_link_or_a_pipe_is_ignored() {
    let kept = Kept::new();
    let elsewhere = kept.folder.path().join("elsewhere");
    kept.plant();
    let entry = kept.entry();
    fs::rename(&entry, &elsewhere).unwrap();
    symlink(&elsewhere, &entry).unwrap();
    assert_eq!(kept.of_later(), kept.digest);
    // It was replaced, not followed.
    assert!(entry.symlink_metadata().unwrap().is_file());
    fs::remove_file(&entry).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &entry,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    assert_eq!(kept.of_later(), kept.digest);
}

#[test]
fn folder_is_private_and_another_is_not_used() {
    let kept = Kept::new();
    let folder = kept.digests.folder.clone().unwrap();
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(cache_in(&kept.folder, false).folder.is_none());
    fs::remove_dir_all(&folder).unwrap();
    symlink(kept.folder.path(), &folder).unwrap();
    assert!(cache_in(&kept.folder, false).folder.is_none());
    // What has no cache is hashed.
    assert_eq!(
        cache_in(&kept.folder, false)
            .of_at(&kept.file, kept.later)
            .unwrap(),
        kept.digest
    );
}

#[test]
fn folder_that_went_away_costs_only_time() {
    let kept = Kept::new();
    fs::remove_dir_all(kept.digests.folder.as_ref().unwrap()).unwrap();
    assert_eq!(kept.of_later(), kept.digest);
}

#[test]
fn only_regular_files_have_digests() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let digests = cache_in(&folder, false);
    for path in [&pipe, folder.path(), Path::new("/dev/null")] {
        assert_eq!(
            digests.of(path).unwrap_err().kind(),
            io::ErrorKind::InvalidInput,
            "{path:?}"
        );
    }
}

#[test]
fn file_that_changes_while_it_is_read_is_read_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    let grow = || writeln!(File::options().append(true).open(&path).unwrap(), "more").unwrap();
    let mut reads = 0;
    let (read, _) = unchanged(&path, |_| {
        reads += 1;
        if reads == 1 {
            grow();
        }
        Ok(reads)
    })
    .unwrap();
    assert_eq!(read, 2);
    let always = unchanged(&path, |_| {
        grow();
        Ok(())
    });
    assert!(always.unwrap_err().to_string().contains("changes while"));
}
