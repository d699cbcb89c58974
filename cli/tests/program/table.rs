//! `sde table`: each number to the bit, each run once.

use sde::{
    App, AppError, AppInfo, Handle, Inputs, Policy, ResultMap, ResultSpec, SavePolicy, Sde, Tag,
    inputs,
};
use sde_archives::DirStore;

use super::kit::{Done, OFFSET, Sample, energy, engine, says, sde, sde_wide};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Fit {
    slope: f64,
    steps: u32,
    converged: bool,
    method: String,
    origin: Option<f32>,
    residuals: Vec<f64>,
}

const SLOPES: [f64; 5] = [0.1, -1.0 / 3.0, f64::MIN_POSITIVE, 1e300, f64::NAN];

#[sde::app(name = "cli.fit", version = "1")]
fn fit(name: &str, number: u64, weight: f64) -> Fit {
    Fit {
        slope: SLOPES[number as usize] * weight,
        steps: number as u32,
        converged: number != 2,
        method: format!("method, {name}"),
        origin: (number % 2 == 1).then_some(0.1),
        residuals: vec![weight; 3],
    }
}

#[sde::app(name = "cli.pair", version = "1")]
fn pair(result: i64, key: u8) -> (i64, bool) {
    (-result, key == 0)
}

/// Has a field and a result of one name, and its results in two frames.
#[derive(sde::Fingerprint)]
struct Solver {
    steps: u64,
}

impl App for Solver {
    fn info(&self) -> AppInfo {
        AppInfo::new("cli.solver", "1")
            .result(ResultSpec::new::<u64>("steps"))
            .result(ResultSpec::new::<f64>("guess").tagged(Tag::Intermediate))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let results = ResultMap::new().with("steps", self.steps + 1);
        Ok(results.with("guess", 0.5))
    }
}

struct Sweep {
    _folder: tempfile::TempDir,
    path: String,
}

impl Sweep {
    /// Runs of `fit`, the first of them refreshed last; and one of another app.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = DirStore::open(folder.path()).unwrap();
        let sde = Sde::builder().store(store).save(SavePolicy::EveryResult);
        let sde = sde.build().unwrap();
        for number in 0..5 {
            fit.call(&sde, "a", number, 1.0).unwrap();
        }
        let first = inputs! { name: "a".to_owned(), number: 0_u64, weight: 1.0 };
        let again = sde.request(&fit, &first).policy(Policy::Refresh);
        again.run().unwrap();
        pair.call(&sde, 7, 0).unwrap();
        sde.run(&Solver { steps: 8 }, &inputs! {}).unwrap();
        sde.checkpoint().unwrap();
        sde.finish().unwrap();
        Self {
            path: folder.path().to_str().unwrap().to_owned(),
            _folder: folder,
        }
    }

    fn table(&self, more: &[&str]) -> Done {
        sde([&["table", &self.path, "--app", "cli.fit"], more].concat())
    }
}

const TITLES: &str =
    "name,number,weight,result.slope,result.steps,result.converged,result.method,result.origin,key";

/// The rows of a CSV file, which has texts with commas in quotation marks.
fn rows(text: &str) -> Vec<Vec<String>> {
    let row = |line: &str| {
        line.replace("\"method, a\"", "method a")
            .split(',')
            .map(str::to_owned)
            .collect()
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn csv_has_each_run_once_in_order_and_numbers_to_the_bit() {
    let sweep = Sweep::new();
    let done = sweep.table(&["--csv"]);
    assert_eq!(done.status, 0, "{}", done.err);
    says(&done.err, "left out");
    says(&done.err, "result.residuals");
    assert_eq!(done.out.lines().next(), Some(TITLES));
    let rows = rows(&done.out);
    // The first was made once more after the others.
    let numbers: Vec<usize> = rows.iter().map(|row| row[1].parse().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 0]);
    for (row, number) in rows.iter().zip(numbers) {
        let slope: f64 = row[3].parse().unwrap();
        assert_eq!(slope.to_bits(), SLOPES[number].to_bits(), "{row:?}");
        assert_eq!(
            row[4..7],
            [
                number.to_string(),
                (number != 2).to_string(),
                "method a".to_owned()
            ]
        );
        let origin = if number % 2 == 1 {
            "0.10000000149011612"
        } else {
            ""
        };
        assert_eq!(row[7], origin);
        assert_eq!(row[8].len(), 12);
    }
}

#[test]
fn json_has_an_object_a_run() {
    let sweep = Sweep::new();
    let done = sweep.table(&["--json"]);
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines.len(), 5);
    for (line, number) in lines.iter().zip([1, 2, 3, 4, 0]) {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let names: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(names.len(), TITLES.split(',').count());
        let got = (&object["number"], &object["weight"]);
        assert_eq!(got, (&number.into(), &1.0.into()));
        assert_eq!(object["result.origin"].is_null(), number % 2 == 0);
        assert_eq!(object["key"].as_str().unwrap().len(), 64);
        // The reader of JSON may round, so the text is looked at.
        let slope = SLOPES[number as usize];
        let text = if slope.is_nan() {
            "\"NaN\"".to_owned()
        } else {
            serde_json::to_string(&slope).unwrap()
        };
        says(&line, &format!("\"result.slope\":{text},"));
    }
}

/// The file of an array in an archive that is not compressed: its type, and its bytes.
fn array<'f>(file: &'f [u8], name: &str) -> (&'f str, &'f [u8]) {
    let name = format!("{name}.npy");
    let at = file
        .windows(name.len())
        .position(|part| part == name.as_bytes());
    let file = &file[at.unwrap()..];
    let at = file
        .windows(6)
        .position(|part| part == b"\x93NUMPY")
        .unwrap();
    let file = &file[at..];
    let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
    let (header, bytes) = file[10..].split_at(length);
    let header = std::str::from_utf8(header).unwrap();
    says(&header, "'shape': (5,)");
    let (_, descr) = header.split_once("'descr': '").unwrap();
    (descr.split_once('\'').unwrap().0, bytes)
}

#[test]
fn npz_has_an_array_a_column() {
    let sweep = Sweep::new();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fit.npz");
    let to = to.to_str().unwrap();
    let done = sweep.table(&["--npz", to]);
    assert_eq!((done.status, &*done.out), (0, ""), "{}", done.err);
    let file = std::fs::read(to).unwrap();
    let numbers = [1, 2, 3, 4, 0_usize];
    let floats = |of: &dyn Fn(usize) -> f64| -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| of(*number).to_le_bytes())
            .collect()
    };
    let (descr, bytes) = array(&file, "result.slope");
    let slopes = floats(&|number| SLOPES[number]);
    assert_eq!((descr, &bytes[..40]), ("<f8", &slopes[..]));
    let (descr, bytes) = array(&file, "number");
    let integers: Vec<u8> = numbers
        .iter()
        .flat_map(|number| (*number as i64).to_le_bytes())
        .collect();
    assert_eq!((descr, &bytes[..40]), ("<i8", &integers[..]));
    let (descr, bytes) = array(&file, "result.converged");
    assert_eq!((descr, &bytes[..5]), ("|b1", &[1, 0, 1, 1, 1][..]));
    // A gap is NaN.
    let (descr, bytes) = array(&file, "result.origin");
    let gaps = floats(&|number| {
        if number % 2 == 1 {
            f64::from(0.1_f32)
        } else {
            f64::NAN
        }
    });
    assert_eq!((descr, &bytes[..40]), ("<f8", &gaps[..]));
    let (descr, bytes) = array(&file, "result.method");
    let method: Vec<u8> = "method, a"
        .chars()
        .flat_map(|one| u32::from(one).to_le_bytes())
        .collect();
    assert_eq!((descr, &bytes[..36]), ("<U9", &method[..]));
    let again = sweep.table(&["--npz", to]);
    assert_eq!(again.status, 2);
    says(&again.err, "--force");
    assert_eq!(sweep.table(&["--npz", to, "--force"]).status, 0);
    // It made a file of that name.
    let mut program = super::kit::program();
    program.current_dir(folder.path());
    program.args(["table", &sweep.path, "--app", "cli.fit", "--npz", "-"]);
    assert!(program.output().unwrap().stdout.starts_with(b"PK"));
    assert!(!folder.path().join("-").exists());
}

#[test]
fn rows_can_be_sorted_and_limited() {
    let sweep = Sweep::new();
    let numbers = |more: &[&str]| -> Vec<String> {
        let done = sweep.table(&[&["--csv"], more].concat());
        rows(&done.out)
            .into_iter()
            .map(|mut row| row.swap_remove(1))
            .collect()
    };
    assert_eq!(numbers(&["-n", "2"]), ["4", "0"]);
    assert_eq!(numbers(&["--sort", "number"]), ["0", "1", "2", "3", "4"]);
    let got = numbers(&["--sort", "result.slope", "-n", "3"]);
    assert_eq!(got, ["0", "3", "4"]);
    let by_key = rows(&sweep.table(&["--csv", "--sort", "key"]).out);
    assert_eq!(by_key.len(), 5);
    assert!(by_key.is_sorted_by_key(|row| row[8].clone()));
    let unknown = sweep.table(&["--sort", "slope"]);
    assert_eq!(unknown.status, 2);
    says(&unknown.err, "result.slope");
}

#[test]
fn each_column_has_a_name_of_its_own() {
    let sweep = Sweep::new();
    let table = |app: &str| sde(["table", &sweep.path, "--app", app, "--csv"]).well();
    // Whose the key is, is no input.
    let told = table("cli.pair");
    let titles = "result,input key,result.0,result.1,key";
    assert!(
        told.starts_with(&format!("{titles}\n7,0,-7,true,")),
        "{told}"
    );
    let told = table("cli.solver");
    let titles = "setting steps,result steps,guess,key";
    assert!(told.starts_with(&format!("{titles}\n8,9,0.5,")), "{told}");
}

#[test]
fn the_table_fits_the_terminal_and_says_what_does_not() {
    let sweep = Sweep::new();
    for columns in [40, 80, 140] {
        let line = ["table", &sweep.path, "--app", "cli.fit"];
        let done = sde_wide(columns, line);
        let widest = done.out.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns, "{columns}:\n{}", done.out);
        // No digit of a number is cut.
        assert!(!done.out.contains("3333…"), "{}", done.out);
        let got = done.out.contains("no room for: ");
        assert_eq!(got, columns < 140, "{}", done.out);
        says(&done.out, "\n5 runs\n");
    }
}

#[test]
fn what_is_not_to_be_used_is_in_no_table() {
    let sample = Sample::new();
    let done = sample.run("table", &["--app", "cli.energy", "--csv"]);
    let text = done.well();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.starts_with("basis,charge,result,key\n"), "{text}");
    assert!(!text.contains("wrong"), "{text}");
}

/// A spreadsheet and a terminal obey control characters, whoever wrote them.
#[test]
fn texts_have_no_control_characters() {
    let sample = Sample::new();
    let evil = sample.run("table", &["--app", "cli.evil*", "--csv"]);
    assert!(!evil.out.contains('\u{1b}'), "{:?}", evil.out);
}

/// A store has both computations of it, each in a file of its own.
#[test]
fn a_run_that_another_program_made_again_is_one_row_with_its_later_result() {
    let folder = tempfile::tempdir().unwrap();
    let program = |charges: &[i32]| {
        let sde = engine(folder.path());
        for charge in charges {
            let given = inputs! { basis: "b".to_owned(), charge: *charge };
            let run = sde.request(&energy, &given);
            run.policy(Policy::Refresh).run().unwrap();
        }
        sde.finish().unwrap();
    };
    program(&[0, 4]);
    OFFSET.set(8.0);
    program(&[0]);
    OFFSET.set(0.0);
    let store = folder.path().to_str().unwrap();
    let table = sde(["table", store, "--csv"]).well();
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{table}");
    assert!(rows[0].starts_with("b,4,2.0,"), "{table}");
    assert!(rows[1].starts_with("b,0,9.0,"), "{table}");
}
