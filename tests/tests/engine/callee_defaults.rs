//! Defaults of apps that are called without a slot: if one changes, what their callers remembered is not used.

use sde::archiver::MemoryArchiver;
use sde::{AppInfo, InputFile, Instance, Parameter, Sde, Slot, Source};
use sde_tests::{Made, number, x, y};

use super::callees::{calls, program, show, source};

/// An app with settings, as the first program has it and as it was edited, and one of its callers.
fn edited(changed: impl Fn(AppInfo, bool) -> AppInfo) -> [(Made, Made); 2] {
    [false, true].map(|edited| {
        let method = number("method", |sde, n| {
            let add = *sde.parameter::<u64>("add")?;
            Ok(y(&sde.run(&sde.sub_app("term")?, &x(n))?)? + add)
        });
        let method = method.described(|info| changed(info, edited));
        (method.clone(), calls("outer", method))
    })
}

fn term(name: &'static str, factor: u64) -> Made {
    number(name, move |_, n| Ok(n * factor))
}

/// What the caller of the edited app gives, and why what the first program left was not used.
fn after_the_edit([before, after]: [(Made, Made); 2]) -> (u64, Vec<String>) {
    let store = MemoryArchiver::new();
    let (sde, _) = program(&store);
    assert_eq!(source(&sde, &before.1), Source::Computed);
    sde.finish().expect("saved");
    // As it was, it is used.
    let (sde, _) = program(&store);
    show(&sde, &before.0);
    assert_eq!(source(&sde, &before.1), Source::Loaded);
    let (sde, watch) = program(&store);
    show(&sde, &after.0);
    // In the program all the same, but not in the slot.
    show(&sde, &term("square", 3));
    let result = sde.run(&after.1, &x(3)).expect("no error");
    let first = sde.run(&after.1, &x(1)).expect("no error");
    assert_eq!(y(&result).unwrap(), 3 * y(&first).unwrap());
    (y(&first).unwrap(), watch.stale("outer"))
}

/// An app was called with its defaults, and one of them was edited: the caller's result stood.
#[test]
fn an_edited_default_of_a_callee() {
    let (result, stale) = after_the_edit(edited(|info, edited| {
        info.parameter(Parameter::new("add", 0_u64))
            .parameter(Parameter::new("unit", if edited { 2.0 } else { 1.0_f64 }))
            .slot(Slot::new("term", term("square", 3)))
    }));
    assert_eq!(result, 30);
    let expected = "it ran method (version 1), which has other defaults now";
    assert_eq!(stale, [expected]);
}

#[test]
fn another_app_in_the_slot_of_a_callee() {
    let (result, stale) = after_the_edit(edited(|info, edited| {
        let term = if edited {
            term("cube", 4)
        } else {
            term("square", 3)
        };
        info.parameter(Parameter::new("add", 0_u64))
            .slot(Slot::new("term", term))
    }));
    assert_eq!(result, 40);
    let expected = "it ran method (version 1), which has other defaults now";
    assert_eq!(stale, [expected]);
}

/// The app in the slot of a callee has other settings there.
#[test]
fn another_setting_in_the_slot_of_a_callee() {
    let (result, stale) = after_the_edit(edited(|info, edited| {
        let term = number("term", |sde, n| Ok(n * *sde.parameter::<u64>("by")?))
            .described(|info| info.parameter(Parameter::new("by", 1_u64)));
        let term = Instance::new(term).set("by", if edited { 5_u64 } else { 3 });
        info.parameter(Parameter::new("add", 0_u64))
            .slot(Slot::new("term", term.expect("a parameter")))
    }));
    assert_eq!(result, 50);
    assert_eq!(stale.len(), 1, "{stale:?}");
}

/// What can't change a result is no reason to make it again.
#[test]
fn an_edited_transparent_default_of_a_callee() {
    let (_, stale) = after_the_edit(edited(|info, edited| {
        info.parameter(Parameter::new("add", 0_u64))
            .parameter(Parameter::new("threads", if edited { 8_u64 } else { 1 }).transparent())
            .slot(Slot::new("term", term("square", 3)))
    }));
    assert_eq!(stale, Vec::<String>::new());
}

/// The file that a callee reads by default is edited while the program runs.
#[test]
fn an_edited_file_that_is_a_default_of_a_callee() {
    let path = std::env::temp_dir().join(format!("sde-callees-{}", std::process::id()));
    let write = |text: &str| std::fs::write(&path, text).expect("a place for files");
    let reads = number("reads", |sde, n| {
        let file = sde.parameter::<InputFile>("file")?;
        Ok(n + std::fs::read_to_string(file.path())?.len() as u64)
    });
    let default = Parameter::new("file", InputFile::new(&path));
    let app = calls("outer", reads.described(|info| info.parameter(default)));
    let sde = Sde::new();
    for text in ["1", "22", "1", "333"] {
        write(text);
        for _ in 0..3 {
            let result = sde.run(&app, &x(1)).expect("no error");
            assert_eq!(y(&result).unwrap(), 10 * (1 + text.len() as u64));
        }
    }
    std::fs::remove_file(&path).expect("it is there");
}
