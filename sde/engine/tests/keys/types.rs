//! Values that differ in type only are different inputs; holders are not types.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sde::Fingerprint;
use sde::key::{BySerde, Digest, Key, Rounded, TypeShape, commit};

use super::{digest, same};

#[derive(Fingerprint)]
struct Metres(f64);

#[derive(Fingerprint)]
struct Feet(f64);

#[derive(Fingerprint)]
struct Length<U> {
    value: f64,
    unit: PhantomData<U>,
}

#[derive(Fingerprint)]
struct Unit;

#[derive(Fingerprint)]
enum Choice {
    Unit,
    Metres(f64),
}

/// One value of each type, most of them "two".
fn all_different() -> Vec<(&'static str, Digest)> {
    macro_rules! values {
        ($($value:expr),* $(,)?) => { vec![$((stringify!($value), digest(&$value))),*] };
    }
    values! {
        2_u8, 2_u16, 2_u32, 2_u64, 2_u128, 2_usize,
        2_i8, 2_i16, 2_i32, 2_i64, 2_i128, 2_isize,
        2.0_f32, 2.0_f64, '2', "2", "2.0", true,
        (), ((),), [(); 0], [()],
        (2_u8,), ((2_u8,),), (2_u8, 2_u8), ((2_u8, 2_u8),),
        [2_u8], [2_u8, 2_u8], [[2_u8, 2_u8]], [(2_u8, 2_u8)],
        Some(2_u8), Some(Some(2_u8)), None::<u8>, None::<u16>, None::<Option<u8>>, Some(None::<u8>),
        Ok::<u8, u8>(2), Err::<u8, u8>(2), Ok::<u8, u16>(2), Err::<u16, u8>(2),
        Vec::<u8>::new(), Vec::<u16>::new(), Vec::<String>::new(), Vec::<Vec<u8>>::new(),
        Vec::<(u8, u8)>::new(), Vec::<Metres>::new(), Vec::<Feet>::new(), "",
        HashMap::<u8, u8>::new(), HashMap::<u8, u16>::new(), HashMap::<u16, u8>::new(),
        HashSet::<u8>::new(), HashSet::<u16>::new(),
        BTreeMap::from([(2_u8, 2_u8)]), BTreeSet::from([2_u8]), BTreeSet::from([(2_u8, 2_u8)]), [(2_u8, 2_u16)],
        Metres(2.0), Feet(2.0), (Metres(2.0),), [Metres(2.0)], None::<Metres>, None::<Feet>,
        Length::<Metres> { value: 2.0, unit: PhantomData }, Length::<Feet> { value: 2.0, unit: PhantomData },
        PhantomData::<Metres>, PhantomData::<Feet>, PhantomData::<str>,
        Unit, Choice::Unit, Choice::Metres(2.0),
        Path::new("2"), std::ffi::OsStr::new("2"), c"2",
        NonZero::<u8>::MIN, NonZero::<u16>::MIN, 1_u8, 1_u16,
        Ordering::Greater, Ordering::Less,
        Duration::from_secs(2), UNIX_EPOCH + Duration::from_secs(2), UNIX_EPOCH - Duration::from_secs(2),
        Duration::from_nanos(2), UNIX_EPOCH,
        0_u8..2, 0_u8..=2, ..2_u8, ..=2_u8, 2_u8.., 0_u16..2,
        Rounded::new(2.0_f64, 3), Rounded::new(2.0_f64, 4), Rounded::new(2.0_f32, 3),
        Rounded::new(vec![2.0_f64], 3), Rounded::new(Some(2.0_f64), 3),
        Rounded::new(Vec::<f64>::new(), 3), Rounded::new(Vec::<f32>::new(), 3),
        Rounded::new(Vec::<Vec<f32>>::new(), 3), Rounded::new(None::<f32>, 3), Rounded::new(None::<f64>, 3),
        BySerde(2_u8), BySerde(2_u16), BySerde("2"), BySerde(vec![2_u8]),
        Digest::from_bytes([2; 32]), Key::from_bytes([2; 32]), [2_u8; 32],
    }
}

#[test]
fn values_that_differ_in_type_only_have_different_keys() {
    let all = all_different();
    for (index, (name, one)) in all.iter().enumerate() {
        for (other_name, other) in &all[index + 1..] {
            assert_ne!(one, other, "{name} and {other_name}");
        }
    }
}

#[test]
fn where_a_field_ends_is_part_of_the_key() {
    let same = [
        digest(&("ab", "c")),
        digest(&("a", "bc")),
        digest(&("abc", "")),
        digest(&("", "abc")),
        digest(&("abc",)),
    ];
    let lists = [
        digest(&vec![vec![1_u8, 2], vec![3]]),
        digest(&vec![vec![1_u8], vec![2, 3]]),
        digest(&vec![vec![1_u8, 2, 3]]),
        digest(&vec![vec![1_u8, 2, 3], vec![]]),
        digest(&vec![vec![], vec![1_u8, 2, 3]]),
    ];
    for group in [same, lists] {
        assert_eq!(HashSet::from(group).len(), group.len());
    }
}

#[test]
fn holders_are_not_types() {
    let text = digest("6-31G*");
    assert_eq!(text, digest(&String::from("6-31G*")));
    assert_eq!(text, digest(&Cow::Borrowed("6-31G*")));
    assert_eq!(text, digest(&Arc::<str>::from("6-31G*")));
    assert_eq!(text, digest(&Box::<str>::from("6-31G*")));
    assert_eq!(text, digest(&&"6-31G*"));

    let list = digest(&vec![1.0, 2.0, 3.0]);
    assert_eq!(list, digest(&[1.0, 2.0, 3.0]));
    assert_eq!(list, digest(&[1.0, 2.0, 3.0][..]));
    assert_eq!(list, digest(&VecDeque::from([1.0, 2.0, 3.0])));
    assert_eq!(list, digest(&Arc::<[f64]>::from([1.0, 2.0, 3.0])));
    assert_eq!(list, digest(&[&1.0, &2.0, &3.0]));
    assert_eq!(list, digest(&[Box::new(1.0), Box::new(2.0), Box::new(3.0)]));
    let mut turned = VecDeque::from([3.0, 1.0, 2.0]);
    turned.rotate_left(1);
    assert_eq!(list, digest(&turned));
    let lists = digest(&vec![vec![1.0, 2.0], vec![3.0, 4.0]]);
    assert_eq!(lists, digest(&vec![[1.0, 2.0], [3.0, 4.0]]));

    assert_eq!(digest(&None::<Arc<f64>>), digest(&None::<f64>));
    same(&None::<Vec<f64>>, &None::<VecDeque<f64>>);
    same(&Vec::<Box<Metres>>::new(), &Vec::<Metres>::new());
    same(Path::new("a/b"), &Path::new("a/b").to_path_buf());
}

/// serde shows no type where there is no value. It is said in the docs.
#[test]
fn what_serde_does_not_show_is_not_in_the_key() {
    assert_eq!(digest(&BySerde(None::<u8>)), digest(&BySerde(None::<u16>)));
    let empty = digest(&BySerde(Vec::<u8>::new()));
    assert_eq!(empty, digest(&BySerde(Vec::<f64>::new())));
    let none = digest(&Vec::<BySerde<u8>>::new());
    assert_eq!(none, digest(&Vec::<BySerde<f64>>::new()));
    assert_ne!(none, empty);
}

trait Potential: Fingerprint {}
impl TypeShape for dyn Potential + '_ {}
impl Potential for Metres {}

#[test]
fn a_trait_object_is_what_it_holds() {
    let anything: &dyn Fingerprint = &Metres(2.0);
    assert_eq!(digest(anything), digest(&Metres(2.0)));
    assert_eq!(digest(&anything), digest(&Metres(2.0)));
    let boxed: Box<dyn Potential> = Box::new(Metres(2.0));
    assert_eq!(digest(&boxed), digest(&Metres(2.0)));
    assert_eq!(digest(&vec![boxed]), digest(&vec![Metres(2.0)]));
    let number: Box<dyn Fingerprint> = Box::new(2.0_f64);
    assert_eq!(digest(&(number, 1_u8)), digest(&(2.0_f64, 1_u8)));
}

#[test]
fn times_differ_to_the_nanosecond() {
    let now = SystemTime::UNIX_EPOCH + Duration::new(1_800_000_000, 1);
    assert_ne!(digest(&now), digest(&(now + Duration::from_nanos(1))));
    assert_eq!(commit(&now).unwrap(), commit(&now.clone()).unwrap());
}

/// Found by a hostile program: a `RangeInclusive` that was iterated to its end has the bounds of one that was not, and had its key.
#[test]
fn a_range_that_is_used_up_is_another() {
    let mut used_up = 0_u8..=3;
    used_up.by_ref().for_each(drop);
    assert_eq!((used_up.start(), used_up.end()), (&3, &3));
    assert_ne!(digest(&used_up), digest(&(3_u8..=3)));
    let (first, last) = (4_u8, 3);
    assert_ne!(digest(&used_up), digest(&(first..=last)));
    assert_eq!(sde::key::describe(&used_up), "used up");
}
