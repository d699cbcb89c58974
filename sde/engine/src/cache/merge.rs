//! Turns the results that an app returned into an entry.
//!
//! The returned results must be the declared ones: else a later run could not read them back, and a hit would differ
//! from a run. Values that an earlier entry still has stay in place of new ones, so that values already given out keep
//! their identity.

use std::sync::Arc;
use std::time::Duration;

use crate::app::ResolvedApp;
use crate::entry::{Entry, Record, Served};
use crate::error::{Error, ErrorKind, join_names};
use crate::result_map::{Content, EntryResults, ErasedValue, Named, ResultMap, ResultSpec, Tags};

/// Checks the returned results against the declared ones, and joins them with the values that an earlier entry still
/// has. `own` is the time that the run took by itself. The map for the caller also has the results that the cache does
/// not keep.
pub(crate) fn merge(
    resolved: &ResolvedApp,
    (record, own): (Record, Duration),
    returned: &ResultMap,
    previous: Option<&Entry>,
    epoch: u64,
) -> Result<Served, Error> {
    let undeclared = |why: String| {
        Error::from(ErrorKind::Undeclared {
            app: Arc::clone(&resolved.name),
            why,
        })
    };
    check_names(resolved, returned).map_err(undeclared)?;
    let mut given = Vec::with_capacity(resolved.info.results.len());
    for spec in &resolved.info.results {
        let new = returned.get_erased(&spec.name)?;
        let said = returned.find(&spec.name).and_then(|named| named.tags);
        let tags = said.map_or(spec.tags, |tags| spec.all_tags(tags));
        check_result(spec, &new, tags).map_err(undeclared)?;
        let old = previous.and_then(|entry| still_there(entry, &spec.name));
        given.push(Named {
            content: old.unwrap_or(Content::Held(new)),
            spec: Arc::clone(spec),
            tags,
        });
    }
    let given: EntryResults = given.into_iter().collect();
    Ok(match kept_of(&given) {
        None => Served::whole(Arc::new(Entry::computed(record, given, epoch, own))),
        Some(kept) => {
            let entry = Arc::new(Entry::computed(record, kept, epoch, own));
            let map = ResultMap::of(entry.giving(given));
            Served { entry, map }
        }
    })
}

fn check_names(resolved: &ResolvedApp, returned: &ResultMap) -> Result<(), String> {
    let declared = || {
        resolved
            .info
            .results
            .iter()
            .map(|spec| spec.name.to_string())
    };
    if let Some(extra) = returned
        .names()
        .find(|name| resolved.result(name).is_none())
    {
        return Err(format!(
            "\"{extra}\" is not declared (declared are: {}); add it with `AppInfo::result`",
            join_names(declared())
        ));
    }
    match declared().find(|name| returned.tags(name).is_none()) {
        None => Ok(()),
        Some(missing) => Err(format!(
            "\"{missing}\" is declared and was not returned (returned were: {})",
            join_names(returned.names())
        )),
    }
}

fn check_result(spec: &ResultSpec, value: &ErasedValue, tags: Tags) -> Result<(), String> {
    if value.type_name() != spec.type_name {
        return Err(format!(
            "\"{}\" is declared as {} and was returned as {}",
            spec.name,
            spec.type_name,
            value.type_name()
        ));
    }
    if let Some(why) = spec.refused(tags) {
        return Err(why);
    }
    if let Some((a, b)) = tags.conflict() {
        return Err(format!(
            "\"{}\" is tagged {} and {}, which exclude one another",
            spec.name,
            a.name(),
            b.name()
        ));
    }
    if spec.codec.is_none() && tags.is_needed() {
        return Err(format!(
            "\"{}\" is declared as one that can't be saved, so it must be tagged expendable or no_cache, not {tags}",
            spec.name
        ));
    }
    Ok(())
}

fn still_there(entry: &Entry, name: &str) -> Option<Content> {
    let named = entry.results.find(name)?;
    // Output files are as the last run wrote them, so the earlier value may not match them.
    if entry.has_files && named.has_files() {
        return None;
    }
    match &named.content {
        Content::Weak(weak) => weak.upgrade().map(Content::Held),
        Content::Held(value) => Some(Content::Held(value.clone())),
        // Nobody holds a value that was not read yet: the computed one is as good, and whole.
        Content::Stored(stored) => stored.if_read().map(Content::Held),
        Content::Gone(_) => None,
    }
}

/// The results that the cache keeps, if it does not keep all: of `no_cache` results it has weak references to the values
/// that callers hold.
fn kept_of(given: &EntryResults) -> Option<EntryResults> {
    let not_kept = |named: &Named| !named.tags.is_cached();
    let has_any = given.iter().any(not_kept);
    has_any.then(|| {
        given.replacing(|named| match &named.content {
            Content::Held(value) if not_kept(named) => Some(Content::Weak(value.downgrade())),
            _ => None,
        })
    })
}
