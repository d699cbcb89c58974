//! `sde explain`: why an entry differs from an earlier one.

use clap::Args;
use sde::record::{Difference, Record};
use sde_archives::inspect::{Item, Listed, Snapshot};
use serde_json::{Value as Json, json};

use crate::args::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, time};
use sde_table::find::find;

/// Why an entry is not the same as the nearest earlier one of its app
///
/// Which input, field, parameter, sub-app, callee, helper or version differs, and both values. The nearest is one of its
/// own key; or of equal inputs and settings under other code; or with another content of one file; or else the one from
/// which the fewest inputs and settings differ.
#[derive(Args)]
pub struct Explain {
    #[command(flatten)]
    place: Place,
    /// The entry, by its key or the beginning of it
    key: Option<String>,
    /// The entry to compare it with
    key2: Option<String>,
}

/// An entry, and how another differs from it.
type Compared = (Record, Vec<Difference>);

impl Explain {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let (path, [key, other]) = self.place.with([&self.key, &self.key2])?;
        let key = super::needed(key)?;
        let (store, (record, compared)) = store::read(&path, |store| {
            let record = latest(store, &key)?;
            let compared = match &other {
                Some(other) => {
                    let other = latest(store, other)?;
                    let differences = record.differences(&other);
                    Some((other, differences))
                }
                None => nearest(store, &record),
            };
            Ok((record, compared))
        })?;
        match out.json {
            true => out.object(&object(&record, compared.as_ref()))?,
            false => print(&record, compared.as_ref(), out)?,
        }
        // An entry that could not be read may be nearer than the one found.
        store::conclude(&store, out)
    }
}

fn latest(store: &mut Snapshot, key: &str) -> Result<Record, Failure> {
    Ok(find(store, key)?.swap_remove(0).entry.record)
}

/// The nearest of all earlier entries of the same app.
fn nearest(store: &mut Snapshot, record: &Record) -> Option<Compared> {
    let (mut nearest, mut found) = (None, None);
    store.walk(Some(&Listed::is_entry), |_, item| {
        let Item::Entry(entry) = item else { return };
        let other = entry.record;
        let is_earlier = (other.made_at, other.run) < (record.made_at, record.run);
        let has_failed = other.failure.is_some();
        if other.app == record.app
            && !has_failed
            && is_earlier
            && record.look_at(&other, &mut nearest)
        {
            found = Some(other);
        }
    });
    found.zip(nearest.map(|nearest| nearest.differences))
}

fn title(record: &Record) -> String {
    let made = time::text(time::of(record.made_at));
    match &record.failure {
        None => format!("{} [{}], made {made} UTC", record.app, record.key.short()),
        Some(failure) => {
            let (app, of, why) = (&record.app, failure.of.short(), &failure.message);
            format!("{app} [{of}] failed, {made} UTC, and has no result since: {why}")
        }
    }
}

fn print(record: &Record, compared: Option<&Compared>, out: &mut Output) -> Result<(), Failure> {
    out.wrapped(title(record), 2)?;
    let Some((other, differences)) = compared else {
        return out.wrapped("is the first entry of its app in this store.", 2);
    };
    if (record.key, record.run) == (other.key, other.run) {
        return out.wrapped(
            "compared with itself: it is the same entry, and nothing differs. `sde show --all` has \
             the earlier computations of its key, if there are any.",
            2,
        );
    }
    out.wrapped(format!("compared with {}:", title(other)), 2)?;
    for difference in differences {
        out.wrapped(format!("  {difference}"), 6)?;
    }
    match (differences.is_empty(), record.key == other.key) {
        (false, _) => Ok(()),
        (true, true) => out.wrapped(
            "  nothing: the same run was computed again. It was refreshed, invalidated, or \
             its results were not there; `sde show --all` has more.",
            2,
        ),
        (true, false) => out.wrapped("  nothing that the records have.", 2),
    }
}

fn object(record: &Record, compared: Option<&Compared>) -> Json {
    let brief = |record: &Record| {
        json!({
            "app": record.app,
            "key": record.failure.as_ref().map_or(record.key, |failure| failure.of),
            "error": record.failure.as_ref().map(|failure| &failure.message),
            "run": record.run.to_string(),
            "made_at": time::of(record.made_at),
        })
    };
    let difference = |one: &Difference| {
        json!({
            "slots": one.slots,
            "part": one.part.kind(),
            "name": one.part.name(),
            "same": one.same,
            "earlier": one.earlier,
            "later": one.later,
        })
    };
    let differences = compared.iter().flat_map(|(_, differences)| differences);
    json!({
        "entry": brief(record),
        "earlier": compared.map(|(other, _)| brief(other)),
        "differences": differences.map(difference).collect::<Vec<_>>(),
    })
}
