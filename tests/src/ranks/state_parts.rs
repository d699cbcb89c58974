//! Iterations whose states are parts of one value, gone on from by any number of ranks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sde::ranks::{Edge, Layout};
use sde::{
    AppError, AppInfo, DistArray, Distributed, EventLog, Handle, ResultMap, ResultSpec, Sde,
};
use serde::{Deserialize, Serialize};

use super::scratch::{Came, began_again, ended, over, warned};
use super::{Rank, Ranks, all_are};
use crate::{made, x};

const STEPS: u32 = 9;
const SHAPE: [usize; 2] = [7, 6];

#[derive(Clone, Distributed, Serialize, Deserialize)]
struct State {
    #[distributed(same)]
    step: u32,
    field: DistArray<f64>,
}

/// A field that evens out, cut off before a step.
#[derive(Clone, Copy)]
struct Field {
    stops_at: u32,
    /// Cut along both dimensions.
    is_in_grid: bool,
}

const WHOLE: Field = Field {
    stops_at: STEPS,
    is_in_grid: false,
};

impl Field {
    fn stops_at(self, stops_at: u32) -> Self {
        Self { stops_at, ..self }
    }

    fn run(self, sde: &Handle, made: &AtomicU32) -> Result<u64, AppError> {
        let scratch = sde.scratch::<State>().distributed();
        let (mut step, mut field) = match scratch.load()? {
            Some(state) => (state.step, state.field.clone()),
            None => (0, self.start(sde)?),
        };
        while step < STEPS {
            if step == self.stops_at {
                return Err(AppError::message("the job is cut off"));
            }
            let padded = field.padded(sde, &[1, 1], &[Edge::Periodic, Edge::Constant(1.0)])?;
            field = padded.map(|near| {
                let sides = near.at([-1, 0]) + near.at([1, 0]) + near.at([0, -1]);
                (sides + near.at([0, 1])) / 3.7
            });
            step += 1;
            made.fetch_add(1, Ordering::Relaxed);
            let field = field.clone();
            scratch.save(State { step, field })?;
        }
        Ok(field.sum(sde)?.to_bits())
    }

    fn start(self, sde: &Handle) -> Result<DistArray<f64>, sde::Error> {
        let ranks = sde.ranks()?;
        let layout = match self.is_in_grid && ranks == 4 {
            true => Layout::grid(&SHAPE, &[2, 2])?,
            false => Layout::rows(&SHAPE, ranks),
        };
        DistArray::from_fn_on(sde, layout, |at| (at[0] * 13 + at[1] * 7 % 5) as f64)
    }

    fn call(self, sde: &Sde, log: &EventLog) -> Came {
        let steps = Arc::new(AtomicU32::new(0));
        let of_app = Arc::clone(&steps);
        let info = AppInfo::new("state_parts.field", "1").distributed();
        let app = made(info.result(ResultSpec::new::<u64>("sum")), move |sde, _| {
            Ok(ResultMap::new().with("sum", self.run(sde, &of_app)?))
        });
        let result = sde.run(&app, &x(1));
        Came {
            made: steps.load(Ordering::Relaxed),
            result: result.ok().map(|map| *map.get("sum").unwrap()),
            warned: warned(log),
        }
    }

    fn job(self, ranks: Ranks<'_>, engine: impl Fn(Rank, &EventLog) -> Sde + Sync) -> Vec<Came> {
        ranks.run_ranks(|rank| {
            let log = EventLog::new();
            let sde = engine(rank, &log);
            let came = self.call(&sde, &log);
            sde.finish().unwrap();
            came
        })
    }

    fn job_in(self, ranks: Ranks<'_>, store: &Path) -> Vec<Came> {
        self.job(ranks, |rank, log| over(rank, log, store))
    }

    /// Where nothing is ever cut off.
    fn undisturbed(self, ranks: Ranks<'_>) -> Option<u64> {
        let came = self.job(ranks, |rank, _| rank.join(Sde::builder()).build().unwrap());
        came[0].result
    }
}

pub(super) fn any_number_of_ranks_goes_on_from_the_parts_of_a_state(ranks: Ranks<'_>) {
    let result = WHOLE.undisturbed(ranks.resized(1));
    for is_in_grid in [false, true] {
        let field = Field {
            is_in_grid,
            ..WHOLE
        };
        for (first, second) in [(3, 2), (2, 3), (4, 1), (1, 4), (3, 3), (4, 4)] {
            let folder = ranks.folder();
            let store = folder.path().join("store");
            let came = field.stops_at(5).job_in(ranks.resized(first), &store);
            ended(&came, 5, None);
            let came = field.stops_at(7).job_in(ranks.resized(second), &store);
            ended(&came, 2, None);
            let came = field.job_in(ranks.resized(first), &store);
            ended(&came, STEPS - 7, result);
        }
    }
}

/// One that was not saved is put together where each rank needs no other's.
pub(super) fn a_run_that_is_called_again_goes_on_from_what_is_in_memory(ranks: Ranks<'_>) {
    let result = WHOLE.undisturbed(ranks);
    let made = ranks.run_with_log(|sde, log| {
        let cut_off = WHOLE.stops_at(5).call(&sde, &log);
        let came = WHOLE.call(&sde, &log);
        (cut_off.made, came.made, came.result == result)
    });
    all_are(&made, &(5, STEPS - 5, true));
}

/// Each rank has a store of its own here, and does not see the parts of others.
pub(super) fn a_state_of_which_a_part_is_missing_is_not_gone_on_from(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let apart = |rank: Rank, log: &EventLog| {
        let own = folder.path().join(rank.number().to_string());
        over(rank, log, &own)
    };
    WHOLE.stops_at(5).job(ranks.resized(3), apart);
    let came = WHOLE.job(ranks.resized(2), apart);
    began_again(&came, STEPS, "no state is there with all of its parts");
}
