//! What `Debug` shows of calls, engines and stores that are set up: names, types and numbers, and no value. That each public
//! type has it is a lint of the workspace, `missing_debug_implementations`.

use std::sync::{Arc, Mutex};

use sde::archiver::{ArchiveError, Archiver, Batch, MemoryArchiver, Saved};
use sde::ranks::ThreadGroup;
use sde::{CallApp, Handle, SavePolicy, Sde, inputs};
use sde_tests::forward;

#[sde::app(name = "shown.words")]
fn words(sde: &Handle, number: u64) -> Result<Vec<String>, sde::AppError> {
    let scratch = sde.scratch::<Vec<String>>();
    scratch.save(vec!["a secret".to_owned()])?;
    shows(
        &scratch,
        &["Scratch", "shown.words", "Vec<alloc::string::String>"],
    );
    Ok(vec!["a secret".to_owned(); number as usize % 10])
}

/// Says that the text has these parts, and neither the result nor the input.
#[track_caller]
fn shows(what: &dyn std::fmt::Debug, parts: &[&str]) {
    let text = format!("{what:?}");
    for part in parts {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("a secret"), "{text}");
}

/// Shows each batch that it is given.
#[derive(Clone)]
struct Showing(MemoryArchiver, Arc<Mutex<usize>>);

impl Archiver for Showing {
    forward!(0: find, find_scratch, marks, describe);

    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        *self.1.lock().unwrap() += 1;
        shows(batch, &["Batch", "shown.words", "\"result\"", "Checkpoint"]);
        self.0.save(batch)
    }
}

#[test]
fn no_value_is_shown() {
    let store = Showing(MemoryArchiver::new(), Arc::default());
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    shows(&builder, &["Builder", &store.describe(), "OnRequest"]);
    let sde = builder.build().unwrap();
    let inputs = inputs! { number: 47_112_u64 };
    let request = sde.request(&words, &inputs);
    shows(&request, &["Request", "number", "Use"]);
    assert!(!format!("{request:?}").contains("47112"));
    let key = request.run().unwrap().key;
    let typed = CallApp::request(&words, &sde, 47_112);
    shows(&typed, &["CallRequest", "number", "Use"]);
    assert!(!format!("{typed:?}").contains("47112"));
    sde.checkpoint().unwrap();
    assert_eq!(*store.1.lock().unwrap(), 1);
    let stored = store.find(&key).unwrap().unwrap();
    shows(&stored, &["StoredEntry", "\"result\"", "is_saved: true"]);
    shows(&store.0, &["MemoryArchiver(1 entries, "]);
}

#[test]
fn a_rank_is_shown_with_its_number() {
    let [first, _second] = &ThreadGroup::ranks(2)[..] else {
        panic!("two ranks");
    };
    assert_eq!(format!("{first:?}"), "ThreadGroup(rank 0 of 2)");
}
