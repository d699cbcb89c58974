//! What programs have done with a store, as the journals of their processes say.

use std::collections::HashMap;

use sde::{AppStats, Journal};
use sde_archives::inspect::AboutWriter;
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::output::Output;
use crate::table::{self, Column};
use crate::{text, time};

/// Of each process the latest journal.
#[derive(Default)]
pub struct Programs(HashMap<u64, (u64, AboutWriter, Journal)>);

/// So many are shown.
const SHOWN: usize = 10;

const COLUMNS: [Column; 9] = [
    Column::new("STARTED (UTC)", 8),
    Column::new("PROGRAM", 7).least(10),
    Column::new("HOST", 2).least(6),
    Column::new("RANK", 1).right(),
    Column::new("COMPUTED", 6).right(),
    Column::new("LOADED", 5).right(),
    Column::new("IN MEMORY", 3).right(),
    Column::new("TIME", 4).right(),
    Column::new("SAVED", 5).right(),
];

impl Programs {
    pub fn add(&mut self, saved_at: u64, about: AboutWriter, journal: Journal) {
        let known = self.0.get(&journal.process);
        if known.is_none_or(|(known, ..)| *known < saved_at) {
            self.0.insert(journal.process, (saved_at, about, journal));
        }
    }

    /// Those that began last come first.
    fn sorted(&self) -> Vec<(&AboutWriter, &Journal)> {
        let all = self.0.values();
        let mut all: Vec<_> = all.map(|(_, about, journal)| (about, journal)).collect();
        all.sort_by_key(|(_, journal)| std::cmp::Reverse((journal.started, journal.process)));
        all
    }

    pub fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let all = self.sorted();
        if all.is_empty() {
            return Ok(());
        }
        let rows: Vec<Vec<String>> = all
            .iter()
            .take(SHOWN)
            .map(|(about, journal)| {
                let of = total(journal.apps.values());
                let rank = journal.rank.map(|(rank, ranks)| format!("{rank}/{ranks}"));
                vec![
                    time::text(journal.started).chars().take(16).collect(),
                    about.program.clone(),
                    about.host.clone(),
                    rank.unwrap_or_default(),
                    of.computed.to_string(),
                    of.loads.to_string(),
                    of.hits().to_string(),
                    text::duration(of.time_spent),
                    text::duration(of.time_saved),
                ]
            })
            .collect();
        out.line("")?;
        table::write(out, &COLUMNS, &rows)?;
        let of = total(all.iter().flat_map(|(_, journal)| journal.apps.values()));
        out.wrapped(
            format!(
                "{}: {} computed in {}, {} loaded, {} in memory, {} saved",
                text::count(all.len(), "process", "processes"),
                of.computed,
                text::duration(of.time_spent),
                of.loads,
                of.hits(),
                text::duration(of.time_saved),
            ),
            2,
        )
    }

    pub fn objects(&self) -> Vec<Json> {
        let all = self.sorted().into_iter();
        let apps = |journal: &Journal| -> Json {
            let apps = journal.apps.iter();
            apps.map(|(name, of)| (name.clone(), app(of))).collect()
        };
        all.map(|(about, journal)| {
            json!({
                "process": format!("{:016x}", journal.process),
                "started": time::iso(journal.started),
                "rank": journal.rank.map(|(rank, _)| rank),
                "ranks": journal.rank.map_or(1, |(_, ranks)| ranks),
                "program": about.program,
                "host": about.host,
                "apps": apps(journal),
            })
        })
        .collect()
    }
}

fn total<'a>(all: impl Iterator<Item = &'a AppStats>) -> AppStats {
    all.fold(AppStats::default(), |sum, one| sum.plus(*one))
}

fn app(of: &AppStats) -> Json {
    json!({
        "computed": of.computed,
        "loaded": of.loads,
        "in_memory": of.hits(),
        "waited": of.waits,
        "waited_for_others": of.waited_for_others,
        "beside_others": of.beside_others,
        "twice": of.duplicates,
        "failed": of.failures,
        "evicted": of.evicted,
        "seconds": of.time_spent.as_secs_f64(),
        "seconds_saved": of.time_saved.as_secs_f64(),
    })
}
