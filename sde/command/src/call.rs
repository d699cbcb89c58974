//! Asking for a command: what is remembered is judged, and what is not is run.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use sde_engine::__private::array_of_jobs as array_of_this_process;
use sde_engine::record::RunId;
use sde_engine::{
    AppError, AppInfo, Cost, DynApp, Handle, Inputs, Key, Outcome, Peek, Policy, ResultMap,
    ResultSpec, Sde, Source, Sweep, inputs,
};

use crate::builder::Command;
use crate::error::{CommandError, Ended, Failed, NotClean, Untraced, attempted};
use crate::judge::{Judgement, Verdict};
use crate::plan::Plan;
use crate::ran::{self, Ran};
use crate::results;
use crate::rules::Rules;
use crate::run::{self, Whole};
use crate::sync::lock;
use crate::trace::Trace;

/// The variable with which commands are run, and nothing is looked up or kept; unless it is empty or `0`.
pub const DISABLE: &str = "SDE_DISABLE";

/// Whether [`DISABLE`] is set.
#[must_use]
pub fn is_disabled() -> bool {
    std::env::var_os(DISABLE).is_some_and(|set| !set.is_empty() && set != "0")
}

impl Command {
    /// Gives the remembered run, or runs the program; and judges it by the rules.
    ///
    /// A remembered run that fails by rules by which it failed when it was made is made again, unless there is
    /// [`keep_failures`](Self::keep_failures). If it fails by others only, nothing is run, and the error names them: the rule may be mistyped.
    /// A run that did not end by itself is an error, and is never given.
    ///
    /// Costs the reading of the inputs, the program's loader run once to list libraries, and a look into the store.
    ///
    /// # Errors
    /// If the command is refused, the program can't be found or run, did not end by itself, or the run fails by its rules.
    pub fn run(&self, sde: &Handle) -> Result<Ran, CommandError> {
        self.run_in(&Call::new(self, sde, None)?)
    }

    /// Runs the command as a part of a list. Gives none if another process is at the run, unless it waits for that one.
    ///
    /// # Errors
    /// As [`run`](Self::run); and if there is too little time left for the run.
    #[doc(hidden)]
    pub fn run_in_sweep(
        &self,
        sde: &Handle,
        sweep: &Sweep<'_>,
        waits: bool,
    ) -> Result<Option<Ran>, CommandError> {
        match self.run_in(&Call::new(self, sde, Some((sweep, waits)))?) {
            Err(CommandError::Engine(error)) if !waits && error.is_elsewhere() => Ok(None),
            done => done.map(Some),
        }
    }

    fn run_in(&self, call: &Call<'_>) -> Result<Ran, CommandError> {
        if is_disabled() {
            return call.judged(call.ask(Asked::Alone)?);
        }
        if self.is_again && self.since.is_none() {
            return call.settle(call.ask(Asked::Again)?);
        }
        let asked = SystemTime::now();
        let found = call.ask(Asked::Use)?;
        let traced = ran::traced(&found.results, &call.plan.texts);
        let is_clean = traced.is_some_and(|traced| traced.is_clean());
        if self.trace == Some(Trace::Strict) && !is_clean {
            return call.settle(call.ask(Asked::Again)?);
        }
        if !is_earlier(&found, self.since, asked) {
            return call.settle(found);
        }
        if self.is_again {
            return call.settle(call.ask(Asked::InPlaceOf(found.made_by))?);
        }
        let ran = call.ran(&found)?;
        let judged = ran.judge(&call.plan.rules)?;
        let then = ran.judge(&rules_of(&found.results)?)?;
        match judged.verdict(&then, self.keeps_failures) {
            Verdict::Given => {
                call.keep_rules()?;
                Ok(ran.with(judged))
            }
            Verdict::Again => call.settle(call.ask(Asked::InPlaceOf(found.made_by))?),
            Verdict::Kept => {
                call.keep_rules()?;
                Err(call.failed(ran, judged, "it is remembered, and was not run again"))
            }
            Verdict::New => Err(call.failed(
                ran,
                judged,
                "nothing was run, since it is remembered and did not fail so before: if the rule is right, \
                 --again runs it",
            )),
        }
    }

    /// Tells what [`run`](Self::run) would do, and why, without running the program.
    ///
    /// # Errors
    /// If the command is refused, or the program can't be found.
    pub fn peek(&self, sde: &Handle) -> Result<Peek, CommandError> {
        let call = Call::new(self, sde, None)?;
        let (_, inputs) = call.plan.call();
        Ok(sde.peek(&call.app, &inputs)?)
    }

    /// The name of its app.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    #[doc(hidden)]
    pub fn app(&self) -> Result<String, CommandError> {
        Ok(Plan::new(self)?.app)
    }
}

/// One call of a command.
struct Call<'a> {
    sde: &'a Handle,
    plan: Arc<Plan>,
    app: DynApp,
    /// What the program wrote besides its outputs, if this call ran it.
    whole: Arc<Mutex<Option<Whole>>>,
    /// The list that it belongs to, and whether another process that is at the run is waited for.
    sweep: Option<(&'a Sweep<'a>, bool)>,
    keeps_failures: bool,
}

/// What the engine is asked for.
#[derive(Clone, Copy)]
enum Asked {
    Use,
    Again,
    /// Another computation than this one, by whatever process.
    InPlaceOf(RunId),
    Alone,
}

/// Whether a run that is remembered was made before the call, or before the list of the call began and in no job of its array: one
/// that failed then is run again. One that ended later than now, by a clock that is ahead, may be that old.
fn is_earlier(found: &Outcome, list_began: Option<SystemTime>, asked: SystemTime) -> bool {
    let ended = found.results.get::<(u64, String)>(results::ENDED);
    // Runs of older programs do not tell.
    let (ended, job) = ended.map_or_else(|_| (0, String::new()), |ended| (*ended).clone());
    let is_of_array = list_began.is_some() && !job.is_empty() && *job == *array_of_this_process();
    let meanwhile = [list_began.unwrap_or(asked), SystemTime::now()].map(results::nanos);
    let is_made_meanwhile = (meanwhile[0]..=meanwhile[1]).contains(&ended);
    let is_remembered = matches!(found.source, Source::Memory | Source::Loaded);
    is_remembered && !is_made_meanwhile && !is_of_array
}

impl<'a> Call<'a> {
    fn new(
        command: &Command,
        sde: &'a Handle,
        sweep: Option<(&'a Sweep<'a>, bool)>,
    ) -> Result<Self, CommandError> {
        let plan = Arc::new(Plan::new(command)?);
        let whole = Arc::new(Mutex::new(None));
        let (info, _) = plan.call();
        let app = DynApp::new(info, {
            let (plan, whole) = (Arc::clone(&plan), Arc::clone(&whole));
            move |sde, _| {
                let done = plan.execute(Some(sde))?;
                let results = done.results(&plan);
                let traced = done.traced.as_ref();
                let is_clean = traced.is_some_and(|traced| traced.without(&plan.texts).is_clean());
                *lock(&whole) = Some(done);
                match plan.trace {
                    Some(Trace::Strict) if !is_clean => Err(AppError::from(NotClean).transient()),
                    _ => Ok(results),
                }
            }
        });
        // So that two processes never both begin, and wait for one another as long as it takes.
        let app = app.expecting(Cost::new(Duration::from_secs(365 * 24 * 3600)));
        Ok(Self {
            sde,
            plan,
            app,
            whole,
            sweep,
            keeps_failures: command.keeps_failures,
        })
    }

    fn ask(&self, asked: Asked) -> Result<Outcome, CommandError> {
        let (_, inputs) = self.plan.call();
        let traced = self.plan.trace.map(|_| results::TRACED);
        let needed: Vec<&str> = results::NEEDED.iter().copied().chain(traced).collect();
        let request = self.sde.request(&self.app, &inputs).names(&needed);
        let request = match asked {
            Asked::Use => request,
            Asked::Again => request.policy(Policy::Refresh),
            Asked::InPlaceOf(old) => request.in_place_of(old),
            Asked::Alone => request.policy(Policy::Bypass),
        };
        let request = match self.keeps_failures {
            true => request.keep_failures(),
            false => request,
        };
        let request = match self.sweep {
            Some((sweep, waits)) => request.in_sweep(sweep, waits),
            None => request,
        };
        let done = request.run();
        if let Err(error) = &done
            && error.app_error::<NotClean>().is_some()
            && let Some(whole) = lock(&self.whole).take()
        {
            return Err(self.not_clean(whole));
        }
        done.map_err(|error| match error.app_error::<Ended>() {
            Some(ended) => {
                let (app, mut ended) = (self.plan.app.clone(), Box::new(ended.clone()));
                let key = error.key().copied();
                // What was shown as it came is not shown again.
                if self.plan.is_echoed {
                    ended.tail.clear();
                }
                CommandError::Ended { app, key, ended }
            }
            None => error.into(),
        })
    }

    /// The error of a run that passes or fails, and is not remembered.
    fn not_clean(&self, whole: Whole) -> CommandError {
        let error = || -> Result<CommandError, CommandError> {
            let (_, inputs) = self.plan.call();
            let key = self.sde.peek(&self.app, &inputs)?.key();
            let results = whole.results(&self.plan);
            let ran = Ran::new(self.sde, &self.plan, (key, false, &results), Some(whole))?;
            let judged = ran.judge(&self.plan.rules)?;
            Ok(match judged.failures.is_empty() {
                true => CommandError::Untraced(Box::new(Untraced {
                    ran: ran.with(judged),
                })),
                false => {
                    let advice = "it is not remembered, since --trace=strict".to_owned();
                    self.failed(ran, judged, &(advice + &self.missed()))
                }
            })
        };
        error().unwrap_or_else(|error| error)
    }

    /// Judges a run that was just made.
    fn settle(&self, done: Outcome) -> Result<Ran, CommandError> {
        self.keep_rules()?;
        self.judged(done)
    }

    fn judged(&self, done: Outcome) -> Result<Ran, CommandError> {
        let ran = self.ran(&done)?;
        let judged = ran.judge(&self.plan.rules)?;
        match judged.failures.is_empty() {
            true => Ok(ran.with(judged)),
            false => {
                let before = ran.attempts();
                let mut advice = attempted(before);
                advice += &self.missed();
                if !ran.unkept().is_empty() {
                    advice += &format!("\nnot kept: {}", ran.unkept().join(", "));
                }
                Err(self.failed(ran, judged, &advice))
            }
        }
    }

    /// What a program may miss, and rarely says.
    fn missed(&self) -> String {
        let most = 12;
        let (absent, withheld) = (&self.plan.absent, &self.plan.withheld);
        let mut told = String::new();
        if !absent.is_empty() {
            told += &format!("\nthere was no file {} here", absent.join(", "));
        }
        if !withheld.is_empty() {
            let more = if withheld.len() > most { ", .." } else { "" };
            let names = withheld[..withheld.len().min(most)].join(", ");
            told += &format!(
                "\nnot passed on: {names}{more} (--env NAME counts, --pass NAME does not)"
            );
        }
        told
    }

    fn ran(&self, done: &Outcome) -> Result<Ran, CommandError> {
        let whole = lock(&self.whole).take();
        let done = (done.key, done.source.is_hit(), &done.results);
        Ran::new(self.sde, &self.plan, done, whole)
    }

    fn failed(&self, ran: Ran, judged: Judgement, advice: &str) -> CommandError {
        let rules = judged.failures.iter().map(ToString::to_string).collect();
        let tail = match self.plan.is_echoed {
            true => String::new(),
            false => run::tail(&mut ran.printed()),
        };
        let ran = ran.with(judged);
        let advice = advice.to_owned();
        CommandError::Failed(Box::new(Failed {
            ran,
            rules,
            advice,
            tail,
        }))
    }

    /// Keeps these rules as the last ones of the app, by which `sde ls` and `sde table` judge. A call without rules
    /// keeps those of the calls before it.
    fn keep_rules(&self) -> Result<(), CommandError> {
        if self.plan.rules.is_empty() {
            return Ok(());
        }
        let rules = self.plan.rules.to_string();
        let (kept, inputs) = keeper(&self.plan.app, rules.clone());
        let ask = |policy| self.sde.request(&kept, &inputs).policy(policy).run();
        let last = ask(Policy::Use)?;
        if *last.results.get::<String>(results::RULES)? != rules {
            ask(Policy::Refresh)?;
        }
        Ok(())
    }
}

/// The app that keeps rules of an app, and its inputs.
fn keeper(app: &str, rules: String) -> (DynApp, Inputs) {
    let info = AppInfo::new(results::RULES_APP, "1");
    let info = info.result(ResultSpec::new::<String>(results::RULES).not_compared());
    let keeper = DynApp::new(info, move |_, _| {
        Ok(ResultMap::new().with(results::RULES, rules.clone()))
    });
    (keeper, inputs! { app: app.to_owned() })
}

/// The key of the entry that keeps the rules last asked for of an app, with the result
/// [`RULES`](results::RULES).
///
/// # Errors
/// None but those of the engine.
pub fn rules_key(app: &str) -> Result<Key, CommandError> {
    let (keeper, inputs) = keeper(app, String::new());
    Ok(Sde::new().peek(&keeper, &inputs)?.key())
}

fn rules_of(results: &ResultMap) -> Result<Rules, CommandError> {
    let rules = results.get::<String>(results::RULES)?;
    let unread = |error: crate::RuleError| {
        CommandError::refused("what is stored of its rules", error.to_string())
    };
    rules.parse().map_err(unread)
}

#[cfg(test)]
mod tests;
