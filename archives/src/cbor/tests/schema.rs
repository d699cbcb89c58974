//! Types that differ in anything their bytes depend on have different schemas.

use std::collections::{BTreeMap, HashSet};

use sde::archiver::Codec;
use sde::key::Digest;
use serde::{Deserialize, Serialize};

use super::super::schema::schema;

/// Types of equal name in several modules, like one type before and after a change.
macro_rules! versions {
    ($($module:ident $(#[$attr:meta])* { $($body:tt)* })*) => {
        $(mod $module {
            use super::*;
            #[derive(Serialize, Deserialize)]
            $(#[$attr])*
            pub(super) $($body)*
        })*
        fn schemas() -> Vec<(&'static str, Digest)> {
            vec![$((stringify!($module), schema(&Codec::of::<$module::Model>()))),*]
        }
    };
}

versions! {
    plain { struct Model { energy: f64, steps: u32 } }
    narrower { struct Model { energy: f32, steps: u32 } }
    renamed { struct Model { total_energy: f64, steps: u32 } }
    longer { struct Model { energy: f64, steps: u32, converged: bool } }
    optional { struct Model { energy: f64, steps: Option<u32> } }
    listed { struct Model { energy: f64, steps: Vec<u32> } }
    in_order { struct Model(f64, u32); }
    two { enum Model { Energy(f64), Steps(u32) } }
    second_changed { enum Model { Energy(f64), Steps(u64) } }
    third { enum Model { Energy(f64), Steps(u32), Nothing } }
    named { enum Model { Energy { value: f64 }, Steps(u32) } }
    mapped { struct Model(BTreeMap<String, f64>); }
    mapped_by_number { struct Model(BTreeMap<u32, f64>); }
    within_itself { struct Model { energy: f64, next: Option<Box<Model>> } }
    within_itself_often { struct Model { energy: f64, next: Vec<Model> } }
    all_ways_within_itself { enum Model { Sum(Box<Model>, Box<Model>), Not(Box<Model>), Number(f64) } }
}

#[test]
fn each_change_of_a_type_shows() {
    let mut seen = HashSet::new();
    for (which, digest) in schemas() {
        assert!(seen.insert(digest), "{which} is as one before it");
    }
    assert_eq!(schemas(), schemas());
}

#[test]
fn types_that_refuse_or_panic_have_one_too() {
    #[derive(Serialize)]
    struct Picky;
    impl<'de> Deserialize<'de> for Picky {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let text = String::deserialize(from)?;
            match text.as_str() {
                "" => panic!("it was not to be empty"),
                _ => Ok(Self),
            }
        }
    }
    assert_ne!(
        schema(&Codec::of::<Picky>()),
        schema(&Codec::of::<std::net::IpAddr>())
    );
}

/// A destructor may save and wait for the save that asks for the schema, or remove files.
#[test]
fn what_the_schema_is_worked_out_with_is_never_dropped() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    #[derive(Serialize, Deserialize)]
    enum Scratch {
        File(String),
        Folder { name: String },
    }
    impl Drop for Scratch {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    schema(&Codec::of::<Scratch>());
    assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
}
