//! What ranks made together, where it can't or shall not move, and where its app moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sde::archiver::{ArchiveError, Codec, Wire, WireBuffer};
use sde::ranks::{Redistribution, Transfer};
use sde::store::Cbor;
use sde::{
    App, AppError, AppInfo, DistArray, Distributed, ErasedValue, EventLog, Fingerprint, Handle,
    Inputs, ResultMap, ResultSpec, Sde, Slot, Tag, Tags, inputs,
};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use super::{Rank, Ranks, all_are};
use crate::{assert_kind, says};

#[sde::app(name = "ranks.redistribution.table", distributed)]
fn table(sde: &Handle, rows: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[rows, 2], number)
}

fn number(at: &[usize]) -> f64 {
    (at[0] * 10 + at[1]) as f64
}

fn numbers(rows: usize, scale: f64) -> Vec<f64> {
    let row = |row: usize| [number(&[row, 0]) * scale, number(&[row, 1]) * scale];
    (0..rows).flat_map(row).collect()
}

/// What no format can write.
#[derive(Deserialize)]
struct Unwritten(u64);

impl Serialize for Unwritten {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("it is not to be written"))
    }
}

#[sde::app(name = "ranks.redistribution.unwritten", distributed)]
fn unwritten(sde: &Handle, x: u64) -> Result<Unwritten, sde::Error> {
    Ok(Unwritten(sde.gather("numbers", x)?.len() as u64))
}

/// It would be sent by one rank only: that alone would fail, and the others wait for it.
pub(super) fn what_can_not_be_sent_stays_and_is_no_error(ranks: Ranks<'_>) {
    let size = ranks.size() as u64;
    ranks.run(|sde| {
        assert_eq!(unwritten.call(&sde, 1).unwrap().0, size);
        let whole = table.call(&sde, 4).unwrap().gather(&sde).unwrap();
        let color = (sde.rank().unwrap() % 2) as u32;
        sde.split_for_with(color, 0, &Transfer::all(), |half| {
            assert_eq!(table.call(half, 4)?.gather(half)?, whole);
            // Each rank has it, and need not be sent it.
            assert_eq!(unwritten.call(half, 1)?.0, size);
            unwritten.call(half, 2).map(drop)
        })
        .unwrap();
        assert_eq!(unwritten.call(&sde, 1).unwrap().0, size);
        assert_eq!(unwritten.call(&sde, 2).unwrap().0, size);
        assert_eq!(table.call(&sde, 4).unwrap().gather(&sde).unwrap(), whole);
    });
}

/// Fails, when told to, to read what is said of an entry.
struct Failing {
    now: Arc<AtomicBool>,
}

impl Wire for Failing {
    fn encode<'a>(
        &self,
        value: &'a ErasedValue,
        codec: &Codec,
        to: &mut WireBuffer<'a>,
    ) -> Result<(), ArchiveError> {
        Cbor.encode(value, codec, to)
    }

    fn decode(&self, bytes: &[u8], codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        let is_it = codec.type_name().contains("outbox::EntryKind");
        match is_it && self.now.load(Ordering::Relaxed) {
            true => Err(ArchiveError::Other("the wire is cut".to_owned())),
            false => Cbor.decode(bytes, codec),
        }
    }
}

pub(super) fn a_hand_over_that_fails_on_one_rank_is_the_same_error_on_all(ranks: Ranks<'_>) {
    let texts = ranks.run_ranks(fail_to_hand_over);
    for of_rank in &texts {
        assert_eq!(*of_rank, texts[0]);
        for text in of_rank {
            says(&text, "on rank 1: ");
            says(&text, "the wire is cut");
        }
    }
}

fn fail_to_hand_over(rank: Rank) -> [String; 2] {
    let now = Arc::new(AtomicBool::new(false));
    let is_failing = rank.number() == 1;
    let wire = Failing {
        now: Arc::clone(&now),
    };
    let sde = rank.join_by(Sde::builder(), wire).build().unwrap();
    table.call(&sde, 3).unwrap();
    now.store(is_failing, Ordering::Relaxed);
    let split = sde.split_with(0, 0, &Transfer::all());
    let split = format!("{:#}", split.map(drop).unwrap_err());
    now.store(false, Ordering::Relaxed);
    let part = sde.split(0, 0).unwrap();
    table.call(&part, 4).unwrap();
    now.store(is_failing, Ordering::Relaxed);
    let release = format!("{:#}", part.release().unwrap_err());
    now.store(false, Ordering::Relaxed);
    // Nothing is out of step.
    let got = table.call(&sde, 3).unwrap().gather(&sde).unwrap();
    assert_eq!(got, numbers(3, 1.0));
    [split, release]
}

/// A table, whose app moves it itself.
#[derive(Clone, Debug, Default, Fingerprint)]
struct Field;

/// The table of the app in its slot, made larger; it moves both of its results.
#[derive(Clone, Debug, Default, Fingerprint)]
struct Larger;

sde::link_app!(Field);
sde::link_app!(Larger);

impl App for Field {
    fn info(&self) -> AppInfo {
        AppInfo::new("ranks.redistribution.field", "1")
            .distributed()
            .result(ResultSpec::distributed::<DistArray<f64>>("field"))
            .result(ResultSpec::new::<String>("name"))
            .synchronize(|own, over| {
                let moved = move_field(own, over)?;
                Ok(moved.map(|field| ResultMap::new().with("field", field)))
            })
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let field = DistArray::from_fn(sde, &[*inputs.get::<usize>("rows")?, 2], number)?;
        let name = "a field".to_owned();
        Ok(ResultMap::new().with("field", field).with("name", name))
    }
}

impl App for Larger {
    fn info(&self) -> AppInfo {
        AppInfo::new("ranks.redistribution.larger", "1")
            .distributed()
            .slot(Slot::new("inner", Field))
            .result(ResultSpec::distributed::<DistArray<f64>>("field"))
            .result(ResultSpec::new::<u64>("count").tagged(Tag::Intermediate))
            .synchronize(|own, over| {
                let count = own.map(|map| map.get::<u64>("count")).transpose()?;
                let mine = count.map_or(Vec::new(), |count| count.to_le_bytes().to_vec());
                let all = over.exchange(&vec![mine; over.ranks()])?;
                let count = u64::from_le_bytes(all[over.from()[0]].as_slice().try_into()?);
                let moved = move_field(own, over)?;
                Ok(moved.map(|field| ResultMap::new().with("field", field).with("count", count)))
            })
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let inner = sde.run(&sde.sub_app("inner")?, inputs)?;
        let field = inner.get::<DistArray<f64>>("field")?.map(|x| 3.0 * x);
        Ok(ResultMap::new().with("field", field).with("count", 7_u64))
    }
}

/// A field whose app expects answers of other ranks, and does not give up without.
#[derive(Clone, Debug, Default, Fingerprint)]
struct Unwrapping;

impl App for Unwrapping {
    fn info(&self) -> AppInfo {
        AppInfo::new("ranks.redistribution.unwrapping", "1")
            .distributed()
            .result(ResultSpec::distributed::<DistArray<f64>>("field"))
            .synchronize(|own, over| {
                let told = over.exchange(&vec![vec![1]; over.ranks()]).unwrap();
                assert_eq!(told.len(), over.ranks());
                let field = move_field(own, over).unwrap();
                Ok(field.map(|field| ResultMap::new().with("field", field)))
            })
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let field = DistArray::from_fn(sde, &[*inputs.get::<usize>("rows")?, 2], number)?;
        Ok(ResultMap::new().with("field", field))
    }
}

/// Found by a function that unwrapped what it was told: where several values moved, it was given an error at first, and
/// the panic ended the split.
pub(super) fn an_app_that_expects_answers_gets_them(ranks: Ranks<'_>) {
    let started = ranks.run_with_log(|sde, log| {
        let check = |sde: &Handle, rows: usize| -> Result<(), sde::Error> {
            let map = sde.run(&Unwrapping, &inputs! { rows: rows })?;
            let field = map.get::<DistArray<f64>>("field")?.gather(sde)?;
            assert_eq!(field, numbers(rows, 1.0));
            Ok(())
        };
        (3..6).for_each(|rows| check(&sde, rows).unwrap());
        sde.split_for_with(0, 0, &Transfer::all(), |part| {
            (3..6).try_for_each(|rows| check(part, rows))
        })
        .unwrap();
        log.started("ranks.redistribution.unwrapping")
    });
    all_are(&started, &3);
}

/// A field whose app panics on one rank when it is to move.
#[derive(Clone, Debug, Default, Fingerprint)]
struct Panicking;

impl App for Panicking {
    fn info(&self) -> AppInfo {
        AppInfo::new("ranks.redistribution.panicking", "1")
            .distributed()
            .result(ResultSpec::distributed::<DistArray<f64>>("field"))
            .synchronize(|own, over| {
                assert_ne!(over.rank(), 1, "this rank");
                let field = move_field(own, over)?;
                Ok(field.map(|field| ResultMap::new().with("field", field)))
            })
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let field = DistArray::from_fn(sde, &[*inputs.get::<usize>("rows")?, 2], number)?;
        Ok(ResultMap::new().with("field", field))
    }
}

/// The others waited for the rank.
pub(super) fn a_panic_on_one_rank_is_the_same_error_on_all(ranks: Ranks<'_>) {
    let texts = ranks.run(|sde| {
        [1_usize, 3].map(|values| {
            (1..=values).for_each(|rows| drop(sde.run(&Panicking, &inputs! { rows: rows })));
            let split = sde.split_with(0, 0, &Transfer::all());
            let text = format!("{:#}", split.map(drop).unwrap_err());
            assert_eq!(sde.gather("ranks", 1).unwrap().len(), sde.ranks().unwrap());
            text
        })
    });
    texts[0].iter().for_each(|text| says(text, "this rank"));
    all_are(&texts, &texts[0]);
}

fn move_field(
    own: Option<&ResultMap>,
    over: &Redistribution<'_>,
) -> Result<Option<DistArray<f64>>, AppError> {
    let part = own.map(|map| map.get::<DistArray<f64>>("field"));
    let part = part.transpose()?;
    DistArray::redistribute_parts(part.as_deref(), &over.of_result("field"))
}

#[sde::app(name = "ranks.redistribution.sum", distributed)]
fn sum(sde: &Handle, array: &DistArray<f64>) -> Result<f64, sde::Error> {
    let mine: f64 = array.local().iter().sum();
    Ok(sde.gather("sums", mine)?.iter().map(|one| **one).sum())
}

/// The app's results are whole on the handle's ranks, of use there, and known as inputs.
fn check_fields(sde: &Handle, rows: usize) -> Result<(), sde::Error> {
    let inputs = inputs! { rows: rows };
    let larger = sde.run(&Larger, &inputs)?;
    let array = larger.get::<DistArray<f64>>("field")?;
    assert_eq!(array.gather(sde)?, numbers(rows, 3.0));
    assert_eq!(*larger.get::<u64>("count")?, 7);
    assert_eq!(array.layout().ranks(), sde.ranks()?);
    let inner = sde.run(&Field, &inputs)?;
    let array = inner.get::<DistArray<f64>>("field")?;
    assert_eq!(array.gather(sde)?, numbers(rows, 1.0));
    assert_eq!(*inner.get::<String>("name")?, "a field");
    assert_eq!(
        *sum.call(sde, &array)?,
        numbers(rows, 1.0).iter().sum::<f64>()
    );
    Ok(())
}

pub(super) fn an_app_moves_its_results_itself(ranks: Ranks<'_>) {
    let started = ranks.run_with_log(|sde, log| {
        let color = (sde.rank().unwrap() % 2) as u32;
        check_fields(&sde, 5).unwrap();
        sde.split_for_with(color, 0, &Transfer::all(), |half| {
            check_fields(half, 5)?;
            // One for each half.
            check_fields(half, 6 + color as usize)
        })
        .unwrap();
        for rows in [5, 6, 7] {
            check_fields(&sde, rows).unwrap();
        }
        let apps = ["field", "larger", "sum"];
        apps.map(|app| log.started(&format!("ranks.redistribution.{app}")))
    });
    all_are(&started, &[2, 2, 2]);
}

/// Its app would be given a map without values, to move them.
pub(super) fn what_was_cleaned_does_not_move(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        for tags in [Tags::NONE, Tag::Intermediate.into()] {
            check_fields(&sde, 5).unwrap();
            sde.clear_tagged("ranks.redistribution.larger", tags)
                .unwrap();
            sde.split_for_with(0, 0, &Transfer::all(), |part| check_fields(part, 5))
                .unwrap();
        }
    });
}

/// It would belong to two process sets.
#[derive(Clone, Debug, Default, Fingerprint)]
struct Careless;

impl App for Careless {
    fn info(&self) -> AppInfo {
        AppInfo::new("ranks.redistribution.careless", "1")
            .distributed()
            .result(ResultSpec::distributed::<DistArray<f64>>("field"))
            .synchronize(|own, _| Ok(own.cloned()))
    }

    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let field = DistArray::from_fn(sde, &[4], |at| at[0] as f64)?;
        Ok(ResultMap::new().with("field", field))
    }
}

pub(super) fn a_part_of_the_old_set_is_none_of_the_new_one(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let map = sde.run(&Careless, &inputs! {}).unwrap();
        let error = sde.split_with(0, 0, &Transfer::all());
        let error = error.map(drop).unwrap_err();
        says(&error, "given back as it was");
        let array = map.get::<DistArray<f64>>("field").unwrap();
        assert_eq!(array.gather(&sde).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    });
}

/// Of what came from the larger set at the split nothing goes back.
pub(super) fn what_the_larger_set_has_is_not_moved_to_it(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        table.call(&sde, 3).unwrap();
        let moved = |compute: bool| {
            let part = sde.split_with(0, 0, &Transfer::all()).unwrap();
            table.call(&part, 3).unwrap();
            if compute {
                table.call(&part, 4).unwrap();
            }
            let asked = Arc::new(AtomicBool::new(false));
            let of_value = Arc::clone(&asked);
            let transfer = Transfer::all().only(move |_, _, _| {
                of_value.store(true, Ordering::Relaxed);
                true
            });
            part.release_with(&transfer).unwrap();
            asked.load(Ordering::Relaxed)
        };
        assert!(!moved(false));
        assert!(moved(true));
        assert!(!moved(true), "it is remembered by now");
    });
}

/// The limit is one for the whole of a value, wherever it goes.
pub(super) fn what_is_too_large_does_not_move_in_either_direction(ranks: Ranks<'_>) {
    // Two rows are 32 bytes, and the record of the run is sent with them.
    let small = Transfer::all().at_most(2000);
    let started = ranks.run_with_log(|sde, log: EventLog| {
        table.call(&sde, 2).unwrap();
        table.call(&sde, 1000).unwrap();
        let part = sde.split_with(0, 0, &small).unwrap();
        let _ = log.take();
        table.call(&part, 2).unwrap();
        assert_kind!(table.call(&part, 1000).unwrap_err(), LeftBehind);
        table.call(&part, 3).unwrap();
        table.call(&part, 1001).unwrap();
        let within = log.started("ranks.redistribution.table");
        part.release_with(&small).unwrap();
        let _ = log.take();
        table.call(&sde, 3).unwrap();
        table.call(&sde, 1001).unwrap();
        table.call(&sde, 1000).unwrap();
        (within, log.started("ranks.redistribution.table"))
    });
    all_are(&started, &(2, 1));
}
