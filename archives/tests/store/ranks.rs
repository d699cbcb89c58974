//! A store that ranks have opened together: few files, whoever saved what.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sde::ranks::{ProcessGroup, ThreadGroup};
use sde::{EventLog, SavePolicy, Sde};
use sde_archives::{Cbor, DirStore, StoreOptions};

#[sde::app(name = "store.ranks.wave", tags(intermediate))]
fn wave(x: u64) -> Vec<f64> {
    (0..x).map(|n| (n as f64).sin()).collect()
}

#[sde::app(name = "store.ranks.sum")]
fn sum(sde: &sde::Handle, x: u64) -> Result<f64, sde::Error> {
    Ok(wave.call(sde, x)?.iter().sum())
}

/// The names of all files in a directory and beneath it.
fn files(dir: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => drop(files.insert(path)),
        }
    }
    files
}

/// Ranks as threads, on nodes as given, each node with a disk of its own if asked for.
struct Machine {
    dir: tempfile::TempDir,
    local: bool,
    writers: usize,
    segment_size: u64,
}

impl Machine {
    fn new(local: bool) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            local,
            writers: 2,
            segment_size: 256 << 20,
        }
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn disk(&self, node: usize) -> PathBuf {
        self.dir.path().join(format!("disk {node}"))
    }

    fn open(&self, group: &dyn ProcessGroup) -> DirStore {
        let mut options = StoreOptions::new().writers(self.writers);
        options = options.segment_size(self.segment_size);
        if self.local {
            options = options.local(self.disk(group.nodes()[group.rank()]));
        }
        options.open_together(self.store(), group).unwrap()
    }

    fn run<R: Send>(
        &self,
        nodes: &[usize],
        program: impl Fn(&Sde, &EventLog) -> R + Sync,
    ) -> Vec<R> {
        let program = &program;
        let groups = ThreadGroup::on_nodes(nodes.to_vec());
        std::thread::scope(|scope| {
            let ranks: Vec<_> = groups
                .into_iter()
                .map(|group| {
                    scope.spawn(move || {
                        let log = EventLog::new();
                        let builder = Sde::builder()
                            .observer(log.clone())
                            .store(self.open(&group))
                            .save(SavePolicy::OnRequest);
                        let builder = builder.save(SavePolicy::EveryResult);
                        let sde = builder.process_group(group, Cbor).build().unwrap();
                        program(&sde, &log)
                    })
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }
}

/// Seven ranks on four nodes, of which two have a writer.
const NODES: &[usize] = &[0, 0, 1, 1, 2, 3, 3];

#[test]
fn few_files_hold_what_many_ranks_have_saved() {
    for local in [false, true] {
        let machine = Machine::new(local);
        machine.run(NODES, |sde, _| {
            let rank = sde.rank().unwrap() as u64;
            for round in 0..3 {
                sum.call(sde, 10 * rank + round).unwrap();
                sde.checkpoint_all().unwrap();
                // What is cleaned is found where it is now.
                sde.clear_app("store.ranks.sum").unwrap();
                sum.call(sde, 10 * rank).unwrap();
            }
            assert_eq!(sde.stats().total.computed, 6);
            sde.finish().unwrap();
        });
        let left = files(&machine.store());
        // Two writers with two classes, two generations of each lineage, and FORMAT.
        assert!(left.len() <= 2 * 2 + 3 + 1, "{left:#?}");
        for node in 0..4 {
            let left = files(&machine.disk(node));
            assert!(left.iter().all(|path| path.ends_with("FORMAT")), "{left:?}");
        }
        // Any program has all of it, opened in whatever way.
        let alone = Sde::builder()
            .store(DirStore::open(machine.store()).unwrap())
            .save(SavePolicy::OnRequest);
        let alone = alone.build().unwrap();
        let load = |sde: &Sde| {
            for x in (0..7).flat_map(|rank| (0..3).map(move |round| 10 * rank + round)) {
                sum.call(sde, x).unwrap();
                wave.call(sde, x).unwrap();
            }
            sde.stats().total.computed
        };
        assert_eq!(load(&alone), 0);
        assert_eq!(machine.run(&[0, 1, 1], |sde, _| load(sde)), [0; 3]);
    }
}

/// Found by a checkpoint of 1 GiB that four ranks made together, which took three times as long as to write it: one rank read all, wrote it
/// once more, and read that.
#[test]
fn what_is_long_stays_where_its_rank_has_written_it() {
    let mut machine = Machine::new(false);
    machine.segment_size = 1 << 16;
    let entries = || files(&machine.store().join("entries"));
    let seen = machine.run(NODES, |sde, _| {
        let rank = sde.rank().unwrap() as u64;
        let mut seen = Vec::new();
        for round in 0..3 {
            sum.call(sde, round).unwrap();
            // 24 kB, of which a segment takes two.
            wave.call(sde, 3000 + 10 * rank + round).unwrap();
            sde.gather("saved", rank).unwrap();
            let before = entries();
            sde.checkpoint_all().unwrap();
            seen.push((before, entries()));
            sde.gather("seen", rank).unwrap();
            // The others are told where it is.
            let next = (rank + 1) % NODES.len() as u64;
            wave.call(sde, 3000 + 10 * next + round).unwrap();
            assert_eq!(sde.stats().total.computed, 3 * (round + 1));
        }
        sde.finish().unwrap();
        seen
    });
    for (before, after) in seen.into_iter().flatten() {
        let gone: Vec<_> = before.difference(&after).collect();
        assert!(gone.is_empty(), "{gone:#?}");
    }
    let manifests = files(&machine.store().join("manifests")).into_iter();
    let newest = std::fs::read(manifests.max().unwrap()).unwrap();
    for path in entries() {
        let name = path.file_name().unwrap().as_encoded_bytes();
        let is_listed = newest.windows(name.len()).any(|part| part == name);
        assert!(is_listed, "{path:?}");
    }
    let alone = Sde::builder()
        .store(DirStore::open(machine.store()).unwrap())
        .save(SavePolicy::OnRequest);
    let alone = alone.build().unwrap();
    for x in (0..7).flat_map(|rank| (0..3).map(move |round| 3000 + 10 * rank + round)) {
        wave.call(&alone, x).unwrap();
        sum.call(&alone, x % 3).unwrap();
    }
    assert_eq!(alone.stats().total.computed, 0);
}

/// Ranks that end without a commit leave what they saved on the disks of their nodes.
#[test]
fn what_was_left_on_a_node_is_taken_in_there() {
    let machine = Machine::new(true);
    machine.run(NODES, |sde, _| {
        let rank = sde.rank().unwrap() as u64;
        sum.call(sde, 10 * rank).unwrap();
        // Nobody removes a journal before all have saved.
        sde.gather("saved", rank).unwrap();
    });
    assert_eq!(files(&machine.store()).len(), 1);
    for node in 0..4 {
        assert!(files(&machine.disk(node)).len() > 1, "node {node}");
    }
    // Another number of ranks on the same nodes: each finds what is on its own.
    machine.run(&[0, 1, 2, 3, 3], |sde, log| {
        let rank = sde.rank().unwrap();
        let first_here = [0, 20, 40, 50, 50][rank];
        sum.call(sde, first_here).unwrap();
        assert_eq!(log.started("store.ranks.sum"), 0);
        sde.finish().unwrap();
        sde.gather("finished", rank as u64).unwrap();
        assert_eq!(files(&machine.disk(rank.min(3))).len(), 1);
    });
    let alone = Sde::builder()
        .store(DirStore::open(machine.store()).unwrap())
        .save(SavePolicy::OnRequest);
    let alone = alone.build().unwrap();
    for rank in 0..7 {
        sum.call(&alone, 10 * rank).unwrap();
    }
    assert_eq!(alone.stats().total.computed, 0);
}

/// Where results are saved without being asked for, they are committed where all ranks come by.
#[test]
fn a_release_commits_what_was_saved() {
    let machine = Machine::new(true);
    machine.run(NODES, |sde, _| {
        let rank = sde.rank().unwrap();
        sde.split_for((rank % 2) as u32, 0, |half| {
            sum.call(half, rank as u64).map(drop)
        })
        .unwrap();
        sde.gather("released", rank as u64).unwrap();
        assert_eq!(files(&machine.disk(NODES[rank])).len(), 1);
        let manifests = files(&machine.store().join("manifests"));
        assert_eq!(manifests.len(), 1, "{manifests:?}");
        sde.gather("looked", rank as u64).unwrap();
        sde.finish().unwrap();
    });
}

#[test]
fn a_store_that_one_rank_can_t_open_is_an_error_on_all() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "no store").unwrap();
    let errors = ThreadGroup::run(3, |group| {
        let opened = StoreOptions::new().open_together(&file, &group);
        format!("{:#}", opened.unwrap_err())
    });
    assert!(errors[0].starts_with("rank 0: "), "{errors:?}");
    assert!(errors[0].contains("it is a file"), "{errors:?}");
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    // One whose own disk can't be used.
    let store = dir.path().join("store");
    let errors = ThreadGroup::run(3, |group| {
        let options = match group.rank() {
            1 => StoreOptions::new().local(&file),
            _ => StoreOptions::new(),
        };
        options
            .open_together(&store, &group)
            .unwrap_err()
            .to_string()
    });
    assert!(errors[0].starts_with("rank 1: "), "{errors:?}");
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
}

#[test]
fn a_folder_of_a_node_is_of_no_use_to_one_who_opens_alone() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::new().local(dir.path().join("local"));
    let error = options.open(dir.path().join("store")).unwrap_err();
    assert!(format!("{error:#}").contains("`open_together`"), "{error}");
}
