//! What a program, or the environment, says of how binaries are kept.

use std::ffi::OsString;
use std::time::Duration;

use sde_archives::Removal;
use sde_opencl::{DeviceType, Mode, Settings, SettingsError};

fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let find = |name: &str| variables.iter().find(|(there, _)| *there == name);
    Settings::from_variables(|name| find(name).map(|(_, value)| OsString::from(value)))
}

#[test]
fn variables_say_what_calls_say() {
    let said = settings(&[
        ("SDE_KERNEL_CACHE", "read"),
        ("SDE_KERNEL_CACHE_GPU", "read-write"),
        ("SDE_KERNEL_CACHE_CPU", "off"),
        ("SDE_KERNEL_CACHE_DIR", "/there"),
        ("SDE_KERNEL_CACHE_MAX_SIZE", "1000"),
        ("SDE_KERNEL_CACHE_ORDER", "fifo"),
        ("SDE_KERNEL_CACHE_MAX_AGE", "2"),
        ("SDE_KERNEL_CACHE_MIN_BINARY", "3"),
        ("SDE_KERNEL_CACHE_MAX_BINARY", "4"),
        ("SDE_KERNEL_CACHE_WAIT", "5"),
        ("SDE_KERNEL_CACHE_TRUST", "group"),
    ]);
    let called = Settings::new()
        .mode(DeviceType::Cpu, Mode::Off)
        .mode(DeviceType::Gpu, Mode::ReadWrite)
        .mode(DeviceType::Accelerator, Mode::Read)
        .dir("/there")
        .capacity(1000)
        .order(Removal::FirstIn)
        .max_age(Duration::from_secs(2 * 24 * 3600))
        .min_binary(3)
        .max_binary(4)
        .patience(Duration::from_secs(5))
        .trust_group();
    assert_eq!(format!("{:?}", said.unwrap()), format!("{called:?}"));
}

#[test]
fn nothing_said_is_the_default_and_zero_is_no_limit() {
    let empty = settings(&[
        ("SDE_KERNEL_CACHE_DIR", ""),
        ("SDE_KERNEL_CACHE_ORDER", "lru"),
    ]);
    let got = format!("{:?}", empty.unwrap());
    assert_eq!(got, format!("{:?}", Settings::new()));
    let unlimited = settings(&[
        ("SDE_KERNEL_CACHE_MAX_SIZE", "0"),
        ("SDE_KERNEL_CACHE_MAX_AGE", "0"),
    ]);
    let unlimited = unlimited.unwrap();
    assert_eq!((unlimited.capacity, unlimited.max_age), (None, None));
}

/// A directory may have any name; nothing else has a value that is no text.
#[cfg(unix)]
#[test]
fn a_value_that_is_no_text_is_an_error_but_for_the_directory() {
    use std::os::unix::ffi::OsStringExt;

    let settings = |there: &'static str| {
        Settings::from_variables(move |name| {
            let value = OsString::from_vec(b"/no\xfftext".to_vec());
            (name == there).then_some(value)
        })
    };
    let dir = settings("SDE_KERNEL_CACHE_DIR").unwrap().dir.unwrap();
    assert_eq!(dir.as_os_str().as_encoded_bytes(), b"/no\xfftext");
    for name in [
        "SDE_KERNEL_CACHE",
        "SDE_KERNEL_CACHE_MAX_SIZE",
        "SDE_KERNEL_CACHE_ORDER",
    ] {
        assert_eq!(settings(name).unwrap_err().name, name);
    }
}

#[test]
fn a_value_that_is_not_understood_is_an_error_with_the_name() {
    for name in [
        "",
        "_CPU",
        "_MAX_SIZE",
        "_MAX_AGE",
        "_ORDER",
        "_WAIT",
        "_TRUST",
        "_MIN_BINARY",
    ] {
        let name = format!("SDE_KERNEL_CACHE{name}");
        let error = settings(&[(&name, "perhaps")]).unwrap_err();
        assert_eq!((error.name, &*error.value), (name, "perhaps"));
    }
}
