//! A store that all ranks open together: parts of all of them come to few files.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::ranks::ProcessGroup;
use sde::store::{DirStore, StoreOptions};
use sde::{DistArray, Event, EventLog, Handle, SavePolicy, Sde, Source};

use super::{Rank, Ranks, all_are, names};
use crate::says;

#[sde::app(name = "ranks.together.waves", distributed)]
fn waves(sde: &Handle, count: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[count, 3], |at| ((at[0] * 3 + at[1]) as f64).sin())
}

/// What each rank gets of the whole array, as bits, and how.
fn bits(
    ranks: Ranks<'_>,
    open: impl Fn(&dyn ProcessGroup) -> DirStore + Sync,
) -> Vec<(Vec<u64>, Vec<String>)> {
    ranks.run_ranks(|rank: Rank| {
        let log = EventLog::new();
        let builder = Sde::builder().observer(log.clone());
        let builder = builder.store(open(rank.group()));
        let builder = rank.join(builder.save(SavePolicy::EveryResult));
        let sde = builder.build().unwrap();
        let array = waves.call(&sde, 10).unwrap();
        let all = array.gather(&sde).unwrap();
        sde.finish().unwrap();
        let bits = all.iter().map(|x| x.to_bits()).collect();
        (bits, names(log.sources("ranks.together.waves")))
    })
}

fn all_get(got: Vec<(Vec<u64>, Vec<String>)>, source: Source, how: &str) {
    let expected: Vec<u64> = (0..30).map(|n| f64::from(n).sin().to_bits()).collect();
    for (bits, sources) in got {
        assert_eq!(sources, names([source]), "{how}");
        assert_eq!(bits, expected, "{how}");
    }
}

pub(super) fn any_number_of_ranks_goes_on_from_what_others_saved_together(ranks: Ranks<'_>) {
    for (saved_by, loaded_by) in [(1, 3), (3, 5), (5, 2), (4, 1)] {
        let folder = ranks.folder();
        let (store, disk) = (folder.path().join("store"), folder.path().join("disk"));
        let open = |group: &dyn ProcessGroup| {
            let options = StoreOptions::new().local(&disk);
            options.open_together(&store, group).unwrap()
        };
        let how = format!("{saved_by} -> {loaded_by}");
        let (saved_by, loaded_by) = (ranks.resized(saved_by), ranks.resized(loaded_by));
        all_get(bits(saved_by, open), Source::Computed, &how);
        ranks.once(|| {
            let files = std::fs::read_dir(store.join("entries")).unwrap();
            assert_eq!(files.count(), 1);
        });
        all_get(bits(loaded_by, open), Source::Loaded, &how);
        let each_alone = |_: &dyn ProcessGroup| DirStore::open(&store).unwrap();
        all_get(bits(loaded_by, each_alone), Source::Loaded, &how);
    }
}

#[sde::app(name = "ranks.together.page")]
fn page(number: u64) -> Vec<u8> {
    vec![number as u8; 160_000]
}

/// A thread saves while all commit: what it has begun to write is left to the next commit.
pub(super) fn what_is_saved_while_all_commit_is_not_lost(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let rounds = 40;
    let pages = |rank: usize| (0..5 * rounds).map(move |n| 1_000_000 * rank as u64 + n);
    ranks.run_ranks(|rank: Rank| {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&warnings);
        let options = StoreOptions::new();
        let builder = Sde::builder()
            .store(options.open_together(&store, rank.group()).unwrap())
            .save(SavePolicy::Interval(Duration::from_millis(1)))
            .observer(move |event: &Event| {
                if let Event::Warning { message, .. } = event {
                    heard.lock().unwrap().push(message.clone());
                }
            });
        let sde = rank.join(builder).build().unwrap();
        let mut own = pages(sde.rank().unwrap());
        for _ in 0..rounds {
            for number in own.by_ref().take(5) {
                page.call(&sde, number).unwrap();
            }
            sde.split_for(0, 0, |_| Ok(())).unwrap();
        }
        sde.finish().unwrap();
        let warnings = warnings.lock().unwrap();
        let lost: Vec<_> = warnings
            .iter()
            .filter(|w| !w.contains("waits for"))
            .collect();
        assert!(lost.is_empty(), "{lost:?}");
    });
    ranks.once(|| {
        let store = DirStore::open(&store).unwrap();
        let sde = Sde::builder()
            .store(store)
            .save(SavePolicy::OnRequest)
            .build()
            .unwrap();
        for number in (0..3).flat_map(pages) {
            page.call(&sde, number).unwrap();
        }
        assert_eq!(sde.stats().total.computed, 0);
    });
}

/// Only where all save without being asked is anything committed by the way.
pub(super) fn ranks_may_save_at_different_times(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    ranks.run_ranks(|rank: Rank| {
        let group = rank.group();
        let policy = match group.rank() {
            0 => SavePolicy::EveryResult,
            _ => SavePolicy::OnRequest,
        };
        let store = StoreOptions::new().open_together(&store, group).unwrap();
        let builder = Sde::builder().store(store).save(policy);
        let sde = rank.join(builder).build().unwrap();
        sde.split_for(0, 0, |part| page.call(part, 7).map(drop))
            .unwrap();
        sde.finish().unwrap();
    });
}

pub(super) fn ranks_that_open_different_stores_get_an_error(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let folder = folder.path();
    let told = ranks.run_ranks(|rank: Rank| {
        let group = rank.group();
        let own = folder.join(if group.rank() == 1 { "a" } else { "b" });
        let error = StoreOptions::new().open_together(own, group).unwrap_err();
        let with_disk = match group.rank() {
            1 => StoreOptions::new().local(folder.join("disk")),
            _ => StoreOptions::new(),
        };
        let other = with_disk
            .open_together(folder.join("c"), group)
            .unwrap_err();
        (format!("{error:#}"), other.to_string())
    });
    for (rank, (dirs, disks)) in told.iter().enumerate() {
        says(dirs, "rank 1 and rank 0");
        says(dirs, "/a, ");
        says(dirs, "/b, ");
        assert_eq!((dirs, disks), (&told[0].0, &told[0].1), "on rank {rank}");
        says(disks, "with a local directory");
        says(disks, "without a local directory");
    }
}

/// Found by a program whose ranks of one node had two folders for it: it computed all night, and failed at `finish`.
pub(super) fn ranks_of_a_node_that_save_in_different_folders_get_an_error(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let folder = folder.path();
    let told = ranks.run_ranks(|rank: Rank| {
        let group = rank.group();
        let own = format!("disk {}", usize::from(group.rank() == 1));
        let options = StoreOptions::new().local(folder.join(own));
        let opened = options.open_together(folder.join("store"), group);
        format!("{:#}", opened.unwrap_err())
    });
    all_are(&told, &told[0]);
    says(&told[0], "rank 1 and rank 0");
    for disk in ["disk 0", "disk 1"] {
        says(&told[0], folder.join(disk).to_str().unwrap());
    }
}

/// Without the group nobody would commit what is saved.
pub(super) fn a_store_of_ranks_is_for_engines_of_ranks(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    ranks.run_ranks(|rank: Rank| {
        let store = folder.path().join("store");
        let store = StoreOptions::new()
            .open_together(store, rank.group())
            .unwrap();
        let built = Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest)
            .build()
            .map(drop);
        for taken in [built, Sde::new().load(store)] {
            let error = taken.unwrap_err();
            assert!(format!("{error:#}").contains("process_group"), "{error}");
        }
    });
}
