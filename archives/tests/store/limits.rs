//! Processes that the system gives less than they ask for.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Uid, geteuid, getrlimit, set_dumpable_behavior, setrlimit,
};
use sde::SavePolicy;
use sde_archives::DirStore;
use sde_archives::vfs::{Disk, Vfs};
use tempfile::tempdir;

use super::apps::{engine, expected_page, fresh, page};
use super::child::{Worker, tell};

/// How much address space this process may have.
fn allow(bytes: Option<u64>) {
    let old = getrlimit(Resource::As);
    let new = Rlimit {
        current: bytes,
        ..old
    };
    setrlimit(Resource::As, new).unwrap();
}

fn segments(store: &Path, folder: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(store.join(folder)).unwrap();
    names.map(|name| name.unwrap().path()).collect()
}

/// Saves in parts. Tells how many results an engine that is begun anew computes.
pub fn save_without_a_thread(dir: &Path) {
    std::thread::Builder::new().spawn(|| {}).unwrap_err();
    let (sde, _) = engine(dir, SavePolicy::OnRequest);
    (0..1000).for_each(|number| drop(page.call(&sde, number).unwrap()));
    sde.checkpoint().unwrap();
    let (later, _) = engine(dir, SavePolicy::OnRequest);
    (0..1000).for_each(|number| drop(page.call(&later, number).unwrap()));
    tell(format_args!("computed {}", later.stats().total.computed));
}

#[test]
fn all_is_saved_where_the_system_has_no_thread_to_give() {
    let dir = tempdir().unwrap();
    let no_stack_is_so_large = ("RUST_MIN_STACK", 1 << 50);
    let told = Worker::start("no thread", dir.path(), &[no_stack_is_so_large]).rest();
    assert_eq!(told, ["computed 0"]);
}

/// A frame with no more than a body of this beginning, whatever it says of its length.
fn frame(segment: &[u8], at: u64, kind: u8, body: &[u8], length: u32) -> Vec<u8> {
    let mut frame = vec![0; 66];
    frame[..4].copy_from_slice(b"SDEf");
    frame[20] = kind;
    frame[22..26].copy_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(body);
    let mut bound = [0; 32];
    bound[..16].copy_from_slice(&segment[16..32]);
    bound[16..24].copy_from_slice(&at.to_le_bytes());
    let check = blake3::keyed_hash(&bound, &frame[20..]);
    frame[4..20].copy_from_slice(&check.as_bytes()[..16]);
    frame
}

/// Appends to a segment that is not sealed a frame that says that it has 4 GiB of metadata: a hole.
fn say_long_metadata(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let at = bytes.len() as u64;
    let frame = frame(&bytes, at, 1, b"", u32::MAX);
    file.write_all_at(&frame, at).unwrap();
    file.set_len(at + 66 + (1 << 32)).unwrap();
}

/// Has the index of a segment say that it has 4 GiB of rows: a hole.
fn say_long_index(path: &Path) {
    const ROWS: u64 = (1 << 32) / 24;
    let bytes = std::fs::read(path).unwrap();
    let end = bytes.len() - 32;
    let at = u64::from_le_bytes(bytes[end + 8..end + 16].try_into().unwrap());
    let mut text = Vec::new();
    ciborium::into_writer(&(ROWS, 0), &mut text).unwrap();
    let frame = frame(&bytes, at, 4, &text, u32::MAX);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(at).unwrap();
    file.write_all_at(&frame, at).unwrap();
    file.write_all_at(&bytes[end..], at + 66 + u64::from(u32::MAX))
        .unwrap();
}

/// Tells how many pages are loaded with 256 MiB more than the program has to begin with.
pub fn load_with_little_memory(dir: &Path) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    allow(Some(4096 * pages + (256 << 20)));
    let store = DirStore::open_read_only(dir).unwrap();
    let sde = sde::Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    for number in 0..4 {
        assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
    }
    tell(format_args!("computed {}", sde.stats().total.computed));
    std::mem::forget(sde);
}

/// Found by hostile use: 44 kB on the disk took 4.1 GiB, since a frame was believed how long its metadata
/// is. Where memory is limited all of the segment was lost to the run.
#[test]
fn what_a_frame_says_of_its_length_is_not_believed() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    (0..2).for_each(|number| drop(page.call(&sde, number).unwrap()));
    drop(sde);
    let sealed = segments(dir.path(), "entries").remove(0);
    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    (2..4).for_each(|number| drop(page.call(&sde, number).unwrap()));
    std::mem::forget(sde);
    let mut open = segments(dir.path(), "entries");
    open.retain(|path| *path != sealed);
    let whole = [&sealed, &open[0]].map(|path| std::fs::read(path).unwrap());
    let load = || Worker::start("little memory", dir.path(), &[]).rest();
    assert_eq!(load(), ["computed 0"]);
    say_long_metadata(&open[0]);
    assert_eq!(load(), ["computed 0"]);
    std::fs::write(&open[0], &whole[1]).unwrap();
    say_long_index(&sealed);
    assert_eq!(load(), ["computed 0"]);
}

/// Tells whether the medium knows who owns what this process makes; what is in `/proc` of it is root's.
pub fn tell_the_user() {
    match geteuid().is_root() {
        // Of this thread alone.
        true => rustix::thread::set_thread_uid(Uid::from_raw(65_534)).unwrap(),
        false => set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap(),
    }
    let owner = tempfile::tempfile().unwrap().metadata().unwrap().uid();
    tell(format_args!("{}", Disk.user() == Some(owner)));
}

/// Found by reading: the owner of `/proc/self` was taken for the user. That is root where a process can't be
/// dumped, and then a user's own store was refused.
#[test]
fn the_user_is_who_owns_what_a_process_makes() {
    let dir = tempdir().unwrap();
    let told = Worker::start("user", dir.path(), &[]).rest();
    assert_eq!(told, ["true"]);
}
