//! What several ranks saved, loaded by any number of ranks.

use std::path::Path;

use sde::ranks::{Redistribution, SavedParts, Transfer};
use sde::store::DirStore;
use sde::{
    App, AppError, AppInfo, DistArray, Distributed, EventLog, Fingerprint, Handle, Inputs,
    ResultMap, ResultSpec, SavePolicy, Sde, Source, Tag, Tags, inputs,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Ranks, all_are, names as told};
use crate::{Lie, Lying, assert_kind, says};

#[sde::app(name = "ranks.restart.waves", distributed)]
fn waves(sde: &Handle, count: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[count, 3], |at| ((at[0] * 3 + at[1]) as f64).sin())
}

#[sde::app(name = "ranks.restart.square")]
fn square(x: u64) -> u64 {
    x * x
}

/// A type of a user's own: each rank has some of the names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Names(Vec<String>);

impl Names {
    fn dealt(all: &[String], rank: usize, ranks: usize) -> Self {
        Self(all.iter().skip(rank).step_by(ranks).cloned().collect())
    }

    fn whole(parts: &[Vec<String>]) -> Vec<String> {
        let mut all: Vec<String> = parts.concat();
        all.sort();
        all
    }
}

impl Distributed for Names {
    fn part_descriptor(&self) -> Vec<u64> {
        vec![self.0.len() as u64]
    }

    fn redistribute_parts(
        part: Option<&Self>,
        over: &Redistribution<'_>,
    ) -> Result<Option<Self>, AppError> {
        let mine = part.map_or(String::new(), |part| part.0.join("\n"));
        let sent = over.exchange(&vec![mine.into_bytes(); over.ranks()])?;
        let parts: Vec<Vec<String>> = over
            .from()
            .iter()
            .map(|rank| {
                String::from_utf8_lossy(&sent[*rank])
                    .lines()
                    .map(str::to_owned)
                    .collect()
            })
            .collect();
        let all = Self::whole(&parts);
        let place = over.place();
        Ok(place.map(|(set, place)| Self::dealt(&all, place, over.to()[set].len())))
    }

    fn assemble(parts: &SavedParts<'_, Self>, rank: usize, ranks: usize) -> Result<Self, AppError> {
        let read = |part| Ok(parts.read(part)?.0);
        let parts = (0..parts.ranks())
            .map(read)
            .collect::<Result<Vec<_>, AppError>>()?;
        Ok(Self::dealt(&Self::whole(&parts), rank, ranks))
    }
}

#[sde::app(name = "ranks.restart.names", distributed)]
fn names(sde: &Handle, count: usize) -> Result<Names, sde::Error> {
    let all: Vec<_> = (0..count).map(|n| format!("name {n:02}")).collect();
    Ok(Names::dealt(&all, sde.rank()?, sde.ranks()?))
}

/// Has ranks run a program over a store in a directory that each of them opens for itself.
pub(super) fn with_store<R: Serialize + DeserializeOwned>(
    ranks: Ranks<'_>,
    store: &Path,
    program: impl Fn(&Sde, &EventLog) -> R + Sync,
) -> Vec<R> {
    ranks.run_ranks(|rank| {
        let log = EventLog::new();
        let builder = Sde::builder().observer(log.clone());
        let builder = builder.store(DirStore::open(store).unwrap());
        let builder = rank.join(builder.save(SavePolicy::EveryResult));
        let sde = builder.build().unwrap();
        program(&sde, &log)
    })
}

/// The bits of the whole array, and how it was got.
fn bits(sde: &Sde, log: &EventLog) -> (Vec<u64>, Vec<String>) {
    let array = waves.call(sde, 10).unwrap();
    let all = array.gather(sde).unwrap();
    sde.finish().unwrap();
    let bits = all.iter().map(|x| x.to_bits()).collect();
    (bits, told(log.sources("ranks.restart.waves")))
}

/// Has ranks compute an array and save it to a new store.
///
/// # Panics
/// If they do not compute it, or to other bits than they should.
pub fn save_waves(ranks: Ranks<'_>, store: &Path) {
    check_waves(ranks, store, Source::Computed);
}

/// Has ranks load what any number of ranks have saved like that.
///
/// # Panics
/// If they do not load it, or get other bits.
pub fn load_waves(ranks: Ranks<'_>, store: &Path) {
    check_waves(ranks, store, Source::Loaded);
}

fn check_waves(ranks: Ranks<'_>, store: &Path, source: Source) {
    let expected: Vec<u64> = (0..30).map(|n| f64::from(n).sin().to_bits()).collect();
    for (got, from) in with_store(ranks, store, bits) {
        assert_eq!(from, told([source]), "{} ranks, {store:?}", ranks.size());
        assert_eq!(got, expected, "{} ranks, {store:?}", ranks.size());
    }
}

pub(super) fn any_number_of_ranks_goes_on_from_what_any_other_saved(ranks: Ranks<'_>) {
    for saved_by in 1..=8 {
        let folder = ranks.folder();
        let store = folder.path().join("store");
        save_waves(ranks.resized(saved_by), &store);
        for loaded_by in 1..=8 {
            load_waves(ranks.resized(loaded_by), &store);
        }
    }
}

/// One process without a process group is as good as any.
pub(super) fn a_program_without_ranks_goes_on_too(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    save_waves(ranks.resized(3), &store);
    ranks.once(|| {
        let log = EventLog::new();
        let store = DirStore::open(&store).unwrap();
        let sde = Sde::builder()
            .observer(log.clone())
            .store(store)
            .save(SavePolicy::OnRequest);
        let sde = sde.save(SavePolicy::EveryResult).build().unwrap();
        assert_eq!(waves.call(&sde, 10).unwrap().local().len(), 30);
        waves.call(&sde, 11).unwrap();
        assert_eq!(log.sources("ranks.restart.waves")[0], Source::Loaded);
        sde.finish().unwrap();
    });
    with_store(ranks.resized(2), &store, |sde, log| {
        assert_eq!(waves.call(sde, 11).unwrap().gather(sde).unwrap().len(), 33);
        assert_eq!(log.sources("ranks.restart.waves"), [Source::Loaded]);
    });
}

pub(super) fn a_type_of_the_user_s_own_is_split_and_put_together(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let whole = |sde: &Handle| {
        let part = names.call(sde, 7).unwrap();
        let parts = sde.gather("names", part.0.clone()).unwrap();
        Names::whole(&parts.iter().map(|part| part.to_vec()).collect::<Vec<_>>())
    };
    for size in [4, 3, 1, 5] {
        let made = with_store(ranks.resized(size), &store, |sde, log| {
            assert_eq!(whole(sde).len(), 7);
            let color = (sde.rank().unwrap() % 2) as u32;
            sde.split_for_with(color, 0, &Transfer::all(), |half| {
                assert_eq!(whole(half).len(), 7);
                Ok(())
            })
            .unwrap();
            assert_eq!(whole(sde).len(), 7);
            sde.finish().unwrap();
            log.started("ranks.restart.names")
        });
        all_are(&made, &usize::from(size == 4));
    }
}

/// Each rank has a list of its own.
#[derive(Clone, Fingerprint)]
struct Lists {
    /// Whether that is said of the result, or of what is returned.
    is_declared: bool,
}

impl App for Lists {
    fn info(&self) -> AppInfo {
        let list = ResultSpec::new::<Vec<f64>>("list");
        let tags: Tags = self
            .is_declared
            .then_some(Tag::Distributed)
            .into_iter()
            .collect();
        AppInfo::new("ranks.restart.lists", "1")
            .distributed()
            .result(list.tagged(tags))
    }

    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let list = vec![sde.rank()? as f64; 3];
        Ok(ResultMap::new().with_tagged("list", list, Tag::Distributed))
    }
}

/// Found by a program that tagged a list so, of which each rank had another: rank 0's was saved, and the next program
/// had that on all ranks.
pub(super) fn a_type_that_can_not_be_put_together_is_refused(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    for is_declared in [true, false] {
        let texts = with_store(ranks, &store, |sde, log| {
            let error = sde.run(&Lists { is_declared }, &inputs! {}).unwrap_err();
            assert_eq!(log.sources("ranks.restart.lists"), []);
            let got = log.started("ranks.restart.lists");
            assert_eq!(got, usize::from(!is_declared));
            sde.finish().unwrap();
            format!("{error:#}")
        });
        for text in texts {
            says(&text, "declare it with `ResultSpec::distributed`");
        }
    }
}

/// A part that is missing is a miss for all, not an array with a hole.
pub(super) fn without_one_of_its_parts_a_value_is_computed_again_by_all(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    save_waves(ranks.resized(3), &store);
    ranks.once(|| {
        let segments = std::fs::read_dir(store.join("entries")).unwrap();
        let mut segments: Vec<_> = segments.map(|file| file.unwrap().path()).collect();
        segments.sort_by_key(|file| file.metadata().unwrap().len());
        // One of those with nothing but a part.
        std::fs::remove_file(&segments[0]).unwrap();
    });
    for (_, sources) in with_store(ranks.resized(2), &store, bits) {
        assert_eq!(sources, told([Source::Computed]));
    }
}

/// It is one directory, which must be empty: one rank writes it, and all hear of it.
pub(super) fn all_ranks_archive_to_one_directory(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let (store, archive) = (folder.path().join("store"), folder.path().join("archive"));
    let texts = with_store(ranks, &store, |sde, _| {
        let rank = sde.rank().unwrap();
        square.call(sde, rank as u64).unwrap();
        waves.call(sde, 10).unwrap();
        sde.archive_to(&archive).unwrap();
        let again = format!("{:#}", sde.archive_to(&archive).unwrap_err());
        if sde.ranks().unwrap() > 1 {
            let own = folder.path().join(format!("of rank {rank}"));
            let error = sde.archive_to(own).unwrap_err();
            assert_kind!(error, Disagree);
        }
        again
    });
    all_are(&texts, &texts[0]);
    says(&texts[0], "there is a store already");
    let size = ranks.size() as u64;
    for loaded_by in [ranks, ranks.resized(1)] {
        let computed = with_store(loaded_by, &archive, |sde, _| {
            let array = waves.call(sde, 10).unwrap();
            assert_eq!(array.gather(sde).unwrap().len(), 30);
            for x in 0..size {
                assert_eq!(*square.call(sde, x).unwrap(), x * x);
            }
            sde.stats().total.computed
        });
        assert!(computed.iter().all(|computed| *computed == 0));
    }
}

/// One rank can't load the store; if the others did, some ranks would go on with the new store and some with the old one.
pub(super) fn a_store_that_one_rank_can_not_load_is_loaded_by_none(ranks: Ranks<'_>) {
    let texts = ranks.run(|sde| {
        let rank = sde.rank().unwrap();
        square.call(&sde, 3).unwrap();
        let store = Lying::new();
        if rank == 1 {
            store.tell(Lie::MarksFail);
        }
        let text = format!("{:#}", sde.load(store.clone()).unwrap_err());
        square.call(&sde, 3).unwrap();
        assert_eq!(sde.stats().total.computed, 1);
        store.tell(Lie::None);
        sde.load(store).unwrap();
        square.call(&sde, 3).unwrap();
        assert_eq!(sde.stats().total.computed, 2);
        text
    });
    says(&texts[0], "on rank 1: ");
    all_are(&texts, &texts[0]);
}

/// Each result is archived by one rank, and all ranks find it.
pub(super) fn what_one_rank_computes_another_program_s_ranks_load(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    with_store(ranks.resized(3), &store, |sde, _| {
        square.call(sde, sde.rank().unwrap() as u64).unwrap();
        sde.checkpoint_all().unwrap();
    });
    let computed = with_store(ranks.resized(2), &store, |sde, _| {
        for x in 0..3 {
            assert_eq!(*square.call(sde, x).unwrap(), x * x);
        }
        sde.stats().total.computed
    });
    assert_eq!(computed, [0, 0]);
}
