//! What it costs that many ranks save together: files, listings, bytes and messages.
//!
//! Ten thousand ranks are not to be had, and not needed: between the messages each rank
//! does something by itself. Here all of them do it one after the other, with the code that writes
//! real segments and manifests, on a hundred ranks for each node, and what they would send is counted.

#![allow(clippy::print_stdout, reason = "the table is for a person")]

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::{
    Archiver, Batch, Codec, ErasedValue, Key, MemoryArchiver, Record, SavedEntry, SavedScratch,
    Sde, Selection, Tag, Tags, inputs,
};

use super::journal::Handed;
use super::open::{begin, for_others, look};
use super::parts::Parts;
use super::rewrite::Report;
use crate::format::id::UniqueId;
use crate::store::DirStore;
use crate::store::options::Options;
use crate::vfs::{Disk, Found, Site, Vfs, VfsFile};

/// How many ranks share a node.
const RANKS_OF_A_NODE: usize = 100;

/// A disk that counts what is asked of the shared part, and does not sync: nobody pulls the plug.
#[derive(Debug, Default)]
struct Counting {
    shared: PathBuf,
    counted: Mutex<Counted>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    listings: usize,
    opens: usize,
    files: usize,
    most_files: usize,
}

impl Counting {
    fn count(&self, path: &Path, count: impl FnOnce(&mut Counted)) {
        if path.starts_with(&self.shared) {
            let mut counted = self.counted.lock().unwrap();
            count(&mut counted);
            counted.most_files = counted.most_files.max(counted.files);
        }
    }

    fn take(&self) -> Counted {
        let mut counted = self.counted.lock().unwrap();
        let taken = *counted;
        *counted = Counted {
            files: taken.files,
            most_files: taken.files,
            ..Counted::default()
        };
        taken
    }
}

/// A file whose syncs do nothing.
struct Unsynced(Box<dyn VfsFile>);

impl VfsFile for Unsynced {
    fn write_at(&mut self, slices: &[&[u8]], at: u64) -> io::Result<()> {
        self.0.write_at(slices, at)
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.cut(length)
    }
    fn sync_for(&mut self, _: Site) -> io::Result<()> {
        Ok(())
    }
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_at(buffer, at)
    }
    fn read_up_to(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_up_to(buffer, at)
    }
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
    fn lock_while_open(&self) {
        self.0.lock_while_open();
    }
}

impl Vfs for Counting {
    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        Disk.look(path)
    }
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Disk.real_path(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.count(dir, |counted| counted.listings += 1);
        Disk.list(dir)
    }
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.make_dir(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let file = Disk.create(path)?;
        self.count(path, |counted| counted.files += 1);
        Ok(Box::new(Unsynced(file)))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.count(path, |counted| counted.opens += 1);
        Ok(Box::new(Unsynced(Disk.open(path)?)))
    }
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.publish(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)?;
        self.count(path, |counted| counted.files -= 1);
        Ok(())
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.remove_dir(dir)
    }
    fn sync_dir_for(&self, _: &Path, _: Site) -> io::Result<()> {
        Ok(())
    }
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        Disk.try_lock(path)
    }
}

/// A machine on which jobs run one after the other.
struct Machine {
    dir: tempfile::TempDir,
    vfs: Arc<Counting>,
    ranks: usize,
    local: bool,
}

/// What was sent, besides what is in files.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// How many operations of all ranks.
    rounds: usize,
    /// How many bytes each rank gets.
    each: usize,
}

impl Sent {
    /// What all ranks say is sent to all.
    fn share<'a>(&mut self, said: impl Iterator<Item = &'a Vec<u8>>) {
        let lengths: Vec<_> = said.map(Vec::len).collect();
        let bytes: usize = lengths.iter().sum();
        // The lengths, and the rest if there is any.
        self.rounds += 1 + usize::from(bytes > 0);
        self.each += 8 * lengths.len() + bytes;
    }
}

/// What one job costs.
#[derive(Clone, Copy, Debug)]
struct Cost {
    opening: (Counted, Sent),
    /// While ranks save, before they commit.
    saving: Counted,
    committing: (Counted, Sent),
    manifests: u64,
}

impl Cost {
    /// How many files were in the store at most.
    fn most_files(&self) -> usize {
        self.saving.most_files.max(self.committing.0.most_files)
    }
}

impl Machine {
    fn new(ranks: usize, local: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let vfs = Counting {
            shared: dir.path().join("store"),
            ..Counting::default()
        };
        Self {
            vfs: Arc::new(vfs),
            dir,
            ranks,
            local,
        }
    }

    fn options(&self, rank: usize) -> Options {
        let options = Options::new()
            .vfs(Arc::clone(&self.vfs) as _)
            .grace(Duration::ZERO);
        let disk = self
            .dir
            .path()
            .join(format!("disk {}", rank / RANKS_OF_A_NODE));
        match self.local {
            true => options.local(disk),
            false => options,
        }
    }

    /// A job whose ranks each save some runs that nobody has made before.
    fn job(&self, number: u64) -> Cost {
        self.vfs.take();
        let (stores, opened) = self.open();
        let opening = (self.vfs.take(), opened);
        let record = record();
        let parts = self.parts();
        // A rank at a time, as if all had saved before the first of them seals.
        let mut most = Counted::default();
        let mut mine = Vec::new();
        for (rank, store) in stores.iter().enumerate() {
            let key = number * self.ranks as u64 + rank as u64;
            store.save(&batch(&record, key)).unwrap();
            let team = store.0.team.get().unwrap();
            mine.push(Handed {
                own: store.hand_over(team),
                left_over: store.left_over(team),
            });
            most = *self.vfs.counted.lock().unwrap();
        }
        self.vfs.take();
        let sent = self.commit(&stores, &parts, &mine);
        let committing = (self.vfs.take(), sent);
        let manifests = std::fs::read_dir(self.vfs.shared.join("manifests")).unwrap();
        let lengths = manifests.map(|file| file.unwrap().metadata().unwrap().len());
        Cost {
            opening,
            saving: most,
            committing,
            manifests: lengths.sum(),
        }
    }

    fn parts(&self) -> Parts {
        let nodes = (0..self.ranks).map(|rank| rank / RANKS_OF_A_NODE);
        let most = if self.local {
            usize::MAX
        } else {
            self.options(0).writers
        };
        Parts::new(nodes.collect(), most)
    }

    fn open(&self) -> (Vec<DirStore>, Sent) {
        let mut sent = Sent::default();
        let told = look(&self.options(0), &self.vfs.shared).unwrap();
        let empty = vec![0];
        let others = std::iter::repeat_n(&empty, self.ranks - 1);
        sent.share(std::iter::once(&told).chain(others));
        let open = |rank| begin(self.options(rank), &self.vfs.shared, &told).unwrap();
        // What all know is kept once here; on a machine each has its own.
        let nothing = super::listing::Listing::default();
        let nothing = crate::cbor::metadata::to_bytes(&nothing).unwrap();
        let open_another = |rank| begin(self.options(rank), &self.vfs.shared, &nothing).unwrap();
        let stores: Vec<_> = (0..self.ranks)
            .map(|rank| {
                if rank == 0 {
                    open(rank)
                } else {
                    open_another(rank)
                }
            })
            .collect();
        let writer = |store: &DirStore| store.0.writer.config().writer();
        let writers: Vec<Vec<u8>> = stores
            .iter()
            .map(|one| [&[0], &writer(one).0[..], &super::open::short("")].concat())
            .collect();
        sent.share(writers.iter());
        let writers = stores.iter().map(writer);
        let writers: HashSet<UniqueId> = writers.flat_map(|id| [id, for_others(&id)]).collect();
        let writers = Arc::new(writers);
        let parts = Arc::new(self.parts());
        for (rank, store) in stores.iter().enumerate() {
            store.join(rank, Arc::clone(&parts), Arc::clone(&writers));
        }
        (stores, sent)
    }

    fn commit(&self, stores: &[DirStore], parts: &Parts, mine: &[Handed]) -> Sent {
        let mut sent = Sent::default();
        let handed: Vec<_> = mine.iter().map(Handed::to_bytes).collect();
        sent.share(handed.iter());
        let handed: Vec<_> = handed.iter().map(|one| Handed::read(one)).collect();
        let team = |rank: usize| stores[rank].0.team.get().unwrap();
        team(0).note_handed(&handed);
        let mut said = vec![Vec::new(); stores.len()];
        for writer in 0..parts.writers() {
            let rank = parts.rank_of(writer);
            said[rank] = stores[rank].write_for_others(team(rank), &handed).bytes();
        }
        sent.share(said.iter());
        let reports: Vec<_> = said.iter().map(|one| Report::read(one)).collect();
        assert!(
            reports.iter().all(|report| report.error.is_none()),
            "{:?}",
            reports[0].error
        );
        let taken: HashSet<UniqueId> = reports.iter().flat_map(Report::taken).collect();
        let verdict = stores[0].take_in(team(0), &handed[0].left_over, reports, &taken);
        assert_eq!(verdict, "");
        sent.share(said.iter().map(|_| &EMPTY));
        let all = handed.iter().map(|one| one.own.len() + one.left_over.len());
        assert_eq!(taken.len(), all.sum::<usize>());
        for (rank, store) in stores.iter().enumerate() {
            store.let_go(team(rank), &mine[rank].own, &handed[0].left_over, &taken);
        }
        sent
    }
}

static EMPTY: Vec<u8> = Vec::new();

#[sde::app(name = "model.run")]
fn run(x: u64) -> u64 {
    x
}

/// A record as the engine makes it.
fn record() -> Record {
    let sde = Sde::builder().store(MemoryArchiver::new()).build().unwrap();
    sde.run(&run, &inputs! { x: 1_u64 }).unwrap();
    sde.records().remove(0)
}

fn key(number: u64) -> Key {
    Key::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}

/// A run with a result and an intermediate, and the state of one that is not finished.
fn batch(record: &Record, number: u64) -> Batch {
    let mut record = record.clone();
    record.key = key(2 * number);
    record.run.number = number;
    let value = || Some((ErasedValue::new(number), Codec::of::<u64>()));
    let intermediate = Tags::NONE.with(Tag::Intermediate);
    Batch {
        selection: Selection::Checkpoint,
        entries: vec![SavedEntry::new(
            record,
            Selection::Checkpoint,
            [
                ("value", Tags::NONE, value()),
                ("rest", intermediate, value()),
            ],
        )],
        scratch: vec![SavedScratch {
            app: "model.unfinished".into(),
            key: key(2 * number + 1),
            value: ErasedValue::new(number),
            codec: Codec::of::<u64>(),
        }],
        marks: Vec::new(),
    }
}

/// All that was saved is there, for a program that opens the store in the ordinary way.
fn all_is_there(machine: &Machine, jobs: u64) {
    let store = DirStore::open(&machine.vfs.shared).unwrap();
    let saved = jobs * machine.ranks as u64;
    for number in (0..saved).step_by(1 + machine.ranks / 100) {
        let found = store.find(&key(2 * number)).unwrap().unwrap();
        assert!(found.results.iter().all(|result| result.payload.is_some()));
        assert!(store.find_scratch(&key(2 * number + 1)).unwrap().is_some());
    }
}

fn kib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1024.0)
}

/// Jobs one after the other; gives what the last of them cost.
fn jobs(ranks: usize, local: bool, jobs: u64) -> Cost {
    let machine = Machine::new(ranks, local);
    let mut last = None;
    for number in 0..jobs {
        let cost = machine.job(number);
        all_is_there(&machine, number + 1);
        // Three folders, each listed once, by one rank; and that of the manifests once to commit.
        assert_eq!(cost.opening.0.listings, 3, "{cost:?}");
        assert!(cost.committing.0.listings <= 1, "{cost:?}");
        assert!(cost.committing.0.files <= 256, "{cost:?}");
        assert!(cost.most_files() <= 256 || !local, "{cost:?}");
        last = Some(cost);
    }
    last.unwrap()
}

#[test]
fn ten_thousand_ranks_leave_few_files_and_one_of_them_lists() {
    jobs(10_000, true, 1);
}

/// What jobs that come one after the other leave does not add up.
#[test]
fn many_jobs_leave_no_more_files_than_a_few() {
    let after_six = jobs(200, true, 6).committing.0.files;
    let after_twelve = jobs(200, true, 12).committing.0.files;
    assert!(
        after_twelve <= after_six + 12,
        "{after_six}, then {after_twelve}"
    );
}

#[test]
#[ignore = "long: it makes the table of docs/scaling.md"]
fn the_table() {
    for ranks in [1, 10, 100, 1_000, 10_000] {
        let (shared, local) = (jobs(ranks, false, 1), jobs(ranks, true, 3));
        let ((opened, opening), (committed, committing)) = (local.opening, local.committing);
        println!(
            "| {ranks} | {} | {} | {} | {} | {}, {} | {} | {}, {} | {}, {} |",
            ranks.div_ceil(RANKS_OF_A_NODE),
            shared.most_files(),
            local.most_files(),
            committed.files,
            opened.listings,
            committed.listings,
            kib(local.manifests),
            opening.rounds,
            committing.rounds,
            kib(opening.each as u64),
            kib(committing.each as u64),
        );
    }
}
