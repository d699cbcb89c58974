//! An `#[sde::app]` function called with many arguments at once.

use std::ops::ControlFlow;

use super::Handle;
use super::items::Loop;
use super::parallel::{Distinct, item_name, may_be_dealt_out};
use super::request::{Options, TypedOptions};
use super::source::CalledApp;
use super::subset::Transfer;
use crate::app::{App, ResolvedOnce};
use crate::error::{Error, ErrorKind};
use crate::inputs::Inputs;
use crate::ranks::collective::{CollectiveOp, Header, Ranks};
use crate::result_map::typed::FromResults;

/// How many items each thread of each rank gets at once, where ranks share items that come one by one.
const AT_ONCE: usize = 8;

impl Handle {
    /// The value or the error for each of a list of inputs. Of items that did not fit the time left it is `NotStarted`.
    pub(super) fn each_of_list<G: FromResults>(
        &self,
        app: &dyn App,
        resolved: &ResolvedOnce,
        list: &[Inputs],
    ) -> Result<Vec<Result<G, Error>>, Error> {
        let all = self.some_of_list(app, resolved, list, false)?;
        Ok(all.into_iter().flatten().collect())
    }

    /// The value for each of a list of inputs, or the first error. Nothing more begins after an error, or when an item does not
    /// fit the time left.
    pub(super) fn all_of_list<G: FromResults>(
        &self,
        app: &dyn App,
        resolved: &ResolvedOnce,
        list: &[Inputs],
    ) -> Result<Vec<G>, Error> {
        let (mut values, mut left) = (Vec::with_capacity(list.len()), 0);
        for item in self.some_of_list(app, resolved, list, true)? {
            match item {
                Some(Ok(value)) => values.push(value),
                Some(Err(error)) if !error.is_not_started() => return Err(error),
                _ => left += 1,
            }
        }
        match left {
            0 => Ok(values),
            _ => Err(self.out_of_time(values.len(), Some(left))),
        }
    }

    fn some_of_list<G: FromResults>(
        &self,
        app: &dyn App,
        resolved: &ResolvedOnce,
        list: &[Inputs],
        ends_if_one_fails: bool,
    ) -> Result<Vec<Option<Result<G, Error>>>, Error> {
        let app = self.linked(app, resolved)?;
        let distinct = Distinct::of(list.iter().enumerate(), app.resolved.nondeterministic);
        let (options, all) = (TypedOptions::<G>::OPTIONS, Transfer::all());
        let results = self.map_distinct(&app, &distinct, options, &all, ends_if_one_fails)?;
        let value = |(item, at): (usize, &usize)| {
            Some(match results[*at].as_ref()? {
                Ok(results) => G::from_map(results),
                Err(error) => Err(of_item(item, &list[item], error)),
            })
        };
        Ok(distinct.place_of.iter().enumerate().map(value).collect())
    }

    /// Runs an app for inputs that come one by one, and gives each value away at once.
    pub(super) fn each_as_it_comes<G: FromResults, C: GoesOn>(
        &self,
        app: &dyn App,
        resolved: &ResolvedOnce,
        items: impl Iterator<Item = Inputs> + Send,
        mut each: impl FnMut(usize, G) -> C + Send,
    ) -> Result<(), Error> {
        let app = self.linked(app, resolved)?;
        may_be_dealt_out(&app)?;
        if let Some(ranks) = self.all_ranks() {
            return self.each_by_ranks(ranks, &app, items, each);
        }
        let total = exact_length(&items);
        let work = Loop {
            label: &app.resolved.name,
            threads: total.unwrap_or(usize::MAX),
            total: |_| total,
            most_deferred: DEFERRED,
        };
        let gate = self.gate(&app);
        let options = Options {
            gate: gate.as_ref(),
            ..TypedOptions::<G>::OPTIONS.clone()
        };
        let item = self.for_items();
        let one = |inputs: &Inputs, waits| {
            item()
                .unless_elsewhere(&app, inputs, &options, waits)
                .and_then(|results| G::from_map(&results))
        };
        let (mut given, mut failed, mut end) = (0, None::<(usize, Error)>, None);
        let mut planned = None;
        let name = |at, inputs: &Inputs| item_name(at, inputs);
        work.run(self, items.enumerate(), name, one, |at, inputs, result| {
            match result {
                // An item that was under way when the function had enough.
                _ if end == Some(End::Enough) => {}
                Ok(value) => {
                    given += 1;
                    if !each(at, value).goes_on() {
                        end = Some(End::Enough);
                    }
                }
                Err(error) if error.is_not_started() => end = Some(End::OutOfTime),
                Err(error) if error.is_planned() => planned = Some(error),
                Err(error) if failed.as_ref().is_none_or(|(first, _)| at < *first) => {
                    failed = Some((at, of_item(at, inputs, &error)));
                }
                Err(_) => {}
            }
            end.is_none() && failed.is_none()
        });
        match (failed, end) {
            (Some((_, error)), _) => Err(error),
            (None, Some(End::OutOfTime)) => {
                let left = total.map(|total| total.saturating_sub(given));
                Err(self.out_of_time(given, left))
            }
            (None, _) => planned.map_or(Ok(()), Err),
        }
    }

    fn each_by_ranks<G: FromResults, C: GoesOn>(
        &self,
        ranks: &Ranks,
        app: &CalledApp<'_>,
        mut items: impl Iterator<Item = Inputs>,
        mut each: impl FnMut(usize, G) -> C,
    ) -> Result<(), Error> {
        let (mut first, all) = (0, Transfer::all());
        let total = exact_length(&items);
        let header = Header::keyless(CollectiveOp::Agree, &app.resolved.name);
        let threads = ranks.gather_all(header, Ok(self.engine().helpers().threads()))?;
        let at_once = AT_ONCE * threads.iter().sum::<usize>();
        loop {
            let list: Vec<Inputs> = items.by_ref().take(at_once).collect();
            if list.is_empty() {
                return Ok(());
            }
            let distinct = Distinct::of(list.iter().enumerate(), app.resolved.nondeterministic);
            let engine = self.engine();
            let results = engine.rank_map(self, ranks, app, &distinct.inputs, &all)?;
            let mut give_all = || {
                for (at, place) in distinct.place_of.iter().enumerate() {
                    let results = match &results[*place] {
                        // All ranks know of it.
                        Err(error) if error.is_not_started() => return Ok(true),
                        results => results.as_ref(),
                    };
                    let results = results.map_err(|error| of_item(first + at, &list[at], error))?;
                    if !each(first + at, G::from_map(results)?).goes_on() {
                        return Ok(false);
                    }
                }
                Ok(true)
            };
            // One rank may have enough, or be cancelled: then all end.
            let header = Header::keyless(CollectiveOp::Agree, &app.resolved.name);
            if ranks.gather_all(header, give_all())?.contains(&false) {
                return Ok(());
            }
            let is_left = |place: &usize| {
                results[*place]
                    .as_ref()
                    .is_err_and(|error| error.is_not_started())
            };
            if let Some(given) = distinct.place_of.iter().position(is_left) {
                let left = total.map(|total| total - (first + given));
                return Err(self.out_of_time(first + given, left));
            }
            first += list.len();
        }
    }

    fn out_of_time(&self, done: usize, left: Option<usize>) -> Error {
        let stopped = self.engine().job.is_stopped();
        ErrorKind::OutOfTime {
            done,
            left,
            stopped,
        }
        .into()
    }
}

/// Tells whether a function that is given value by value wants more: it returns nothing, or `ControlFlow`.
pub trait GoesOn {
    /// Whether it wants more.
    fn goes_on(self) -> bool;
}

impl GoesOn for () {
    fn goes_on(self) -> bool {
        true
    }
}

impl GoesOn for ControlFlow<()> {
    fn goes_on(self) -> bool {
        self.is_continue()
    }
}

/// How many items that come one by one are put off before some are waited for.
const DEFERRED: usize = 256;

/// Why a loop over items that come one by one ended before its items did.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The function that gets the values wants no more.
    Enough,
    OutOfTime,
}

/// How many items will come, if that is known.
fn exact_length(items: &impl Iterator) -> Option<usize> {
    let (least, most) = items.size_hint();
    most.filter(|most| *most == least)
}

/// The error of one of many calls. One that was not begun, or is planned, has not failed.
fn of_item(item: usize, inputs: &Inputs, error: &Error) -> Error {
    if error.is_not_started() || error.is_planned() {
        return error.clone();
    }
    ErrorKind::Item {
        item,
        inputs: inputs.short(),
        source: error.clone(),
    }
    .into()
}
