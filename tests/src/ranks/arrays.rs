//! Arrays that lie on several ranks.

use std::collections::BTreeMap;

use super::{Ranks, all_are, names};
use crate::{assert_kind, says};
use sde::ranks::{Block, Edge, Layout, Transfer};
use sde::store::DirStore;
use sde::{
    AppError, Builder, DistArray, ErrorKind, Handle, SavePolicy, Sde, Source, Value, inputs,
};

#[sde::app(name = "ranks.arrays.products", distributed)]
fn products(sde: &Handle, rows: usize, columns: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[rows, columns], |at| (at[0] * 1000 + at[1]) as f64)
}

#[sde::app(name = "ranks.arrays.sum", distributed)]
fn sum(sde: &Handle, array: &DistArray<f64>) -> Result<f64, sde::Error> {
    let mine: f64 = array.local().iter().sum();
    Ok(sde.gather("sums", mine)?.iter().map(|one| **one).sum())
}

#[sde::app(name = "ranks.arrays.ordinary")]
fn ordinary(array: &DistArray<f64>) -> f64 {
    array.local().iter().sum()
}

#[sde::app(name = "ranks.arrays.ordinary_of_many")]
fn ordinary_of_many(arrays: BTreeMap<u8, Value<DistArray<f64>>>) -> usize {
    arrays.len()
}

fn expected(rows: usize, columns: usize) -> Vec<f64> {
    let row = |row: usize| (0..columns).map(move |column| (row * 1000 + column) as f64);
    (0..rows).flat_map(row).collect()
}

/// All ways to cut up so many ranks along the dimensions.
fn grids(ranks: usize, dimensions: usize) -> Vec<Vec<usize>> {
    if dimensions == 1 {
        return vec![vec![ranks]];
    }
    let divides = (1..=ranks).filter(|first| ranks.is_multiple_of(*first));
    let with = |first: usize| {
        let rest = grids(ranks / first, dimensions - 1).into_iter();
        rest.map(move |mut rest| {
            rest.insert(0, first);
            rest
        })
    };
    divides.flat_map(with).collect()
}

pub(super) fn arrays_move_from_each_layout_to_each_other(ranks: Ranks<'_>) {
    let size = ranks.size();
    for shape in [&[11][..], &[1], &[5, 3], &[2, 7], &[3, 4, 5], &[0, 4]] {
        ranks.run(|sde| {
            let number = |at: &[usize]| at.iter().fold(1_u64, |n, i| n * 100 + *i as u64);
            let layouts: Vec<_> = grids(size, shape.len())
                .iter()
                .map(|parts| Layout::grid(shape, parts).unwrap())
                .chain([Layout::rows(shape, size), all_on_last(shape, size)])
                .collect();
            let first = DistArray::from_fn(&sde, shape, number).unwrap();
            let whole = first.gather(&sde).unwrap();
            for from in &layouts {
                let array = DistArray::from_fn_on(&sde, from.clone(), number).unwrap();
                assert_eq!(array.gather(&sde).unwrap(), whole);
                for to in &layouts {
                    let moved = array.redistribute(&sde, to.clone()).unwrap();
                    let made = DistArray::from_fn_on(&sde, to.clone(), number).unwrap();
                    assert_eq!(moved.local(), made.local(), "{from:?} -> {to:?}");
                    assert_eq!(moved.block(), made.block());
                }
            }
        });
    }
}

/// More than is sent in one turn.
pub(super) fn a_large_array_moves_in_turns(ranks: Ranks<'_>) {
    let shape = [701, 1003];
    let columns = Layout::grid(&shape, &[1, ranks.size()]).unwrap();
    ranks.run(|sde| {
        let number = |at: &[usize]| (at[0] * 10_000 + at[1]) as f64;
        let rows = DistArray::from_fn(&sde, &shape, number).unwrap();
        let moved = rows.redistribute(&sde, columns.clone()).unwrap();
        let made = DistArray::from_fn_on(&sde, columns.clone(), number).unwrap();
        assert!(moved.local() == made.local());
        let back = moved.redistribute(&sde, rows.layout().clone()).unwrap();
        assert!(back.local() == rows.local());
    });
}

/// An uneven layout: one rank has it all.
fn all_on_last(shape: &[usize], size: usize) -> Layout {
    let block = |rank: usize| {
        let nothing = vec![0; shape.len()];
        match rank + 1 == size {
            true => Block::new(nothing, shape),
            false => Block::new(nothing.clone(), nothing),
        }
    };
    Layout::of_blocks(shape, (0..size).map(block).collect()).unwrap()
}

pub(super) fn an_array_goes_with_the_ranks_when_they_are_split_and_released(ranks: Ranks<'_>) {
    let size = ranks.size();
    let made = ranks.run_with_log(|sde, log| {
        let whole = products.call(&sde, 7, 3).unwrap();
        let sum_of_whole = *sum.call(&sde, &whole).unwrap();
        let color = (sde.rank().unwrap() % 2) as u32;
        let half = sde.split_with(color, 0, &Transfer::all()).unwrap();
        let here = products.call(&half, 7, 3).unwrap();
        assert_eq!(here.layout(), &Layout::rows(&[7, 3], half.ranks().unwrap()));
        assert_eq!(here.gather(&half).unwrap(), expected(7, 3));
        // The array of the larger set is of no use here.
        let error = whole.gather(&half).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OtherSet), "{error}");
        // Its key is the same on all sets, so what was made of it is remembered too.
        assert_eq!(*sum.call(&half, &here).unwrap(), sum_of_whole);
        // One is made by each half.
        let own = products.call(&half, 2 + color as usize, 2).unwrap();
        assert_eq!(own.gather(&half).unwrap(), expected(2 + color as usize, 2));
        half.release().unwrap();
        assert!(here.gather(&sde).is_err());
        for rows in [2, 3, 7] {
            let columns = if rows == 7 { 3 } else { 2 };
            let array = products.call(&sde, rows, columns).unwrap();
            assert_eq!(array.gather(&sde).unwrap(), expected(rows, columns));
            assert_eq!(array.layout().ranks(), size);
        }
        sde.finish().unwrap();
        log.started("ranks.arrays.products")
    });
    all_are(&made, &2);
}

pub(super) fn arrays_go_through_nested_sets(ranks: Ranks<'_>) {
    ranks.run_with_log(|sde, log| {
        products.call(&sde, 9, 2).unwrap();
        let rank = sde.rank().unwrap();
        let (half, all) = ((rank / 2) as u32, Transfer::all());
        sde.split_for_with(half, 0, &all, |half| {
            half.split_for_with((rank % 2) as u32, 0, &all, |alone| {
                let array = products.call(alone, 9, 2)?;
                assert_eq!(array.local(), expected(9, 2));
                products.call(alone, 4, 4).map(drop)
            })?;
            let array = products.call(half, 4, 4)?;
            assert_eq!(array.gather(half)?, expected(4, 4));
            Ok(())
        })
        .unwrap();
        let array = products.call(&sde, 4, 4).unwrap();
        assert_eq!(array.gather(&sde).unwrap(), expected(4, 4));
        assert_eq!(log.started("ranks.arrays.products"), 2);
    });
}

/// An ordinary app would take one rank's part for the whole.
pub(super) fn an_ordinary_app_can_not_be_given_an_array(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let array = products.call(&sde, 3, 3).unwrap();
        let many = BTreeMap::from([(1, array.clone())]);
        let refused = [
            ordinary.call(&sde, &array).map(drop),
            ordinary_of_many.call(&sde, many).map(drop),
        ];
        for error in refused.map(Result::unwrap_err) {
            assert_kind!(error, Fingerprint);
            says(&error, "lies on several ranks");
        }
    });
}

pub(super) fn an_array_that_no_app_returned_is_known_by_its_content(ranks: Ranks<'_>) {
    let mut keys = Vec::new();
    for size in [1, 2, 3, 5] {
        let of_size = ranks.resized(size).run(|sde| {
            let make = |value: f64| {
                // Large enough for several pieces.
                let shape = [400, 500];
                let number = move |at: &[usize]| (at[0] * at[1]) as f64 + value;
                DistArray::from_fn(&sde, &shape, number).unwrap()
            };
            let array = make(0.0);
            let error = sum.call(&sde, &array).unwrap_err();
            says(&error, "keyed");
            let columns = Layout::grid(&[400, 500], &[1, size]).unwrap();
            let other = array
                .redistribute(&sde, columns)
                .unwrap()
                .keyed(&sde)
                .unwrap();
            let array = array.keyed(&sde).unwrap();
            let first = *sum.call(&sde, &array).unwrap();
            assert_eq!(*sum.call(&sde, &other).unwrap(), first);
            let another = make(1.0).keyed(&sde).unwrap();
            assert_ne!(*sum.call(&sde, &another).unwrap(), first);
            let of_sum = |record: &sde::record::Record| (record.key, record.inputs[0].digest);
            let mut keys: Vec<_> = crate::records(&sde).iter().map(of_sum).collect();
            keys.sort();
            keys
        });
        assert!(of_size.iter().all(|keys| keys.len() == 2));
        keys.extend(of_size);
    }
    keys.dedup();
    assert_eq!(keys.len(), 1, "the key depends on how the array lies");
}

pub(super) fn layouts_that_do_not_fit_are_errors(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let array = products.call(&sde, 4, 4).unwrap();
        for layout in [Layout::rows(&[4, 4], 3), Layout::rows(&[4, 5], 2)] {
            let error = array.redistribute(&sde, layout).unwrap_err();
            assert_kind!(error, Refused);
        }
        let rows = Layout::rows(&[4], 2);
        let error = DistArray::from_local(&sde, rows, vec![1_u8; 3]).unwrap_err();
        says(&error, "3 elements for a block of 2");
        let layouts = [
            Layout::rows(&[4, 4], 2),
            Layout::grid(&[4, 4], &[1, 2]).unwrap(),
        ];
        let mine = layouts[sde.rank().unwrap()].clone();
        let error = array.redistribute(&sde, mine).unwrap_err();
        assert_kind!(error, Disagree);
        let done = match sde.rank().unwrap() {
            0 => array.gather(&sde).map(drop),
            _ => array.redistribute(&sde, layouts[0].clone()).map(drop),
        };
        assert_kind!(done.unwrap_err(), Disagree);
    });
}

/// What lies at an index that may be beyond the edges.
fn beyond(shape: &[usize], edges: &[Edge<u64>], at: &[isize]) -> u64 {
    let mut inside = Vec::new();
    for axis in 0..shape.len() {
        let length = shape[axis] as isize;
        match edges[axis] {
            Edge::Constant(constant) if !(0..length).contains(&at[axis]) => return constant,
            _ => inside.push(at[axis].rem_euclid(length) as usize),
        }
    }
    numbered(&inside)
}

fn numbered(at: &[usize]) -> u64 {
    at.iter()
        .fold(1, |number, index| number * 100 + *index as u64)
}

/// Of each element all that are near it.
fn check_padded<const N: usize>(
    sde: &Sde,
    shape: [usize; N],
    widths: [usize; N],
    edges: [Edge<u64>; N],
) {
    for parts in grids(sde.ranks().unwrap(), N) {
        let layout = Layout::grid(&shape, &parts).unwrap();
        let array = DistArray::from_fn_on(sde, layout, numbered).unwrap();
        let padded = array.padded(sde, &widths, &edges).unwrap();
        let block = array.block();
        let mut index = block.offset.clone();
        let same = padded.map(|near| {
            let count: usize = widths.iter().map(|width| 2 * width + 1).product();
            for number in 0..count {
                let mut rest = number;
                let mut distance = [0_isize; N];
                for axis in 0..N {
                    let side = 2 * widths[axis] + 1;
                    distance[axis] = (rest % side) as isize - widths[axis] as isize;
                    rest /= side;
                }
                let at: Vec<_> = (0..N)
                    .map(|axis| index[axis] as isize + distance[axis])
                    .collect();
                let got = near.at(distance);
                assert_eq!(got, beyond(&shape, &edges, &at), "{at:?} in {parts:?}");
            }
            for axis in (0..N).rev() {
                index[axis] += 1;
                if index[axis] < block.offset[axis] + block.extent[axis] {
                    break;
                }
                index[axis] = block.offset[axis];
            }
            near.at([0; N])
        });
        assert_eq!(same.local(), array.local());
        assert_eq!(same.layout(), array.layout());
    }
}

pub(super) fn what_lies_around_a_block_is_there(ranks: Ranks<'_>) {
    let (periodic, seven) = (Edge::Periodic, Edge::Constant(7));
    ranks.run(|sde| {
        check_padded(&sde, [11], [2], [periodic]);
        check_padded(&sde, [3], [3], [periodic]);
        check_padded(&sde, [3], [5], [seven]);
        check_padded(&sde, [5, 6], [1, 2], [periodic, seven]);
        check_padded(&sde, [4, 3], [2, 3], [periodic, periodic]);
        check_padded(&sde, [4, 3], [1, 0], [seven, Edge::Constant(8)]);
        check_padded(&sde, [2, 3, 4], [1, 1, 1], [seven, periodic, periodic]);
        check_padded(&sde, [0, 3], [0, 1], [seven, periodic]);
        let array = DistArray::from_fn(&sde, &[2, 9], numbered).unwrap();
        for (widths, edges) in [
            (&[3, 1][..], &[periodic; 2][..]),
            (&[1], &[periodic; 2]),
            (&[1, 1], &[periodic]),
            (&[usize::MAX, 1], &[seven; 2]),
            (&[usize::MAX / 16; 2], &[seven; 2]),
        ] {
            let error = array.padded(&sde, widths, edges).unwrap_err();
            says(&error, "shape [2, 9]");
        }
        let edge = Edge::Constant(sde.rank().unwrap() as u64);
        let padded = array.padded(&sde, &[1, 1], &[edge, periodic]);
        assert_eq!(padded.is_ok(), sde.ranks().unwrap() == 1);
    });
}

/// Numbers of which each order of adding gives another sum.
fn uneven(at: &[usize]) -> f64 {
    let x = (at[0] * 7919 + at[1] * 104_729) as f64;
    (x.sin() * 30.0).exp() * (0.5 - (at[0] % 2) as f64)
}

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Reduced {
    /// As bits, and as text what is joined in another way if the order is another.
    sum: u64,
    least: Option<u64>,
    most: Option<u64>,
    joined: Option<String>,
}

pub(super) fn what_is_made_of_all_elements_is_the_same_on_any_number_of_ranks(ranks: Ranks<'_>) {
    for shape in [[300, 211], [3, 3], [1, 70_000], [0, 5]] {
        let of = |size: usize| {
            ranks.resized(size).run(|sde| {
                let layouts = grids(sde.ranks().unwrap(), 2).into_iter();
                let layouts = layouts.map(|parts| Layout::grid(&shape, &parts).unwrap());
                let reduced = |layout: Layout| {
                    let array = DistArray::from_fn_on(&sde, layout, uneven).unwrap();
                    let holes = array.map(|x| if *x > 1e3 { f64::NAN } else { *x });
                    let text = |piece: &[f64]| format!("{} {:?}", piece.len(), piece.first());
                    let join = |a: String, b: String| format!("({a}, {b})");
                    Reduced {
                        sum: array.sum(&sde).unwrap().to_bits(),
                        least: array.min(&sde).unwrap().map(f64::to_bits),
                        most: holes.max(&sde).unwrap().map(f64::to_bits),
                        joined: array.reduce(&sde, "texts", text, join).unwrap(),
                    }
                };
                layouts
                    .chain([all_on_last(&shape, sde.ranks().unwrap())])
                    .map(reduced)
                    .collect::<Vec<_>>()
            })
        };
        let alone = of(1).remove(0).remove(0);
        assert_eq!(alone.joined.is_some(), shape[0] > 0);
        for size in 2..=ranks.size() {
            let all = of(size).into_iter().flatten();
            all.for_each(|of_rank| assert_eq!(of_rank, alone, "{shape:?} on {size} ranks"));
        }
    }
}

pub(super) fn arrays_that_lie_otherwise_are_not_zipped(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let array = |rows: usize| DistArray::from_fn(&sde, &[rows, 2], numbered).unwrap();
        let sums = array(5).zip(&array(5).map(|x| *x as f64), |a, b| *a as f64 + b);
        let doubled: Vec<_> = array(5).local().iter().map(|x| 2.0 * *x as f64).collect();
        assert_eq!(sums.unwrap().local(), doubled);
        let error = array(5).zip(&array(4), |a, b| a + b).unwrap_err();
        says(&error, "lie otherwise");
        let part = sde.split(0, 0).unwrap();
        let inner = DistArray::from_fn(&part, &[5, 2], numbered).unwrap();
        part.release().unwrap();
        let error = array(5).zip(&inner, |a, b| a + b).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OtherSet), "{error}");
    });
}

/// To the rank that fetched it the whole array would be its own part.
pub(super) fn an_array_that_one_process_saved_is_not_fetched(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let path = folder.path().join("store");
    let with_store = |builder: Builder| {
        let store = DirStore::open(&path).unwrap();
        builder.store(store).save(SavePolicy::EveryResult)
    };
    ranks.once(|| {
        let sde = with_store(Sde::builder()).build().unwrap();
        products.call(&sde, 3, 2).unwrap();
        sde.finish().unwrap();
    });
    ranks.run_ranks(|rank| {
        // The store is the first rank's own.
        let builder = match rank.number() {
            0 => with_store(Sde::builder()),
            _ => Sde::builder(),
        };
        let sde = rank.join(builder).build().unwrap();
        let inputs = inputs! { rows: 3_usize, columns: 2_usize };
        let key = sde.peek(&products, &inputs).unwrap().key();
        assert_eq!(sde.fetch(&[key], &Transfer::all()).unwrap(), [key]);
        let array = products.call(&sde, 3, 2).unwrap();
        assert_eq!(array.gather(&sde).unwrap(), expected(3, 2));
        sde.finish().unwrap();
    });
}

#[sde::app(name = "ranks.arrays.element")]
fn element(index: u64) -> Result<f64, AppError> {
    match index {
        13 | 17 => Err(AppError::message(format!("{index} has no element"))),
        _ => Ok(index as f64 / 2.0),
    }
}

#[sde::app(name = "ranks.arrays.filled", distributed)]
fn filled(sde: &Handle, size: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::try_from_fn(sde, &[size], |at| Ok(*element.call(sde, at[0] as u64)?))
}

/// The first example of a distributed app, in the document that asked for them: each rank computes its own elements, the loop looks
/// local, and nothing is synchronized at the end. A function that fills an array could not fail, so no app could be run in it.
pub(super) fn an_array_is_filled_by_runs_of_an_ordinary_app(ranks: Ranks<'_>) {
    let told = ranks.run_with_log(|sde, log| {
        let array = filled.call(&sde, 10).unwrap();
        let all: Vec<_> = (0..10).map(|index| f64::from(index) / 2.0).collect();
        assert_eq!(array.gather(&sde).unwrap(), all);
        let again = filled.call(&sde, 10).unwrap();
        assert!(Value::ptr_eq(&array, &again));
        let sources = names(log.sources("ranks.arrays.filled"));
        assert_eq!(sources, names([Source::Computed, Source::Memory]));
        log.started("ranks.arrays.element")
    });
    assert_eq!(told.iter().sum::<usize>(), 10, "{told:?}");
}

pub(super) fn an_element_that_fails_on_one_rank_is_the_error_of_all(ranks: Ranks<'_>) {
    let size = ranks.size();
    // Of 20 elements the first that fails is on this rank.
    let rows = Layout::rows(&[20], size);
    let has_it = |rank: &usize| rows.block(*rank).offset[0] + rows.block(*rank).extent[0] > 13;
    let first = (0..size).find(has_it);
    let texts = ranks.run(|sde| {
        let fill = |elements: usize| {
            let one = |at: &[usize]| Ok(*element.call(&sde, at[0] as u64)?);
            DistArray::try_from_fn(&sde, &[elements], one)
        };
        let at_top = fill(20).unwrap_err();
        assert_kind!(at_top, OnRank);
        let in_app = filled.call(&sde, 20).unwrap_err();
        if size > 1 {
            // Ranks that mean different arrays.
            let error = fill(4 + sde.rank().unwrap()).unwrap_err();
            assert_kind!(error, Disagree);
        }
        // Nothing is broken by that.
        assert_eq!(fill(13).unwrap().sum(&sde).unwrap(), 39.0);
        [at_top, in_app].map(|error| format!("{error:#}"))
    });
    all_are(&texts, &texts[0]);
    for text in &texts[0] {
        says(text, &format!("on rank {}: ", first.unwrap()));
        says(text, "13 has no element");
    }
    let error = filled.call(&Sde::new(), 20).unwrap_err();
    says(&error, "13 has no element");
}
