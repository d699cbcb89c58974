//! `join` and `par_map`: many runs at once, with the engine knowing who waits for
//! whom.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::super::gate::Gate;
use super::Handle;
use super::items::Ended;
use super::request::{Options, is_left};
use super::source::{AppSource, CalledApp};
use super::subset::Transfer;
use crate::error::{Error, ErrorKind};
use crate::inputs::Inputs;
use crate::result_map::ResultMap;
use crate::sync::lock;

impl Handle {
    /// Runs an app over many inputs on several threads; the results are in the
    /// order of the inputs. Equal inputs are run once, and nothing is computed
    /// twice, however the runs are nested. Observers are told of the progress.
    ///
    /// An error of one run does not stop the others: their results are remembered. Collect into a `Result` for the
    /// first error:
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// use sde::{Sde, inputs};
    ///
    /// let sde = Sde::new();
    /// let list: Vec<_> = [1.0, 2.0, 3.0, 2.0].map(|x: f64| inputs! { x: x }).into();
    /// let results = sde.par_map(&square, &list).into_iter().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(*results[3].get::<f64>("result")?, 4.0);
    /// assert_eq!(sde.stats().total.computed, 3);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// Where work is [shared](crate::SharedWork) with other processes, each goes through the list in an order of
    /// its own, and items that another process is at come last.
    ///
    /// In a job whose [time](Self::time_left) is short nothing begins that does not fit, unless it is called in a body: such an
    /// item has the error [`NotStarted`](ErrorKind::NotStarted). What is remembered is given.
    ///
    /// On several ranks, at the top of a program and in apps that all ranks run together, it is collective. Runs that
    /// nobody remembers are dealt out to the ranks (by their cost, if the app tells it). Each of these keys is computed
    /// once over all ranks, and afterwards every rank has every result. A rank that has nothing left takes items that
    /// another has not begun, so where there are more items than ranks they run on threads that are not this one. Runs
    /// that several items need are computed by each rank that needs them. Progress is that of the rank's own share, and
    /// says so: others may still compute when it is full. An app that all ranks run together
    /// ([`AppInfo::distributed`](crate::AppInfo::distributed)) is refused.
    ///
    /// # Panics
    /// If a run panics, after the runs that had begun have ended. The item's name stands before the panic's text.
    pub fn par_map<A: AppSource + Sync + ?Sized>(
        &self,
        app: &A,
        list: &[Inputs],
    ) -> Vec<Result<ResultMap, Error>> {
        self.par_map_with(app, list, &Transfer::all())
    }

    /// Runs an app over many inputs, and brings only some of the values that other ranks computed to this rank. Of
    /// the others this rank gets the keys. Asking a map for a value that stayed there is an error that says so, and
    /// [`fetch`](Self::fetch) gets it later.
    ///
    /// # Panics
    /// As [`par_map`](Self::par_map).
    pub fn par_map_with<A: AppSource + Sync + ?Sized>(
        &self,
        app: &A,
        list: &[Inputs],
        transfer: &Transfer,
    ) -> Vec<Result<ResultMap, Error>> {
        self.map_declared(app, list, |app, distinct| {
            let options = Options::default();
            let results = self.map_distinct(app, distinct, &options, transfer, false)?;
            Ok(results.into_iter().flatten().collect())
        })
    }

    /// Runs a [distributed](crate::AppInfo::distributed) app over many inputs, each on a set of so many ranks; the
    /// results are in the order of the inputs. Collective over all ranks. Each of them has every result afterwards, as
    /// after a [release](crate::ranks::Subset::release): values that lie on several ranks then lie on all of them. Equal
    /// inputs are run once, and points that all ranks remember are not run.
    ///
    /// A set that has computed a point takes the next, so one costly point holds up no other. The ranks are split once.
    /// Ranks that fill no set compute nothing: of 7 ranks in sets of 3 one is left, which then deals the points out.
    /// Where all ranks are in sets the first one deals besides. So it runs bodies on another thread, and for each
    /// collective operation of its set the two threads wait for each other once more. Progress is told on the first
    /// rank. On one rank, or without ranks, each point runs there.
    ///
    /// An error of one run does not stop the others. Values that [never move](crate::Tag::NoCache) are made again by all ranks together.
    ///
    /// ```
    /// use sde::{Handle, Sde, inputs};
    ///
    /// #[sde::app(distributed)]
    /// fn sum(sde: &Handle, terms: u64) -> Result<u64, sde::Error> {
    ///     let (rank, ranks) = (sde.rank()? as u64, sde.ranks()?);
    ///     let mine: u64 = (1..=terms).skip(rank as usize).step_by(ranks).sum();
    ///     Ok(sde.gather("sums", mine)?.iter().map(|part| **part).sum())
    /// }
    ///
    /// let sde = Sde::new();
    /// let points: Vec<_> = (0..10_u64).map(|terms| inputs! { terms: terms }).collect();
    /// let sums = sde.par_map_on_sets(&sum, &points, 2);
    /// let last = sums.last().unwrap().as_ref().unwrap();
    /// assert_eq!(*last.get::<u64>("result")?, 45);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// Each result is the same error on all ranks, if they give different lists or numbers, or there are fewer ranks
    /// than a set has. So it is if the app is not distributed: [`par_map`](Self::par_map) is for it. On this rank, if
    /// it is called where others can't join in.
    ///
    /// # Panics
    /// If a run panics on this rank. No set begins anything more then, and the others get an error.
    pub fn par_map_on_sets<A: AppSource + Sync + ?Sized>(
        &self,
        app: &A,
        list: &[Inputs],
        ranks: usize,
    ) -> Vec<Result<ResultMap, Error>> {
        self.map_declared(app, list, |app, distinct| {
            let doing = || format!("maps {} on sets of ranks", app.resolved.name);
            let whole = self.collective_ranks(doing)?;
            self.engine()
                .set_map(self, whole, app, &distinct.inputs, ranks)
        })
    }

    /// The result for each inputs of a list. `map` gets the distinct ones, as the app declares them. Inputs that are not as
    /// declared have their error, on all ranks alike.
    fn map_declared<A: AppSource + ?Sized>(
        &self,
        app: &A,
        list: &[Inputs],
        map: impl FnOnce(&CalledApp<'_>, &Distinct<'_>) -> Result<Vec<Result<ResultMap, Error>>, Error>,
    ) -> Vec<Result<ResultMap, Error>> {
        let mapped = app.resolve(self).and_then(|app| {
            let declared = list.iter().map(|inputs| self.declared(&app, inputs));
            let declared: Vec<_> = declared.collect();
            let numbered = declared.iter().enumerate();
            let can_run = numbered.filter_map(|(at, inputs)| Some((at, inputs.as_deref().ok()?)));
            let distinct = Distinct::of(can_run, app.resolved.nondeterministic);
            let results = map(&app, &distinct)?;
            let mut places = distinct.place_of.iter();
            let of_item = |inputs: &Result<_, Error>| match inputs {
                Ok(_) => places.next().map(|at| results[*at].clone()),
                Err(error) => Some(Err(error.clone())),
            };
            Ok(declared.iter().filter_map(of_item).collect())
        });
        mapped.unwrap_or_else(|error| list.iter().map(|_| Err(error.clone())).collect())
    }

    /// The results for distinct inputs, from all ranks or from several threads. Threads begin nothing more once one run
    /// has failed, or did not fit the time left, if `ends_if_one_fails`: inputs not begun are `None`.
    pub(super) fn map_distinct(
        &self,
        app: &CalledApp<'_>,
        distinct: &Distinct<'_>,
        options: &Options<'_>,
        transfer: &Transfer,
        ends_if_one_fails: bool,
    ) -> Result<Vec<Option<Result<ResultMap, Error>>>, Error> {
        may_be_dealt_out(app)?;
        let list = &*distinct.inputs;
        if let Some(ranks) = self.all_ranks() {
            let results = self.engine().rank_map(self, ranks, app, list, transfer)?;
            return Ok(results.into_iter().map(Some).collect());
        }
        let gate = self.gate(app);
        let options = Options {
            gate: gate.as_ref(),
            ..options.clone()
        };
        let is_shared = self.engine().shares(app, options.names);
        let name = |at: usize, inputs: &&Inputs| item_name(distinct.first[at], inputs);
        let item = self.for_items();
        let each = |inputs: &&Inputs, waits| item().unless_elsewhere(app, inputs, &options, waits);
        let goes_on = |result: &Result<_, Error>| match result {
            Ok(_) => true,
            Err(error) => !ends_if_one_fails || error.is_planned(),
        };
        Ok(self.in_order((&app.resolved.name, list, is_shared), name, each, goes_on))
    }

    /// The gate of a sweep. In a body there is none: what an item needs is computed.
    pub(crate) fn gate(&self, app: &CalledApp<'_>) -> Option<Gate<'_>> {
        let is_in_body = self.caller().is_some();
        (!is_in_body).then(|| Gate::new(self.engine(), &app.resolved.name))
    }

    /// The results of a run, unless another process is at it and it is not to be waited for.
    pub(super) fn unless_elsewhere(
        &self,
        app: &CalledApp<'_>,
        inputs: &Inputs,
        options: &Options<'_>,
        waits: bool,
    ) -> Ended<Result<ResultMap, Error>> {
        let options = Options {
            waits_for_processes: waits,
            ..options.clone()
        };
        match self.outcome(app, inputs, &options) {
            Err(error) if !waits && is_left(&error) => Ended::Elsewhere,
            outcome => Ended::of(outcome.map(|outcome| outcome.results)),
        }
    }

    /// Calls a function on many items on several threads; the results are in the order of the items. Runs that the
    /// function makes through the handle it is given belong to the run that called `par_each`.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// let sde = sde::Sde::new();
    /// let squares = sde.par_each(&[1.0, 2.0, 3.0], |sde, x| square.call(sde, *x));
    /// assert_eq!(*squares[2].as_ref().unwrap(), 9.0);
    /// ```
    ///
    /// Where work is [shared](crate::SharedWork) with other processes, each goes through the list in an order of its own,
    /// so that they rarely come to the same run at once.
    ///
    /// It does not look at the [time](Self::time_left) of a job: it knows no app, and has no result for an item that is not
    /// begun. A sweep of one app does, [`par_call`](crate::CallApp::par_call) or [`par_map`](Self::par_map).
    ///
    /// # Panics
    /// If the function panics, after the calls that had begun have ended. The item's number stands before the panic's text.
    pub fn par_each<T: Sync, R: Send>(
        &self,
        items: &[T],
        each: impl Fn(&Self, &T) -> R + Sync,
    ) -> Vec<R> {
        let of_item = self.for_items();
        let each = |item: &T, _| Ended::Done(each(&of_item(), item));
        let name = |at, _: &T| format!("item {at}");
        let list = ("par_each", items, self.engine().sharing.is_some());
        let all = self.in_order(list, name, each, |_| true);
        all.into_iter().flatten().collect()
    }

    /// Calls two functions, on two threads if a helper is free.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// let sde = sde::Sde::new();
    /// let (a, b) = sde.join(|sde| square.call(sde, 3.0), |sde| square.call(sde, 4.0));
    /// assert_eq!(*a? + *b?, 25.0);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Panics
    /// If either function panics, after the other has ended.
    pub fn join<A: Send, B: Send>(
        &self,
        a: impl FnOnce(&Self) -> A + Send,
        b: impl FnOnce(&Self) -> B + Send,
    ) -> (A, B) {
        let (mut of_a, mut of_b) = (None, None);
        let item = self.for_items();
        let jobs: [Box<dyn FnOnce() + Send + '_>; 2] = [
            Box::new(|| of_a = Some(a(&item()))),
            Box::new(|| of_b = Some(b(&item()))),
        ];
        // Whichever thread comes first does a job.
        let jobs = jobs.map(|job| Mutex::new(Some(job)));
        self.share(1, || {
            for job in &jobs {
                let job = lock(job).take();
                job.into_iter().for_each(|job| job());
            }
        });
        drop(jobs);
        match (of_a, of_b) {
            (Some(a), Some(b)) => (a, b),
            _ => unreachable!("a panic of either function was passed on by `share`"),
        }
    }
}

/// Checks that the app is not one whose runs all ranks make together.
pub(super) fn may_be_dealt_out(app: &CalledApp<'_>) -> Result<(), Error> {
    let resolved = &app.resolved;
    if !resolved.is_distributed() {
        return Ok(());
    }
    let (app, why) = (Arc::clone(&resolved.name), resolved.why_distributed());
    Err(ErrorKind::RunTogether { app, why }.into())
}

/// An item of a sweep, for people.
pub(super) fn item_name(item: usize, inputs: &Inputs) -> String {
    format!("item {item} ({})", inputs.short())
}

/// The distinct inputs of a list.
pub(super) struct Distinct<'i> {
    pub(super) inputs: Vec<&'i Inputs>,
    /// The number of the first item that has each.
    pub(super) first: Vec<usize>,
    /// The place among them of each item.
    pub(super) place_of: Vec<usize>,
}

impl<'i> Distinct<'i> {
    /// Of a list of numbered inputs.
    pub(super) fn of(list: impl IntoIterator<Item = (usize, &'i Inputs)>, keep_all: bool) -> Self {
        let list = list.into_iter();
        let most = list.size_hint().1.unwrap_or(0);
        let mut all = Self {
            inputs: Vec::with_capacity(most),
            first: Vec::with_capacity(most),
            place_of: Vec::with_capacity(most),
        };
        let mut places: HashMap<&[u8], usize> = HashMap::with_capacity(most);
        for (number, inputs) in list {
            let next = all.inputs.len();
            // Inputs that can't be encoded give their error when they are run.
            let at = match inputs.to_keep() {
                Ok(Some(encoded)) if !keep_all => *places.entry(encoded).or_insert(next),
                _ => next,
            };
            if at == next {
                all.inputs.push(inputs);
                all.first.push(number);
            }
            all.place_of.push(at);
        }
        all
    }
}
