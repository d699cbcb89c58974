//! How much of a disk results take, and that what is left out comes back.

use std::path::Path;

use sde::archiver::Archiver;
use sde::{Sde, inputs};
use sde_archives::DirStore;
use tempfile::tempdir;

#[sde::app]
fn square(number: u64) -> u64 {
    number.wrapping_mul(number)
}

/// A result of 100 bytes.
#[sde::app]
fn note(number: u64) -> String {
    format!("{number:098}")
}

#[sde::app]
fn mixed(
    flag: bool,
    small: i8,
    ratio: f32,
    value: f64,
    letter: char,
    text: String,
    list: Vec<u64>,
) -> u64 {
    let all = (flag, small, ratio, value, letter, text, list);
    format!("{all:?}").len() as u64
}

fn bytes(dir: &Path) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        // It is as long for any number of results.
        if entry.file_name() == "RESERVE" {
            continue;
        }
        bytes += match entry.file_type().unwrap().is_dir() {
            true => self::bytes(&entry.path()),
            false => entry.metadata().unwrap().len(),
        };
    }
    bytes
}

/// All that a store takes for so many results, with index and manifest, of each.
fn bytes_of_each(count: u64, run: impl Fn(&Sde, u64)) -> u64 {
    let dir = tempdir().unwrap();
    let sde = Sde::builder()
        .store(DirStore::open(dir.path()).unwrap())
        .save(sde::SavePolicy::OnRequest);
    let sde = sde.build().unwrap();
    (0..count).for_each(|number| run(&sde, number));
    sde.finish().unwrap();
    drop(sde);
    bytes(dir.path()).div_ceil(count)
}

#[test]
fn small_results_take_little() {
    let number = bytes_of_each(100_000, |sde, number| {
        drop(square.call(sde, number).unwrap())
    });
    assert!(number <= 150, "a u64 takes {number} bytes");
    let text = bytes_of_each(10_000, |sde, number| drop(note.call(sde, number).unwrap()));
    assert!(text <= 250, "100 bytes take {text}");
}

#[test]
fn one_result_alone_takes_less_than_a_page_of_a_disk() {
    let bytes = bytes_of_each(1, |sde, number| drop(square.call(sde, number).unwrap()));
    assert!(bytes <= 2048, "{bytes}");
}

/// Short texts and digests of scalars are not stored.
#[test]
fn records_come_back_as_they_were() {
    let dir = tempdir().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let ratios = [
        0.1_f32,
        -0.0,
        f32::MIN_POSITIVE,
        f32::NAN,
        f32::from_bits(0x7fa0_0001),
        1.0,
    ];
    for (number, ratio) in (0_i8..).zip(ratios) {
        let given = inputs! {
            flag: number % 2 == 0,
            small: -number,
            ratio: ratio,
            value: f64::from_bits(0x7ff0_0000_0000_0000 + number as u64),
            letter: 'é',
            text: "\"quoted\"\n".repeat(number as usize * 4),
            list: vec![number as u64; 3]
        };
        sde.run(&mixed, &given).unwrap();
    }
    sde.finish().unwrap();
    let mut compared = 0;
    sde.records(|record| {
        let found = store.find(&record.key).unwrap().unwrap();
        assert_eq!(format!("{:?}", found.record), format!("{record:?}"));
        compared += 1;
    });
    assert_eq!(compared, ratios.len());
}
