//! The codes that are not current, by the rule of `sde table`.

use std::collections::HashSet;
use std::path::Path;

use sde_archives::inspect::{Computations, Listed, Standing};

use crate::codes::Codes;
use crate::failed;
use crate::failure::Failure;
use crate::runs::Run;
use crate::{store, time};

/// The codes of entries that are not current.
pub fn old_codes(path: &Path, codes: &mut Codes) -> Result<HashSet<u32>, Failure> {
    let (store, old) = store::read(path, |store| {
        let mut seen = HashSet::new();
        let mut found = Computations::default();
        let wanted = |listed: &Listed| listed.is_entry() || listed.is_mark() || listed.is_uses();
        store.walk(Some(&wanted), |_, item| {
            found.add(item, |entry| {
                let code = codes.of(&entry.record, Run::of(&entry).is_some());
                seen.insert(code);
                let failure = entry.record.failure.as_ref();
                let made = time::of(entry.record.made_at);
                Some((code, made, failure.map(|failure| failure.of)))
            });
        });
        let found = found.resolve(|_, _| {});
        store.gone |= found.gone;
        let failures = failed::standing(&found.all, |(.., of)| *of);
        for one in &found.all {
            let (code, made, failed) = one.of;
            let counts = failed.is_none() || failures.contains(&one.key);
            if counts && one.standing == Standing::Current {
                let uses = found.uses(&one.key).filter(|_| failed.is_none());
                let used = uses.map(|uses| time::of_nanos(uses.last));
                codes.note(code, made, used, failed.is_some());
            }
        }
        let current = codes.current();
        seen.retain(|code| !current.contains(code));
        Ok(seen)
    })?;
    match store.is_whole() {
        true => Ok(old),
        // What can't be read may be of the code that counts.
        false => Err(Failure::told(
            "the store is damaged, so which code is old is not certain; `sde verify` says what is damaged",
        )),
    }
}
