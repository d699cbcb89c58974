//! A function that is remembered, in twenty lines.

use sde::{Sde, Source, inputs};

/// How many steps the Collatz rule takes from `n` to 1.
#[sde::app]
fn steps_to_one(sde: &sde::Handle, n: u64) -> Result<u64, sde::Error> {
    Ok(match n {
        0 | 1 => 0,
        n if n % 2 == 0 => 1 + *steps_to_one.call(sde, n / 2)?,
        n => 1 + *steps_to_one.call(sde, 3 * n + 1)?,
    })
}

fn main() -> Result<(), sde::Error> {
    let sde = Sde::new();
    for n in [27, 54, 97, 97] {
        let outcome = sde.request(&steps_to_one, &inputs! { n: n as u64 }).run()?;
        println!(
            "{n:3} -> 1 in {:3} steps ({:?})",
            *outcome.results.get::<u64>("result")?,
            outcome.source
        );
    }
    // 54 needed one step more than 27, which was remembered.
    assert_eq!(
        sde.request(&steps_to_one, &inputs! { n: 54_u64 })
            .run()?
            .source,
        Source::Map
    );
    println!(
        "{} computed, {} remembered",
        sde.stats().total.computed,
        sde.stats().total.hits()
    );
    Ok(())
}
