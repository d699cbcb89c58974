//! The columns of `sde table`: what a plot or a data frame needs to tell rows apart.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use sde::key::InputFile;
use sde::{
    AppInfo, Data, DynApp, Fingerprint, Handle, Inputs, OutputFile, ResultMap, ResultSpec,
    SavePolicy, Sde,
};
use sde_archives::DirStore;

use super::kit::{engine, says, sde, sde_wide};

#[derive(Clone, Fingerprint)]
struct Geometry {
    r: f64,
    element: String,
    cell: Cell,
    points: Vec<f64>,
}

#[derive(Clone, Fingerprint)]
enum Cell {
    None,
    Cube { edge: f64 },
    Ball { edge: f64 },
}

#[sde::app(name = "columns.energy", version = "1")]
fn energy(geometry: &Geometry, comment: &str) -> f64 {
    geometry.r + comment.len() as f64 + geometry.points.iter().sum::<f64>()
}

#[sde::app(name = "columns.atoms", version = "1")]
fn atoms(file: &InputFile) -> u64 {
    file.content_digest().unwrap().0
}

/// A column of texts for each title, in the order of the rows.
fn columns(path: &Path, app: &str, more: &[&str]) -> BTreeMap<String, Vec<String>> {
    let line = ["table", path.to_str().unwrap(), "--app", app, "--csv"];
    let text = sde([&line[..], more].concat()).well();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let titles = reader.headers().unwrap().clone();
    let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in reader.records() {
        let row = row.unwrap();
        for (title, cell) in titles.iter().zip(&row) {
            columns
                .entry(title.to_owned())
                .or_default()
                .push(cell.to_owned());
        }
    }
    columns
}

/// Whether two rows have equal cells in these columns.
fn has_twice(columns: &BTreeMap<String, Vec<String>>, given: &[&str]) -> bool {
    let rows = columns["key"].len();
    let row = |row: usize| {
        given
            .iter()
            .map(|one| columns[*one][row].clone())
            .collect::<Vec<_>>()
    };
    let all: HashSet<Vec<String>> = (0..rows).map(row).collect();
    all.len() < rows
}

/// What the Python package writes for types that only Python has.
#[test]
fn values_of_python_have_columns() {
    let tagged = |kind: &str, of: Data| {
        Data::Map([("py".to_owned(), kind.into()), ("of".to_owned(), of)].into())
    };
    let pair = |name: &str, value: Data| Data::List(vec![name.into(), value]);
    let numbers = vec![Data::Float(0.5), Data::Float(1.5)];
    let result = vec![
        pair("energy", Data::Float(-1.5)),
        pair("converged", Data::Bool(true)),
        pair("root", tagged("complex", Data::List(numbers.clone()))),
        pair("ends", tagged("tuple", Data::List(numbers))),
        pair(
            "mass",
            tagged(
                "numpy.scalar",
                tagged("tuple", Data::List(vec!["<f8".into(), Data::Float(2.5)])),
            ),
        ),
        pair("day", tagged("datetime.date", "2026-01-01".into())),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    let sde = engine(path);
    let result = tagged("dict", Data::List(result));
    let info = AppInfo::new("columns.python", "1").result(ResultSpec::data("result"));
    let app = DynApp::new(info, move |_, _| {
        Ok(ResultMap::new().with("result", result.clone()))
    });
    sde.run(&app, &Inputs::new()).unwrap();
    sde.finish().unwrap();
    let found = columns(path, "columns.python", &[]);
    let titles: Vec<&str> = found.keys().map(String::as_str).collect();
    let shown = [
        "key",
        "result.converged",
        "result.day",
        "result.ends.0",
        "result.ends.1",
        "result.energy",
        "result.mass",
        "result.root.im",
        "result.root.re",
    ];
    assert_eq!(titles, shown);
    assert_eq!(found["result.mass"], ["2.5"]);
}

#[test]
fn fields_of_structures_are_columns_and_texts_are_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    let sde = engine(path);
    let geometry = |r: f64, cell: Cell, points: &[f64]| Geometry {
        r,
        element: "H".to_owned(),
        cell,
        points: points.to_vec(),
    };
    let long = "a".repeat(70);
    let runs = [
        (geometry(0.5, Cell::None, &[]), &*long),
        (geometry(0.5, Cell::Cube { edge: 1.0 }, &[]), "b"),
        (geometry(0.5, Cell::Ball { edge: 1.0 }, &[]), "b"),
    ];
    for (geometry, comment) in &runs {
        energy.call(&sde, geometry, comment).unwrap();
    }
    sde.finish().unwrap();
    let found = columns(path, "columns.energy", &[]);
    let titles: Vec<&str> = found.keys().map(String::as_str).collect();
    let given = [
        "comment",
        "geometry.cell",
        "geometry.cell.edge",
        "geometry.element",
        "geometry.r",
    ];
    assert_eq!(titles, [&given[..], &["key", "result"]].concat());
    assert_eq!(found["geometry.r"], ["0.5"; 3]);
    assert_eq!(found["geometry.element"], ["H"; 3]);
    assert_eq!(found["geometry.cell"], ["None", "Cube", "Ball"]);
    assert_eq!(found["geometry.cell.edge"], ["", "1.0", "1.0"]);
    assert_eq!(found["comment"][0], long);
    assert!(!has_twice(&found, &given));

    // Two long arrays that begin alike, and two long texts.
    let sde = engine(path);
    let points = |last: f64| [[0.0; 100].as_slice(), &[last]].concat();
    let last = |last| geometry(2.0, Cell::None, &points(last));
    energy.call(&sde, &last(1.0), "b").unwrap();
    energy.call(&sde, &last(2.0), "b").unwrap();
    let text = |end: &str| "a".repeat(90) + end;
    energy.call(&sde, &runs[1].0, &text("1")).unwrap();
    energy.call(&sde, &runs[1].0, &text("2")).unwrap();
    sde.finish().unwrap();
    let found = columns(path, "columns.energy", &[]);
    assert!(has_twice(&found, &given));
    let with = [&given[..], &["geometry digest", "comment digest"]].concat();
    assert!(!has_twice(&found, &with), "{found:?}");
    assert!(
        found["geometry digest"]
            .iter()
            .all(|digest| digest.len() == 12)
    );
}

/// An edited file is another input, whatever its name.
#[test]
fn an_edited_file_has_rows_that_a_digest_tells_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    let files = ["water.xyz", "ethanol.xyz"].map(|name| folder.path().join(name));
    let run = |texts: [&str; 2]| {
        let sde = engine(path);
        for (file, text) in files.iter().zip(texts) {
            std::fs::write(file, text).unwrap();
            atoms.call(&sde, &InputFile::new(file)).unwrap();
        }
        sde.finish().unwrap();
    };
    run(["three", "nine"]);
    let found = columns(path, "columns.atoms", &[]);
    assert_eq!(
        found["file"],
        files.each_ref().map(|file| file.to_str().unwrap())
    );
    assert!(!found.contains_key("file digest"), "{found:?}");
    run(["edited", "nine"]);
    let found = columns(path, "columns.atoms", &[]);
    assert_eq!(found["key"].len(), 3);
    assert!(has_twice(&found, &["file"]));
    assert!(!has_twice(&found, &["file", "file digest"]));
    // A table on a terminal has it as well, and the list of entries.
    let store = path.to_str().unwrap();
    for command in ["table", "ls"] {
        let text = sde_wide(200, [command, store]).well();
        for digest in &found["file digest"] {
            says(&text, digest);
        }
    }
    // One array for each.
    let to = folder.path().join("table.npz");
    sde(["table", store, "--npz", to.to_str().unwrap()]).well();
    let bytes = std::fs::read(&to).unwrap();
    let has = |name: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    assert!(has(b"file digest.npy") && has(b"file.npy"));
}

#[sde::app(name = "columns.writes", version = "1")]
fn writes(sde: &Handle, number: u64) -> Result<OutputFile, sde::AppError> {
    let path = std::env::temp_dir().join(format!("sde-columns-{}-{number}", std::process::id()));
    std::fs::write(&path, number.to_string())?;
    let file = OutputFile::new(&path)?;
    energy.call(
        sde,
        &Geometry {
            r: 1.0,
            element: String::new(),
            cell: Cell::None,
            points: vec![],
        },
        "",
    )?;
    Ok(file)
}

/// Nobody gave the mode of a file, nor its length; and runs that a run called are no rows.
#[test]
fn a_workflow_has_a_row_for_what_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    let builder = Sde::builder().store(DirStore::open(path).unwrap());
    let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
    let made = [0, 1].map(|number| writes.call(&sde, number).unwrap());
    sde.finish().unwrap();
    let store = path.to_str().unwrap();
    let done = super::kit::sde(["table", store, "--csv"]);
    let titles = done.out.lines().next();
    assert_eq!(titles, Some("number,result,key"), "{}", done.out);
    assert_eq!(done.out.lines().count(), 3);
    says(&done.out, made[1].path().to_str().unwrap());
    says(&done.err, "1 run of other apps that these called: --app");
    let listed = super::kit::sde(["ls", store]).well();
    says(&listed, "\n2 entries, ");
    says(&listed, "1 run that these called: --nested");
    says(
        &super::kit::sde(["ls", store, "--nested"]).well(),
        "\n3 entries, ",
    );
    let line = ["table", store, "--nested"];
    assert_eq!(super::kit::sde(line).status, 2);
    for file in made {
        std::fs::remove_file(file.path()).unwrap();
    }
}

#[sde::app(name = "columns.many", version = "1")]
fn many(a_rather_long_name: &str, temperature_of_the_bath: f64, constant: &str) -> f64 {
    temperature_of_the_bath * (a_rather_long_name.len() + constant.len()) as f64
}

/// At 80 columns two rows never read alike.
#[test]
fn rows_that_differ_look_different() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    let sde = engine(path);
    for number in 0..4 {
        let name = format!("molecules/of/the/first/series/number-{number}.xyz");
        many.call(
            &sde,
            &name,
            300.0 + f64::from(number / 2) * 1e-12,
            "always the same text",
        )
        .unwrap();
    }
    sde.finish().unwrap();
    let store = path.to_str().unwrap();
    for columns in [80, 120] {
        let text = sde_wide(columns, ["table", store]).well();
        let rows = text.lines().skip(1).take(4).map(|line| {
            // Without the key.
            line.rsplit_once(' ').unwrap().0.trim_end().to_owned()
        });
        let rows: HashSet<String> = rows.collect();
        assert_eq!(rows.len(), 4, "{text}");
        if columns == 80 {
            says(&text, "no room for: ");
            says(&text, "--csv or --json has all");
        }
    }
}

/// Texts that differ in two places, of which a column has room for one.
#[test]
fn texts_that_look_alike_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    let sde = engine(path);
    for (first, second) in [(1, 5), (1, 6), (2, 5), (2, 6)] {
        let name = format!("first parameter of the model: {first}, second one of its: {second}");
        many.call(&sde, &name, 300.0, "").unwrap();
    }
    sde.finish().unwrap();
    let store = path.to_str().unwrap();
    let told = "Some texts look alike where they are cut";
    says(&sde_wide(80, ["table", store]).well(), told);
    assert!(!sde_wide(400, ["table", store]).well().contains(told));
}
