//! `sde table`: the runs of an app, with inputs and results.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};

use sde_archives::inspect::Decoded;
use sde_table::rows::Row;
use sde_table::table::{self, Asked, shown, value};
use sde_table::{CodeChoice, Unseen};
use serde_json::Map;

use crate::args::{self, ChoiceArgs, Place};
use crate::failure::Failure;
use crate::npy::{self, Array};
use crate::output::{Output, warn};
use crate::{file, store, text};
use sde_table::columns;

/// The runs of an app, a row each: what they were given, and what came of them
///
/// All rows are of one code, the one that was used last; --all-code has the others too.
/// Columns are inputs, fields and parameters of the app, and the results that are numbers, truth values or short texts, or
/// have fields that are. A run that failed, and has had no result since, has a row without results: its error is in a column `error`. Numbers have all digits that it takes to have their bits again.
#[derive(Args)]
pub struct Table {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Runs of all code, with a column that tells which; without it only those of the code that was used last
    #[arg(long)]
    all_code: bool,
    /// Runs of this code, by its version or the beginning of its digest, as the column `code` of --all-code shows it
    #[arg(
        long,
        value_name = "DIGEST",
        conflicts_with = "all_code",
        value_parser = NonEmptyStringValueParser::new()
    )]
    code: Option<String>,
    /// Also the runs that other runs of this store called, where no --app says of which app
    #[arg(long)]
    nested: bool,
    /// In the order of this column, in place of that in which the runs were made
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Only the last N rows
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// A value that is taken out of what a command's run wrote, in place of those of the rules that are kept; several
    #[arg(long, value_name = "NAME=[FILE:]REGEX")]
    get: Vec<String>,
    /// As comma-separated values
    #[arg(long, conflicts_with_all = ["json", "npz"])]
    csv: bool,
    /// To a file for numpy.load, an array for each column; `-` is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "json")]
    npz: Option<PathBuf>,
    /// FILE may be there already, and is replaced
    #[arg(long, requires = "npz")]
    force: bool,
}

impl Table {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let asked = self.asked()?;
        let (store, table) = store::read(&self.place.only()?, |store| {
            Ok(table::Table::read(store, &asked)?)
        })?;
        let (told, table) = (told(&table.unseen), Shown(table));
        if let Some(path) = &self.npz {
            file::write(path, self.force, out, |mut to| {
                npy::write_npz(table.arrays(), &mut to)
            })?;
        } else if self.csv {
            table.csv(out)?;
        } else if out.json {
            table.objects(out)?;
        } else {
            table.print(out)?;
            told.iter().try_for_each(|one| out.wrapped(one, 2))?;
        }
        out.flush()?;
        if self.csv || self.npz.is_some() || out.json {
            told.iter().for_each(warn);
        }
        let left_out = &table.0.left_out;
        if !left_out.is_empty() {
            let names = left_out.iter().map(|(_, name)| name.as_str());
            let mut names: Vec<&str> = names.take(TOLD).collect();
            names.extend((left_out.len() > TOLD).then_some("…"));
            let names = names.join(", ");
            warn(format!(
                "left out, as they are no numbers, truth values or short texts: {names}; `sde export` writes them"
            ));
        }
        store::conclude(&store, out)
    }

    fn asked(&self) -> Result<Asked, Failure> {
        let gets = self.get.iter().map(|get| {
            let (name, expression) = args::named_value(get)?;
            Ok((name.to_owned(), expression.to_owned()))
        });
        Ok(Asked {
            choice: self.choice.choice(),
            code: CodeChoice {
                all_code: self.all_code,
                code: self.code.clone(),
            },
            nested: self.nested,
            sort: self.sort.clone(),
            limit: self.limit,
            gets: gets.collect::<Result<_, Failure>>()?,
        })
    }
}

/// What is to be told of what a table does not show.
fn told(unseen: &Unseen) -> Vec<String> {
    let other = (unseen.other_code > 0).then(|| {
        let count = text::count(unseen.other_code, "combination", "combinations");
        format!("{count} only under other code: --all-code")
    });
    let since = unseen
        .since
        .as_ref()
        .map(|named| format!("other code was used since this one began: {named}: --code"));
    let called = (unseen.called > 0).then(|| {
        let runs = text::count(unseen.called, "run", "runs");
        format!("{runs} of other apps that these called: --app")
    });
    other.into_iter().chain(since).chain(called).collect()
}

/// The most results without a column that are named.
const TOLD: usize = 20;

/// A table, as it is written.
struct Shown(table::Table);

impl Shown {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let count = self.0.rows.all.len();
        if count == 0 {
            return out.line("no entries");
        }
        let left_out = self.0.write(count, out)?;
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            out.wrapped(format!("no room for: {names}; --csv or --json has all"), 2)?;
        }
        out.line(text::count(count, "run", "runs"))
    }

    fn csv(&self, out: &mut Output) -> Result<(), Failure> {
        let mut csv = csv::Writer::from_writer(out.raw());
        let clean = |texts: Vec<String>| texts.into_iter().map(|one| text::clean(&one));
        let titles = self.0.titles.iter().map(|(_, title)| title.clone());
        csv.write_record(clean(titles.chain(["key".to_owned()]).collect()).collect::<Vec<_>>())?;
        for row in &self.0.rows.all {
            csv.write_record(clean(self.row(row)).collect::<Vec<_>>())?;
        }
        Ok(csv.flush()?)
    }

    fn objects(&self, out: &mut Output) -> Result<(), Failure> {
        self.0.rows.all.iter().try_for_each(|row| {
            let members = self.0.titles.iter().map(|(column, title)| {
                let value = self.0.rows.cell(row, *column);
                let value = value.as_ref().map(columns::json);
                (title.clone(), value.unwrap_or_default())
            });
            let key = ("key".to_owned(), row.key.to_string().into());
            out.object(&members.chain([key]).collect::<Map<_, _>>())
        })
    }

    fn row(&self, row: &Row) -> Vec<String> {
        let columns = self.0.titles.iter();
        let texts = columns.map(|(column, _)| shown(self.0.rows.cell(row, *column)));
        texts.chain([row.key.short()]).collect()
    }

    fn arrays(&self) -> impl Iterator<Item = (String, Array)> {
        let columns = self.0.titles.iter();
        let columns = columns.map(|(column, title)| (title.clone(), self.array(*column)));
        let keys = Array::texts(self.0.rows.all.iter().map(|row| row.key.short()));
        columns.chain([("key".to_owned(), keys)])
    }

    /// Numbers as numbers, as floats with NaN if there are gaps; truth values; all else as texts.
    fn array(&self, column: u32) -> Array {
        let cells = self.0.cells(column);
        let values: Vec<Decoded> = cells.clone().map(|cell| value(cell.as_ref())).collect();
        let float = |value: &Decoded| match value {
            Decoded::Null => Some(f64::NAN),
            Decoded::Float(number) => Some(*number),
            // A larger integer may lose digits.
            Decoded::Integer(integer) if integer.unsigned_abs() <= 1 << 53 => Some(*integer as f64),
            _ => None,
        };
        let truth = |value: &Decoded| match value {
            Decoded::Bool(truth) => Some(u8::from(*truth)),
            _ => None,
        };
        let as_floats = || values.iter().map(float).collect::<Option<Vec<_>>>();
        if let Some(numbers) = npy::of_list(&values) {
            numbers
        } else if let Some(numbers) = as_floats() {
            let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
            Array::line("<f8", numbers.len(), bytes.collect())
        } else if let Some(truths) = values.iter().map(truth).collect::<Option<Vec<_>>>() {
            Array::line("|b1", truths.len(), truths)
        } else {
            Array::texts(cells.map(shown))
        }
    }
}
