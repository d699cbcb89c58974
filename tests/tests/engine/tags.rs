//! The table of tags, with every combination of what can be said of a result and what can happen
//! to it.

use sde::archiver::{MemoryArchiver, Selection};
use sde::{AppInfo, DistArray, ResultMap, ResultSpec, Sde, Source, Tag, Tags, inputs};
use sde_tests::{Made, made};

/// What the design says of each tag.
struct Row {
    tag: Option<Tag>,
    in_memory: bool,
    checkpointed: bool,
    archived: bool,
    /// Whether a run is a hit only if such a result is there.
    needed: bool,
}

#[rustfmt::skip]
const TABLE: [Row; 4] = [
    Row { tag: None,                    in_memory: true,  checkpointed: true,  archived: true,  needed: true },
    Row { tag: Some(Tag::Intermediate), in_memory: true,  checkpointed: true,  archived: false, needed: true },
    Row { tag: Some(Tag::Expendable),   in_memory: true,  checkpointed: false, archived: false, needed: false },
    Row { tag: Some(Tag::NoCache),      in_memory: false, checkpointed: false, archived: false, needed: false },
];

/// Every way to clean, as the tags that are named; none is everything.
const CLEANINGS: [Option<Tag>; 5] = [
    None,
    Some(Tag::Intermediate),
    Some(Tag::Expendable),
    Some(Tag::NoCache),
    Some(Tag::Distributed),
];

/// Each row, with and without `distributed`: the tags it stands for.
fn cases() -> impl Iterator<Item = (&'static Row, Tags)> {
    TABLE.iter().flat_map(|row| {
        let alone: Tags = row.tag.into_iter().collect();
        [(row, alone), (row, alone.with(Tag::Distributed))]
    })
}

/// An app with a plain result and one that has these tags.
fn tagged(tags: Tags) -> Made {
    let info = AppInfo::new("tagged", "1").result(ResultSpec::new::<u64>("plain"));
    if tags.contains(Tag::Distributed) {
        let spec = ResultSpec::distributed::<DistArray<u64>>("tagged");
        return made(info.distributed().result(spec.tagged(tags)), |sde, _| {
            let array = DistArray::from_fn(sde, &[1], |_| 2_u64)?;
            Ok(ResultMap::new().with("plain", 1_u64).with("tagged", array))
        });
    }
    let spec = ResultSpec::new::<Vec<u64>>("tagged").tagged(tags);
    made(info.result(spec), |_, _| {
        Ok(ResultMap::new()
            .with("plain", 1_u64)
            .with("tagged", vec![2_u64]))
    })
}

fn run(sde: &Sde, app: &Made) -> sde::Outcome {
    let inputs = inputs! {};
    sde.request(app, &inputs).run().expect("no error")
}

fn is_there(store: &MemoryArchiver, selection: Selection, name: &str) -> bool {
    let saved = store.saved(selection);
    saved.contains(&("tagged".to_owned(), name.to_owned()))
}

#[test]
fn in_memory() {
    for (row, tags) in cases() {
        let (sde, app) = (Sde::new(), tagged(tags));
        let first = run(&sde, &app).results;
        // Its own caller gets everything, and what a caller holds can be had.
        assert!(first.has("plain") && first.has("tagged"), "{tags}");
        assert!(run(&sde, &app).results.has("tagged"), "{tags}");
        drop(first);
        let again = run(&sde, &app);
        assert!(again.source.is_hit(), "{tags}");
        assert!(again.results.has("plain"), "{tags}");
        assert_eq!(again.results.has("tagged"), row.in_memory, "{tags}");
        assert_eq!(sde.stats().total.computed, 1, "{tags}");
    }
}

#[test]
fn cleaned_by_each_tag() {
    for (row, tags) in cases() {
        for cleaning in CLEANINGS {
            let (sde, app) = (Sde::new(), tagged(tags));
            // Held, so that `no_cache` results are there to be cleaned.
            let held = run(&sde, &app).results;
            let cleared = match cleaning {
                Some(tag) => sde.clear_tagged("tagged", tag),
                None => sde.clear_app("tagged"),
            };
            cleared.unwrap();
            let meant = cleaning.is_none_or(|tag| tags.contains(tag));
            let again = run(&sde, &app);
            let hit = cleaning.is_some() && !(meant && row.needed);
            let what = format!("{tags} cleaned by {cleaning:?}");
            assert_eq!(again.source.is_hit(), hit, "{what}");
            assert!(again.results.has("plain"), "{what}");
            assert_eq!(again.results.has("tagged"), !hit || !meant, "{what}");
            // What was given out stays valid.
            assert!(held.has("plain") && held.has("tagged"), "{what}");
            assert_eq!(sde_tests::records(&sde).len(), 1, "{what}");
        }
    }
}

/// A list of tags that a program made, and that was empty, cleared everything.
#[test]
fn no_tag_clears_nothing() {
    let (sde, app) = (Sde::new(), tagged(Tag::Expendable.into()));
    run(&sde, &app);
    sde.clear_tagged("tagged", []).unwrap();
    let again = run(&sde, &app).results;
    assert!(again.has("plain") && again.has("tagged"));
}

#[test]
fn checkpointed_and_archived() {
    for (row, tags) in cases() {
        let (store, app) = (MemoryArchiver::new(), tagged(tags));
        let builder = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest);
        let sde = builder.build().expect("a store");
        let _held = run(&sde, &app);
        sde.checkpoint().expect("saved");
        sde.archive().expect("saved");
        let saved = |selection| is_there(&store, selection, "tagged");
        assert_eq!(saved(Selection::Checkpoint), row.checkpointed, "{tags}");
        assert_eq!(saved(Selection::Archive), row.archived, "{tags}");
        assert!(is_there(&store, Selection::Checkpoint, "plain"), "{tags}");
        assert!(is_there(&store, Selection::Archive, "plain"), "{tags}");
    }
}

/// What the next program finds, given the checkpoint or only the archive.
#[test]
fn taken_up_again() {
    for (row, tags) in cases() {
        let (store, app) = (MemoryArchiver::new(), tagged(tags));
        let builder = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest);
        let sde = builder.build().expect("a store");
        run(&sde, &app);
        sde.checkpoint().expect("saved");
        sde.archive().expect("saved");
        let archive = store.archive_only();
        for (store, saved) in [(store, row.checkpointed), (archive, row.archived)] {
            let later = Sde::builder()
                .store(store)
                .save(sde::SavePolicy::OnRequest)
                .build()
                .expect("a store");
            let found = run(&later, &app);
            let loaded = saved || !row.needed;
            let source = if loaded {
                Source::Loaded
            } else {
                Source::Computed
            };
            assert_eq!(found.source, source, "{tags}");
            assert_eq!(found.results.has("tagged"), saved || !loaded, "{tags}");
            assert!(found.results.has("plain"), "{tags}");
        }
    }
}
