//! Scalars: what a record keeps of an input can be made of its value and type alone.

use std::borrow::Cow;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use sde::key::Scalar;
use sde::key::{Bare, Encoder, FingerprintError, Rounded, commit};
use sde::record::ValueSummary;
use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Instance, Parameter, ResultMap, Sde, Value,
};
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use serde::{Deserialize, Serialize};

/// Takes any input; its field and its parameter are of the same value.
#[derive(Fingerprint)]
struct Takes<T> {
    value: T,
}

/// What can be given in each place.
trait Given: Fingerprint + Clone + Send + Sync + 'static {}
impl<T: Fingerprint + Clone + Send + Sync + 'static> Given for T {}

impl<T: Given> App for Takes<T> {
    fn info(&self) -> AppInfo {
        AppInfo::new("scalars.Takes", "1").parameter(Parameter::new("value", self.value.clone()))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new())
    }
}

/// What records keep of the value as an input, a field and a parameter. As an input it is given back as it was.
fn summaries<T: Given>(value: &T) -> [ValueSummary; 3] {
    let sde = Sde::new();
    let app = Instance::new(Takes {
        value: value.clone(),
    });
    let inputs = Inputs::new().with("value", value.clone());
    let given = commit(value).unwrap();
    assert_eq!(commit(inputs.get::<T>("value").unwrap()).unwrap(), given);
    assert_eq!(commit(&inputs.value::<T>("value").unwrap()).unwrap(), given);
    sde.run(&app, &inputs).unwrap();
    let mut of_run = None;
    sde.records(|record| {
        let setup = &record.setup;
        let all = [&*record.inputs, &setup.fields, &setup.parameters];
        of_run = Some(all.map(|of| of[0].clone()));
    });
    of_run.unwrap()
}

/// What the record of the one run keeps of its input.
fn of_run(sde: &Sde) -> ValueSummary {
    let mut input = None;
    sde.records(|record| input = Some(record.inputs[0].clone()));
    input.unwrap()
}

fn check(summary: &ValueSummary) {
    let scalar = summary.scalar.as_ref().expect("a scalar");
    assert_eq!(scalar.summary("value"), *summary);
    let again = Scalar::of(scalar.type_name(), scalar.bare());
    assert_eq!(again.as_ref(), Some(scalar));
    let json = serde_json::to_string(summary).unwrap();
    let read: ValueSummary = serde_json::from_str(&json).unwrap();
    assert_eq!(read, *summary);
}

/// One test for each type, with the edges as likely as all else.
macro_rules! types {
    ($($name:ident: $type:ty, [$($edge:expr),*], $any:expr;)*) => {$(
        mod $name {
            use super::*;

            #[sde::app]
            fn typed(value: $type) -> u8 {
                let _ = value;
                0
            }

            proptest! {
                #[test]
                fn a_summary_is_made_of_the_scalar(
                    value in prop_oneof![proptest::sample::select(vec![$($edge),*]), $any]
                ) {
                    summaries::<$type>(&value).iter().for_each(check);
                    let sde = Sde::new();
                    typed.call(&sde, value).unwrap();
                    check(&of_run(&sde));
                }
            }
        }
    )*};
}

types! {
    of_u8: u8, [0, u8::MAX], any::<u8>();
    of_u16: u16, [0, u16::MAX], any::<u16>();
    of_u32: u32, [0, u32::MAX], any::<u32>();
    of_u64: u64, [0, u64::MAX], any::<u64>();
    of_usize: usize, [0, usize::MAX], any::<usize>();
    of_u128: u128, [0, u64::MAX.into()], any::<u64>().prop_map(u128::from);
    of_i8: i8, [0, -1, i8::MIN, i8::MAX], any::<i8>();
    of_i16: i16, [0, -1, i16::MIN, i16::MAX], any::<i16>();
    of_i32: i32, [0, -1, i32::MIN, i32::MAX], any::<i32>();
    of_i64: i64, [0, -1, i64::MIN, i64::MAX], any::<i64>();
    of_isize: isize, [0, -1, isize::MIN, isize::MAX], any::<isize>();
    of_i128: i128, [0, -1, i64::MIN.into(), i64::MAX.into()], any::<i64>().prop_map(i128::from);
    of_f32: f32, [0.0, -0.0, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, f32::from_bits(0x7fa0_0001), -f32::NAN],
        any::<u32>().prop_map(f32::from_bits);
    of_f64: f64, [0.0, -0.0, f64::MAX, f64::MIN_POSITIVE, f64::NEG_INFINITY, f64::from_bits(0x7ff4_0000_0000_0001), -f64::NAN],
        any::<u64>().prop_map(f64::from_bits);
    of_bool: bool, [false, true], any::<bool>();
    of_char: char, ['\0', '\n', '\'', '"', 'é', '\u{202e}', char::MAX], any::<char>();
    of_text: String, [String::new(), "é".to_owned(), "x".repeat(64), "é".repeat(32), "say \"no\"\\".to_owned(), "\0\t\u{1b}[0m\u{202e}".repeat(5)],
        ".{0,16}";
}

#[test]
fn handles_of_a_scalar_are_that_scalar() {
    let text = summaries(&"6-31G*".to_owned());
    text.iter().for_each(check);
    assert_eq!(summaries(&"6-31G*"), text);
    assert_eq!(summaries(&Arc::<str>::from("6-31G*")), text);
    assert_eq!(summaries(&Box::<str>::from("6-31G*")), text);
    assert_eq!(summaries(&Cow::Borrowed("6-31G*")), text);
    assert_eq!(summaries(&Value::new("6-31G*".to_owned())), text);
    assert_eq!(summaries(&Value::new(1.5)), summaries(&1.5));
    assert_eq!(summaries(&Arc::new(Box::new(1_u8))), summaries(&1_u8));
    assert_eq!(summaries(&Scalar::Usize(7)), summaries(&7_usize));
}

/// Its encoding is that of a number, its short text is not.
#[derive(Clone)]
struct ByHand(u64);

impl Fingerprint for ByHand {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.0.fingerprint(to)
    }
}

#[derive(Fingerprint, Clone)]
struct Charge(i32);

#[test]
fn what_reads_or_is_written_otherwise_is_none() {
    fn check<T: Given>(value: &T) {
        for summary in summaries(value) {
            assert_eq!(summary.scalar, None, "{}", summary.short);
        }
    }
    check(&"x".repeat(65));
    check(&(u128::from(u64::MAX) + 1));
    check(&(i128::from(i64::MIN) - 1));
    check(&ByHand(1));
    check(&Charge(1));
    check(&Some(1_u8));
    check(&(1.0,));
    check(&[1.0]);
    check(&Rounded::new(1.0, 3));
    check(&NonZero::<u32>::MIN);
    check(&Duration::from_secs(1));
    check(&PathBuf::from("x"));
    check(&Scalar::Text("x".repeat(65).into()));
}

#[test]
fn what_is_stored_without_a_scalar_has_none() {
    let [summary, ..] = summaries(&vec![1.0]);
    let json = serde_json::to_string(&summary).unwrap();
    assert!(!json.contains("scalar"));
    let read: ValueSummary = serde_json::from_str(&json).unwrap();
    assert_eq!(read, summary);
}

#[test]
fn a_value_is_no_scalar_of_a_type_that_it_is_not_of() {
    let text = |text: &str| Bare::Text(text.to_owned().into());
    for (type_name, value) in [
        ("u8", Bare::Unsigned(256)),
        ("u8", Bare::Signed(-1)),
        ("i64", Bare::Unsigned(1 << 63)),
        ("f32", Bare::F64(1.0)),
        ("f64", Bare::Unsigned(1)),
        ("bool", Bare::Unsigned(1)),
        ("char", text("")),
        ("char", text("ab")),
        ("text", text(&"x".repeat(65))),
        ("text", Bare::Bool(true)),
        ("u7", Bare::Unsigned(1)),
    ] {
        let got = Scalar::of(type_name, value.clone());
        assert_eq!(got, None, "{type_name} {value:?}");
    }
    let got = Scalar::of("i64", Bare::Unsigned(1));
    assert_eq!(got, Scalar::of("i64", Bare::Signed(1)));
}

#[test]
fn scalars_are_told_apart_by_type_and_bits() {
    let all = [
        Scalar::U8(1),
        Scalar::U8(2),
        Scalar::U16(1),
        Scalar::I8(1),
        Scalar::I8(-1),
        Scalar::F32(0.0),
        Scalar::F32(-0.0),
        Scalar::F64(0.0),
        Scalar::F64(-0.0),
        Scalar::Bool(true),
        Scalar::Bool(false),
        Scalar::Char('1'),
        Scalar::Text("1".into()),
        Scalar::Text("2".into()),
    ];
    for (at, one) in all.iter().enumerate() {
        for (other_at, other) in all.iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_plain_value_is_written_bare() {
    fn read<'de>(from: impl IntoDeserializer<'de, Error>) -> Bare<'static> {
        Bare::deserialize(from.into_deserializer()).unwrap()
    }
    fn json(value: impl Serialize) -> String {
        serde_json::to_string(&value).unwrap()
    }
    let nan = f32::from_bits(0x7fa0_0001);
    assert_eq!(read(nan), Bare::F32(nan));
    assert_eq!(read(-0.0), Bare::F64(-0.0));
    assert_eq!(read(true), Bare::Bool(true));
    assert_eq!(read(7_u64), Bare::Unsigned(7));
    assert_eq!(read(-7_i64), Bare::Signed(-7));
    assert_eq!(read("é"), Scalar::Char('é').bare());
    let all = ["1.5", "-7", "7", "true", "\"é\""];
    let written = [
        json(Bare::F32(1.5)),
        json(Bare::Signed(-7)),
        json(Bare::Unsigned(7)),
        json(Bare::Bool(true)),
        json(Scalar::Char('é').bare()),
    ];
    assert_eq!(written, all);
}
