//! Row 16: an array gets another layout.

use sde::Sde;
use sde_arrays::{Block, DistArray, Layout};
use sde_benches::table::{Aim, Row};

use crate::together::Together;

const MOVE: &str = "redistribute";
const EXCHANGE: &str = "exchange";
const FRESH: &str = "exchange to new memory";
/// 64 MiB in all.
const SHAPE: [usize; 2] = [4096, 2048];
const ROUNDS: usize = 41;

pub fn rows(together: &Together<'_>) -> Vec<Row> {
    let size = together.size();
    let columns = Layout::grid(&SHAPE, &[1, size]).unwrap();
    [
        ("from rows to columns", columns, 1.7),
        ("rows, each rank's to the next", next(size), 1.5),
    ]
    .into_iter()
    .flat_map(|(name, layout, most)| of(together, name, &layout, most))
    .collect()
}

/// Each rank has the rows of the rank before it.
fn next(size: usize) -> Layout {
    let rows = Layout::rows(&SHAPE, size);
    let blocks: Vec<Block> = (0..size)
        .map(|rank| rows.block((rank + 1) % size))
        .collect();
    Layout::of_blocks(&SHAPE, blocks).unwrap()
}

fn of(together: &Together<'_>, name: &str, layout: &Layout, most: f64) -> [Row; 2] {
    let sde = together.engine();
    let counts = counts(&sde, layout);
    let arrive: usize = counts.1.iter().sum();
    let number = |at: &[usize]| (at[0] * SHAPE[1] + at[1]) as f64;
    let array = DistArray::from_fn(&sde, &SHAPE, number).unwrap();
    let bytes = size_of_val(array.local());
    let send = vec![1_u8; bytes];
    let mut receive = vec![0_u8; arrive];
    let mut tries = together.tries(ROUNDS);
    tries.case(MOVE, || {
        let mut moved = None;
        let took = together.time(|| moved = array.redistribute(&sde, layout.clone()).ok());
        let local = moved.as_ref().map(|array| array.local()[0]);
        let first = layout.block(together.rank()).offset;
        assert_eq!(local, Some(number(&first)));
        took
    });
    tries.case(EXCHANGE, || {
        together.time(|| together.exchange(&send, &mut receive, &counts))
    });
    tries.case(FRESH, || {
        together.time(|| {
            let mut receive = vec![0_u8; arrive];
            together.exchange(&send, &mut receive, &counts);
            std::hint::black_box(&receive);
        })
    });
    let measured = tries.run();
    sde.finish().unwrap();
    let row = |reference: &str, text: &str, aim| Row {
        number: 16,
        work: format!("64 MiB, {name}"),
        reference: text.to_owned(),
        ratio: measured.ratio(MOVE, reference),
        aim,
        time: measured.nanoseconds(MOVE),
        reference_time: measured.nanoseconds(reference),
    };
    [
        row(
            EXCHANGE,
            "one `MPI_Alltoallv` of the same bytes",
            Aim::AtMost(most),
        ),
        row(FRESH, "the same, to memory that is new", Aim::Shown),
    ]
}

/// The bytes that this rank sends to each rank, and gets from each.
fn counts(sde: &Sde, layout: &Layout) -> (Vec<usize>, Vec<usize>) {
    let (rank, size) = (sde.rank().unwrap(), sde.ranks().unwrap());
    let rows = Layout::rows(&SHAPE, size);
    let of = |own: &Layout, other: &Layout| -> Vec<usize> {
        let own = own.block(rank);
        (0..size)
            .map(|rank| shared(&own, &other.block(rank)))
            .collect()
    };
    (of(&rows, layout), of(layout, &rows))
}

/// The bytes of the intersection of two blocks.
fn shared(one: &Block, other: &Block) -> usize {
    let axis = |axis: usize| {
        let end = |block: &Block| block.offset[axis] + block.extent[axis];
        let first = one.offset[axis].max(other.offset[axis]);
        end(one).min(end(other)).saturating_sub(first)
    };
    axis(0) * axis(1) * size_of::<f64>()
}
