//! Processes that the system gives less than they ask for.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Uid, geteuid, getrlimit, set_dumpable_behavior, setrlimit,
};
use sde::{Archiver, Batch, Codec, ErasedValue, Key, SavePolicy, SavedScratch, Selection};
use sde_archives::vfs::{Disk, Vfs};
use sde_archives::{DirStore, Options};
use serde::{Deserialize, Serialize, Serializer};
use tempfile::tempdir;

use super::apps::{engine, expected_page, fresh, page};
use super::child::{Worker, tell};

/// A part of a save is as long.
const PART: u64 = 4096;

/// Where it is saved.
static STORE: OnceLock<DirStore> = OnceLock::new();

/// Fills a part. What happens while it is encoded.
#[derive(Deserialize)]
enum State {
    /// The system gives no more memory, and so no thread.
    NoThread,
    /// It does again; and a save of another thread fails.
    FailedSave,
    Nothing,
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::NoThread => allow(Some(1)),
            Self::FailedSave => {
                allow(getrlimit(Resource::As).maximum);
                let store = STORE.get().unwrap();
                segments(store.path(), "scratch")
                    .iter()
                    .for_each(|path| std::fs::remove_file(path).unwrap());
                store.save(&batch([(9, Self::Nothing)])).unwrap_err();
            }
            Self::Nothing => {}
        }
        to.collect_seq([u64::MAX; PART as usize / 8])
    }
}

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

fn key(number: u8) -> Key {
    Key::from_bytes([number; 32])
}

fn batch(states: impl IntoIterator<Item = (u8, State)>) -> Batch {
    let states = states.into_iter().map(|(number, value)| SavedScratch {
        app: "Unfinished".into(),
        key: key(number),
        value: ErasedValue::new(value),
        codec: Codec::of::<State>(),
    });
    Batch {
        selection: Selection::Checkpoint,
        entries: Vec::new(),
        scratch: states.collect(),
        marks: Vec::new(),
    }
}

/// Tells of which states a store that is opened anew lacks although they were acknowledged.
pub fn save_without_a_thread(dir: &Path) {
    let store = Options::new().segment_size(PART).open(dir).unwrap();
    let store = STORE.get_or_init(|| store);
    let states = [State::NoThread, State::FailedSave, State::Nothing];
    // The memory for what is small is there by then.
    drop([const { [0_u8; 1024] }; 64].map(Box::new));
    let saved = store.save(&batch((0..).zip(states)));
    let later = DirStore::open_read_only(dir).unwrap();
    let is_lost = |number: &u8| later.find_scratch(&key(*number)).unwrap().is_none();
    let lost: Vec<u8> = (0..3).filter(|_| saved.is_ok()).filter(is_lost).collect();
    tell(format_args!("lost: {lost:?}"));
}

/// Found by reading: the system had no thread for the first part of a save, and one for the second. The
/// notes of the first were discarded: after a save of another thread had failed in between, it was
/// acknowledged, and was nowhere.
#[test]
fn the_first_part_is_not_forgotten_when_there_is_no_thread_for_it() {
    let dir = tempdir().unwrap();
    let told = Worker::start("no thread", dir.path(), &[]).rest();
    assert_eq!(told, ["lost: []"]);
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
    let sde = sde::Sde::builder().store(store).build().unwrap();
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
