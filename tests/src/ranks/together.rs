//! A store that all ranks open together: parts of all of them come to few files.

use sde::{DistArray, EventLog, Handle, ProcessGroup, SavePolicy, Sde, Source};
use sde_archives::{DirStore, Options};

use super::{Rank, Ranks, names};

#[sde::app(name = "ranks.together.waves", distributed, tags(distributed))]
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
            let options = Options::new().local(&disk);
            options.open_together(&store, group).unwrap()
        };
        let how = format!("{saved_by} -> {loaded_by}");
        let (saved_by, loaded_by) = (ranks.resized(saved_by), ranks.resized(loaded_by));
        all_get(bits(saved_by, open), Source::Computed, &how);
        ranks.once(|| {
            let files = std::fs::read_dir(store.join("results")).unwrap();
            assert_eq!(files.count(), 1);
        });
        all_get(bits(loaded_by, open), Source::Loaded, &how);
        let each_alone = |_: &dyn ProcessGroup| DirStore::open(&store).unwrap();
        all_get(bits(loaded_by, each_alone), Source::Loaded, &how);
    }
}
