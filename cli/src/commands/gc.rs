//! `sde gc`: makes room.

use sde_archives::{Options, Order, Retention};
use serde_json::json;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::{text, time};

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    let mut retention = Retention::new();
    let mut options = Options::new();
    let mut dry_run = false;
    while let Some(option) = arguments.option()? {
        match &*option {
            "dry-run" => dry_run = true,
            "max-bytes" => {
                let bytes = arguments.read("a size: 500M or 20G", bytes)?;
                retention = retention.max_bytes(bytes);
            }
            "max-age" => {
                let age = arguments.read("an age: 12h, 30d or 8w", time::ago)?;
                retention = retention.max_age(age);
            }
            "policy" => {
                let order = arguments.read("a policy: lru or fifo", |text| match text {
                    "lru" => Some(Order::LeastRecentlyUsed),
                    "fifo" => Some(Order::FirstIn),
                    _ => None,
                })?;
                retention = retention.order(order);
            }
            "results" => retention = retention.results(),
            "trust-others" => options = options.trust_others(),
            other => return Err(arguments.unknown(other)),
        }
    }
    let as_json = arguments.json;
    let [path] = arguments.values(["STORE"], 0)?;
    let path = path.unwrap_or_default();
    // Opening makes a store of an empty folder; that is not what was asked for.
    sde_archives::inspect::Inspection::open(&path)?;
    if dry_run {
        retention = retention.dry_run();
    }
    let done = options.open(&path)?.compact(&retention)?;
    if done.busy {
        return Err(Failure::told(
            "somebody else is making room in this store; nothing was done, try again later",
        ));
    }
    if as_json {
        return out.json(&json!({
            "dry_run": dry_run,
            "replaced": done.replaced,
            "written": done.written,
            "bytes_before": done.bytes_before,
            "bytes_after": done.bytes_after,
            "given_up": done.given_up,
            "removed": done.removed,
        }));
    }
    let would = if dry_run { "would be " } else { "" };
    if done.replaced == 0 && done.removed == 0 {
        return out.line("nothing to do");
    }
    out.wrapped(
        format!(
            "{} {would}replaced, {} of {} kept",
            text::count(done.replaced, "segment", "segments"),
            text::size(done.bytes_after),
            text::size(done.bytes_before),
        ),
        2,
    )?;
    if done.given_up > 0 {
        let entries = text::count(done.given_up, "entry", "entries");
        out.line(format!("{entries} {would}given up, or part of them"))?;
    }
    if done.removed > 0 {
        let files = text::count(done.removed, "file", "files");
        out.line(format!("{files} {would}removed"))?;
    }
    if done.replaced > 0 && !dry_run {
        out.wrapped(
            "the files that were replaced stay for a time of grace, for those who read them; \
             they are removed by a later `sde gc`, or by a program that saves",
            2,
        )?;
    }
    Ok(())
}

/// `20G` in bytes.
fn bytes(text: &str) -> Option<u64> {
    let text = text
        .strip_suffix("iB")
        .or(text.strip_suffix('B'))
        .unwrap_or(text)
        .trim();
    let (number, unit) = match text.chars().last()? {
        digit if digit.is_ascii_digit() => (text, 1),
        letter => {
            let power = "KMGTP".find(letter.to_ascii_uppercase())? as u32 + 1;
            (text.strip_suffix(letter)?, 1024_u64.checked_pow(power)?)
        }
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, size) in [
            ("0", 0),
            ("17", 17),
            ("2k", 2048),
            ("3MiB", 3 << 20),
            ("20G", 20 << 30),
            ("5 B", 5),
        ] {
            assert_eq!(bytes(text), Some(size), "{text}");
        }
        for wrong in ["", "G", "-1", "1.5G", "99999999P", "3X"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
