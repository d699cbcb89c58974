//! Stores that fail, or answer with what was not asked for: a miss with a warning, never a wrong
//! value, and what could not be saved is saved next time.

use sde::archiver::{Archiver, Selection};
use sde::{AppInfo, ResultMap, ResultSpec, SavePolicy, Sde, Source};
use sde_tests::{Lie, Lying, Made, Watch, assert_kind, made, number, says, x, y};

fn double() -> Made {
    number("double", |_, n| Ok(2 * n))
}

fn program(store: &Lying, policy: SavePolicy) -> (Sde, Watch) {
    let watch = Watch::new();
    let sde = Sde::builder().store(store.clone()).save(policy);
    (sde.observer(watch.clone()).build().unwrap(), watch)
}

/// A store with `double(1)`, and the key of that.
fn filled() -> (Lying, sde::Key) {
    let store = Lying::new();
    let (sde, _) = program(&store, SavePolicy::OnRequest);
    let key = sde.request(&double(), &x(1)).run().unwrap().key;
    sde.checkpoint().unwrap();
    (store, key)
}

/// Asks for `double(n)` while the store lies, and gives the only warning.
fn computed_with_a_warning(store: &Lying, lie: Lie, n: u64) -> String {
    let (sde, watch) = program(store, SavePolicy::OnRequest);
    store.tell(lie);
    let outcome = sde.request(&double(), &x(n)).run().unwrap();
    assert_eq!(outcome.source, Source::Computed, "{lie:?}");
    assert_eq!(y(&outcome.results).unwrap(), 2 * n, "{lie:?}");
    store.tell(Lie::None);
    let warnings = watch.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    warnings[0].clone()
}

#[test]
fn an_entry_of_another_key() {
    let (store, key) = filled();
    let warning = computed_with_a_warning(&store, Lie::OtherKey(key), 2);
    says(&warning, "has something else under the key of double [");
}

#[test]
fn an_entry_of_another_app() {
    let (store, _) = filled();
    let (sde, _) = program(&store, SavePolicy::OnRequest);
    let other = number("triple", |_, n| Ok(3 * n));
    let other = sde.request(&other, &x(1)).run().unwrap().key;
    sde.checkpoint().unwrap();
    let warning = computed_with_a_warning(&store, Lie::OtherApp(other), 2);
    says(&warning, "has something else under the key of double [");
}

#[test]
fn a_store_that_can_not_be_asked() {
    let (store, _) = filled();
    let warning = computed_with_a_warning(&store, Lie::FindFails, 1);
    says(
        &warning,
        "could not be looked for in a store that lies: the disk is on fire",
    );
    // Asked again it has it.
    let (sde, _) = program(&store, SavePolicy::OnRequest);
    let outcome = sde.request(&double(), &x(1)).run().unwrap();
    assert_eq!(outcome.source, Source::Loaded);
}

/// The app's result has another type in this program, under the same version.
#[test]
fn a_result_that_was_saved_as_another_type() {
    let (store, key) = filled();
    let (sde, _) = program(&store, SavePolicy::OnRequest);
    let info = AppInfo::new("double", "1").result(ResultSpec::new::<f64>("y"));
    let app = made(info, |_, _| Ok(ResultMap::new().with("y", 0.5_f64)));
    let outcome = sde.request(&app, &x(1)).run().unwrap();
    assert_eq!((outcome.key, outcome.source), (key, Source::Computed));
    assert_eq!(*outcome.results.get::<f64>("y").unwrap(), 0.5);
}

/// It said that there was no such entry.
#[test]
fn invalidating_while_the_store_can_not_be_asked() {
    let (store, key) = filled();
    let (sde, _) = program(&store, SavePolicy::OnRequest);
    store.tell(Lie::FindFails);
    for error in [
        sde.invalidate(&key, "bad memory").unwrap_err(),
        sde.undo_invalidate(&key).unwrap_err(),
    ] {
        assert_kind!(error, Archive);
        says(&error, "the disk is on fire");
    }
    store.tell(Lie::None);
    sde.invalidate(&key, "bad memory").unwrap();
    let nobody = sde::Key::from_bytes([7; 32]);
    let error = sde.invalidate(&nobody, "bad memory").unwrap_err();
    assert_kind!(error, NoEntry);
}

#[test]
fn a_save_that_fails_is_made_up_for() {
    let store = Lying::new();
    let (sde, watch) = program(&store, SavePolicy::OnRequest);
    let made = sde.request(&double(), &x(1)).run().unwrap();
    sde.invalidate(&made.key, "a test").unwrap();
    store.tell(Lie::SaveFails);
    for error in [sde.checkpoint().unwrap_err(), sde.archive().unwrap_err()] {
        assert_kind!(error, Archive);
        let text = format!("{error:#}");
        says(&text, "to a store that lies: the disk is on fire");
    }
    sde.run(&double(), &x(2)).unwrap();
    store.tell(Lie::None);
    for selection in [Selection::Checkpoint, Selection::Archive] {
        assert_eq!(store.truth().saved(selection), []);
        match selection {
            Selection::Checkpoint => sde.checkpoint().unwrap(),
            _ => sde.archive().unwrap(),
        }
        assert_eq!(store.truth().saved(selection).len(), 2, "{selection:?}");
    }
    assert_eq!(store.truth().marks().unwrap().len(), 1);
    // And only once.
    let batches = store.truth().batches();
    sde.checkpoint().unwrap();
    assert_eq!(store.truth().batches(), batches);
    assert_eq!(watch.warnings(), Vec::<String>::new());
}

#[test]
fn a_result_that_could_not_be_saved_at_once() {
    let store = Lying::new();
    let (sde, watch) = program(&store, SavePolicy::EveryResult);
    store.tell(Lie::SaveFails);
    let outcome = sde.request(&double(), &x(1)).run().unwrap();
    assert_eq!(y(&outcome.results).unwrap(), 2, "the computation goes on");
    let warnings = watch.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    says(&warnings[0], "double [");
    says(&warnings[0], "the disk is on fire");
    assert!(warnings[0].ends_with("the next save tries again"));
    store.tell(Lie::None);
    assert_eq!(store.truth().saved(Selection::Checkpoint), []);
    sde.checkpoint().unwrap();
    assert_eq!(store.truth().saved(Selection::Checkpoint).len(), 1);
}

#[test]
fn saving_without_a_store() {
    let sde = Sde::new();
    sde.run(&double(), &x(1)).unwrap();
    for error in [sde.checkpoint().unwrap_err(), sde.archive().unwrap_err()] {
        assert_kind!(error, NoStore);
        says(&error, "open one with");
    }
    // The last call of any program.
    sde.finish().unwrap();
}
