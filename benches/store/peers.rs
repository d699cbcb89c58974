//! The stores to compare with: keys and values in one transaction, durable when it
//! returns. Each is used as its documentation says.

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;
use std::time::{Duration, Instant};

/// Keys and values.
pub type Pairs = [([u8; 32], Vec<u8>)];

const TABLE: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("results");

/// The time of one transaction with all pairs in a new database, opened before.
pub type Save = fn(&Path, &Pairs) -> Duration;

pub const ALL: [(&str, Save); 3] = [
    ("redb", redb_save),
    ("fjall", fjall_save),
    ("SQLite", sqlite_save),
];

/// With redb.
pub fn redb_save(dir: &Path, pairs: &Pairs) -> Duration {
    let database = Database::create(dir.join("redb")).unwrap();
    let begin = Instant::now();
    let mut transaction = database.begin_write().unwrap();
    transaction.set_durability(Durability::Immediate).unwrap();
    {
        let mut table = transaction.open_table(TABLE).unwrap();
        for (key, value) in pairs {
            table.insert(key, value.as_slice()).unwrap();
        }
    }
    transaction.commit().unwrap();
    begin.elapsed()
}

/// With fjall: one batch, its journal synced with `fdatasync`.
fn fjall_save(dir: &Path, pairs: &Pairs) -> Duration {
    let keyspace = fjall::Config::new(dir.join("fjall")).open().unwrap();
    let results = keyspace
        .open_partition("results", fjall::PartitionCreateOptions::default())
        .unwrap();
    let begin = Instant::now();
    let mut batch = fjall::Batch::with_capacity(keyspace.clone(), pairs.len())
        .durability(Some(fjall::PersistMode::SyncData));
    for (key, value) in pairs {
        batch.insert(&results, key.as_slice(), value.as_slice());
    }
    batch.commit().unwrap();
    begin.elapsed()
}

/// With SQLite: a log that is synced at each commit, and a cache (256 MiB) that holds all.
fn sqlite_save(dir: &Path, pairs: &Pairs) -> Duration {
    let mut connection = rusqlite::Connection::open(dir.join("sqlite")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA cache_size = -262144;
             CREATE TABLE results (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;",
        )
        .unwrap();
    let begin = Instant::now();
    let transaction = connection.transaction().unwrap();
    {
        let mut insert = transaction
            .prepare("INSERT INTO results VALUES (?1, ?2)")
            .unwrap();
        for (key, value) in pairs {
            insert.execute((key.as_slice(), value.as_slice())).unwrap();
        }
    }
    transaction.commit().unwrap();
    begin.elapsed()
}

/// The time in which redb opens the database of [`redb_save`] and reads all its keys.
pub fn redb_scan(dir: &Path, keys: u64) -> Duration {
    let begin = Instant::now();
    let database = Database::open(dir.join("redb")).unwrap();
    let transaction = database.begin_read().unwrap();
    let table = transaction.open_table(TABLE).unwrap();
    let mut first = [0_u64; 256];
    for pair in table.iter().unwrap() {
        let (key, _) = pair.unwrap();
        first[usize::from(key.value()[0])] += 1;
    }
    let took = begin.elapsed();
    assert_eq!(first.iter().sum::<u64>(), keys);
    took
}

/// This many pairs: keys are digests, as the engine's, and values have this length.
pub fn pairs(count: u64, length: usize) -> Vec<([u8; 32], Vec<u8>)> {
    let pair = |number: u64| {
        let key = *blake3::hash(&number.to_le_bytes()).as_bytes();
        let mut value = format!("{number:098}").into_bytes();
        value.resize(length, b'-');
        (key, value)
    };
    (0..count).map(pair).collect()
}
