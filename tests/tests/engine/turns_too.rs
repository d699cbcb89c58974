//! Apps that are not thread-safe run one at a time.

use sde::{Handle, Sde, inputs};

#[sde::app(name = "turns.nested", not_thread_safe)]
fn nested(sde: &Handle, depth: u64) -> Result<u64, sde::Error> {
    match depth {
        0 => Ok(0),
        _ => Ok(1 + *nested.call(sde, depth - 1)?),
    }
}

#[test]
fn a_run_beneath_itself_has_the_turn_already() {
    assert_eq!(*nested.call(&Sde::new(), 5).unwrap(), 5);
}

/// Claims came before turns: a run that waited for its turn with a claim in hand held
/// up the run that had the turn, by timing alone.
#[test]
fn runs_that_need_each_others_results_do_not_fail_by_timing() {
    for _ in 0..200 {
        let sde = Sde::builder().threads(3).build().unwrap();
        let list = [3_u64, 2, 1, 0].map(|depth| inputs! { depth: depth });
        let results = sde.par_map(&nested, &list);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}
