//! The verbs of an `#[sde::app]` function.

use super::Handle;
use super::par_call::GoesOn;
use super::peek::Peek;
use super::request::{Options, Policy, TypedOptions};
use crate::app::{App, ResolvedOnce};
use crate::error::Error;
use crate::event::{RunId, Source};
use crate::inputs::Inputs;
use crate::key::Key;
use crate::result_map::typed::FromResults;

/// An [`#[sde::app]`](macro@crate::app) function, called by its arguments.
///
/// Each function also has these verbs as methods, but for `call_with`, and without arguments for `par_call` and its like;
/// and it has `call`, which borrows its arguments. So the trait is for code that is given any function of some type.
///
/// ```
/// use sde::{CallApp, Handle, Sde, Value};
///
/// #[sde::app]
/// fn parabola(x: f64) -> f64 { (x - 2.0) * (x - 2.0) }
///
/// /// The argument for which the function is least.
/// fn least<A>(sde: &Handle, app: &A, grid: &[f64]) -> Result<f64, sde::Error>
/// where
///     A: CallApp<Args = f64, Given = Value<f64>>,
/// {
///     let values = app.par_call(sde, grid.iter().copied())?;
///     let all = grid.iter().zip(&values);
///     let least = all.min_by(|a, b| a.1.total_cmp(b.1));
///     Ok(least.map_or(f64::NAN, |(x, _)| *x))
/// }
///
/// assert_eq!(least(&Sde::new(), &parabola, &[0.0, 1.0, 2.0, 3.0])?, 2.0);
/// # Ok::<(), sde::Error>(())
/// ```
pub trait CallApp: App + Sized {
    /// The arguments: a tuple, or the argument itself if there is one. `String` stands for `&str`, `Vec<T>` for
    /// `&[T]`, `PathBuf` for `&Path`, `T` for `&T`.
    type Args;

    /// The type that a call gives: a [`Value`](crate::Value), or the struct of values of
    /// [`Results`](trait@crate::Results).
    type Given: FromResults;

    /// The identity of the function, once it has one.
    #[doc(hidden)]
    fn resolved() -> &'static ResolvedOnce;

    /// The arguments by name.
    #[doc(hidden)]
    fn to_inputs(args: Self::Args) -> Inputs;

    /// Calls the app with a tuple of arguments: gives the remembered result, or computes and remembers it.
    ///
    /// # Errors
    /// As [`Handle::run`].
    fn call_with(&self, sde: &Handle, args: Self::Args) -> Result<Self::Given, Error> {
        Ok(self.request(sde, args).run()?.value)
    }

    /// A call with more to say of it: a policy; and with an outcome that tells how the result was got.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// use sde::{Policy, Sde, Source};
    ///
    /// let sde = Sde::new();
    /// assert!(square.request(&sde, 3.0).policy(Policy::OnlyIfRemembered).run().is_err());
    /// let called = square.request(&sde, 3.0).run()?;
    /// assert_eq!((*called.value, called.source), (9.0, Source::Computed));
    /// # Ok::<(), sde::Error>(())
    /// ```
    fn request<'a>(&'a self, sde: &'a Handle, args: Self::Args) -> CallRequest<'a, Self> {
        CallRequest {
            app: self,
            sde,
            inputs: Self::to_inputs(args),
            options: TypedOptions::<Self::Given>::OPTIONS.clone(),
        }
    }

    /// Calls the app with each of many arguments, on several threads. Gives the values in the order of the arguments, equal
    /// arguments once. After an error the items that have begun are finished, and no others begin. On several ranks all
    /// items that were dealt out are finished.
    ///
    /// In a job whose [time](Handle::time_left) is short nothing begins that does not fit, unless it is called in a body: what is done is
    /// remembered. All arguments are collected first; endless ones are for [`par_call_each`](Self::par_call_each).
    ///
    /// # Errors
    /// That of the first item that failed, which it names; [`OutOfTime`](crate::ErrorKind::OutOfTime) if none failed and
    /// some were not begun.
    fn par_call<I>(&self, sde: &Handle, items: I) -> Result<Vec<Self::Given>, Error>
    where
        I: IntoIterator<Item = Self::Args>,
    {
        let list: Vec<_> = items.into_iter().map(Self::to_inputs).collect();
        sde.all_of_list(self, Self::resolved(), &list)
    }

    /// Calls the app with each of many arguments, and gives the value or the error of each, in the order of the
    /// arguments: an error of one stops no other. An item that does not fit the [time](Handle::time_left) of the job has
    /// the error [`NotStarted`](crate::ErrorKind::NotStarted); what is remembered is given.
    fn try_par_call<I>(&self, sde: &Handle, items: I) -> Vec<Result<Self::Given, Error>>
    where
        I: IntoIterator<Item = Self::Args>,
    {
        let list: Vec<_> = items.into_iter().map(Self::to_inputs).collect();
        let all = sde.each_of_list(self, Self::resolved(), &list);
        all.unwrap_or_else(|error| list.iter().map(|_| Err(error.clone())).collect())
    }

    /// Calls the app with each of many arguments, and gives each value, with its item's number, to a function as it
    /// comes. The value is held no longer. Equal arguments are found in the cache, or computed again if they are not
    /// kept. They come in any order: a sum of floating-point numbers over them may differ from run to run in its last
    /// digits, unless they are put in their places by number first.
    ///
    /// The function may return a `ControlFlow<()>`: after a `Break` nothing more begins. On several ranks items are
    /// dealt out in blocks, and all ranks end with the block in which one breaks.
    ///
    /// # Errors
    /// As [`par_call`](Self::par_call). How many items are left is not known if the arguments do not say how many they are.
    fn par_call_each<I, C: GoesOn>(
        &self,
        sde: &Handle,
        items: I,
        each: impl FnMut(usize, Self::Given) -> C + Send,
    ) -> Result<(), Error>
    where
        I: IntoIterator<Item = Self::Args>,
        I::IntoIter: Send,
    {
        let items = items.into_iter().map(Self::to_inputs);
        sde.each_as_it_comes(self, Self::resolved(), items, each)
    }
}

/// A call about to be made, by [`CallApp::request`], which has an example.
#[must_use = "a request does nothing until it is run"]
pub struct CallRequest<'a, A: CallApp> {
    app: &'a A,
    sde: &'a Handle,
    inputs: Inputs,
    options: Options<'static>,
}

impl<A: CallApp> CallRequest<'_, A> {
    /// Sets how the call uses the cache.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.options.policy = policy;
        self
    }

    /// Gives the run's failure, if the store has one of an earlier program and it still holds, in place of making the run
    /// again. See [`Builder::keep_failures`](crate::Builder::keep_failures), which says so for all calls.
    pub fn keep_failures(mut self) -> Self {
        self.options.keeps_failures = true;
        self
    }

    /// Makes the call.
    ///
    /// # Errors
    /// As [`Handle::run`]; and that nothing is remembered where only that was allowed.
    pub fn run(self) -> Result<Called<A::Given>, Error> {
        let app = self.sde.linked(self.app, A::resolved())?;
        let outcome = self.sde.outcome(&app, &self.inputs, &self.options)?;
        Ok(Called {
            value: A::Given::from_map(&outcome.results)?,
            key: outcome.key,
            source: outcome.source,
            made_by: outcome.made_by,
        })
    }

    /// Tells what the call would do under the ordinary policy, and why, without running anything; see [`Handle::peek`].
    ///
    /// # Errors
    /// As [`Handle::peek`].
    pub fn peek(&self) -> Result<Peek, Error> {
        self.sde.peek(self.app, &self.inputs)
    }
}

impl<A: CallApp> std::fmt::Debug for CallRequest<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallRequest")
            .field("inputs", &self.inputs.names().collect::<Vec<_>>())
            .field("policy", &self.options.policy)
            .finish_non_exhaustive()
    }
}

/// Holds what a typed request gives: the result, and where it came from.
///
/// `source` and `made_by` tell the state of the cache, which is in no key; see [`Outcome`](crate::Outcome).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Called<T> {
    /// The result.
    pub value: T,
    /// The key of the run.
    pub key: Key,
    /// The source of the result.
    pub source: Source,
    /// The computation that made it.
    pub made_by: RunId,
}
