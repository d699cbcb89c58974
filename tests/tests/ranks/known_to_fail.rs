//! What does not hold yet. Each says what it gives now, and turns red when that is mended: then it belongs to the
//! others.

use sde::{DistArray, Handle};

use super::counting::counted;

#[sde::app(name = "ranks.known.array", distributed, tags(distributed))]
fn array(sde: &Handle, number: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[1024], |at| (at[0] + number) as f64)
}

/// Found by a program that split its ranks for a short piece, which took seconds: all arrays that were remembered went
/// with them, and none was asked for.
#[test]
#[should_panic(expected = "bytes of arrays were moved")]
fn a_split_moves_no_array_that_nobody_asks_for() {
    let (moved, _) = counted(
        2,
        |sde| (0..20).for_each(|number| drop(array.call(sde, number).unwrap())),
        |sde| {
            let color = sde.rank().unwrap() as u32;
            sde.split_for(color, 0, |_| Ok(())).unwrap();
        },
    );
    assert_eq!(moved, 0, "{moved} bytes of arrays were moved");
}
