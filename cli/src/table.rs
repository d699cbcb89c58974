//! Tables of objects.

use serde::Serialize;
use serde_json::{Value as Json, json};

pub use sde_table::text_table::{Lines, TextTable};

use crate::failure::Failure;
use crate::output::Output;
use crate::{text, time};

impl Lines for Output {
    type Error = Failure;

    fn width(&self) -> Option<usize> {
        self.width
    }

    fn line(&mut self, line: String) -> Result<(), Failure> {
        Self::line(self, line)
    }

    fn look_alike(&mut self) -> Result<(), Failure> {
        self.wrapped(
            "Some texts look alike where they are cut; --json has them whole.",
            0,
        )
    }
}

/// Writes a table of objects: a column for each member that is no list or object, the most important first.
pub fn write_objects(rows: &[impl Serialize], out: &mut Output) -> Result<(), Failure> {
    let rows: Vec<Json> = rows.iter().map(|row| json!(row)).collect();
    let members = rows.first().and_then(Json::as_object).into_iter().flatten();
    let plain = members.filter(|(_, member)| !member.is_array() && !member.is_object());
    let titled = plain.map(|(name, _)| (name.as_str(), title(name)));
    let titles: Vec<(&str, String)> = titled.collect();
    let mut table = TextTable::of(&rows);
    for (at, (name, title)) in titles.iter().enumerate() {
        let cell = |row: &Json| member(name, &row[*name]);
        let is_text = rows.iter().all(|row| !row[*name].is_number());
        table = match is_text {
            true => table.left(title, titles.len() - at, cell),
            false => table.right(title, titles.len() - at, cell),
        };
        if is_text && !is_time(name) {
            table = table.least(10);
        }
    }
    table.write(out).map(drop)
}

fn title(name: &str) -> String {
    let words = name.replace("_at", " (utc)").replace('_', " ");
    let words = words.replace("bytes", "size").replace("seconds", "time");
    words.to_uppercase()
}

fn is_time(name: &str) -> bool {
    name.ends_with("_at")
}

fn member(name: &str, value: &Json) -> String {
    let (bytes, seconds) = (value.as_u64(), value.as_f64());
    match (value, bytes, seconds) {
        (Json::Null, ..) => String::new(),
        (_, Some(bytes), _) if name == "bytes" => text::size(bytes),
        (_, _, Some(seconds)) if name.starts_with("seconds") => text::duration(seconds),
        (Json::String(text), ..) => match text.parse() {
            Ok(at) if is_time(name) => time::minute(at),
            _ => text.clone(),
        },
        (other, ..) => other.to_string(),
    }
}
