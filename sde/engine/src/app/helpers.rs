//! Functions and constants that count as code of the apps that name them.
//!
//! An `#[sde::app]` function is known by the digest of its tokens, and those of a function that it calls are elsewhere.
//! `#[sde::helper]` has the linker collect the digest of such a function and the words in it. An app names a helper
//! if the helper's name is among its words, and what a helper names counts too. That is more than is called: names are
//! not paths, and a variable may be called as a helper elsewhere is. One helper too many is harmless; one too few would
//! be a wrong result.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use super::identity::CodeId;
use crate::inputs::ValueSummary;
use crate::key::Digest;

/// A helper of this program, as the linker collects them. Made by the macro.
pub struct LinkedHelper {
    /// The identifier.
    pub name: &'static str,
    /// The module, from the crate on.
    pub module: &'static str,
    /// Line, column and number, by which those of one name in one module are in order.
    pub place: (u32, u32, u32),
    /// Of its tokens.
    pub digest: [u8; 32],
    /// What it may name, with blanks between.
    pub words: &'static str,
}

inventory::collect!(LinkedHelper);

impl LinkedHelper {
    /// Its path in its crate: two programs may share a file of helpers.
    fn path(&self) -> String {
        let inner = self.module.split_once("::").map(|(_, inner)| inner);
        inner.map_or_else(
            || self.name.to_owned(),
            |inner| format!("{inner}::{}", self.name),
        )
    }
}

/// The source of an `#[sde::app]` function: what is known when it is compiled, and, from when it is first
/// asked for, what it comes to with its helpers.
#[derive(Debug)]
pub struct FunctionCode {
    digest: [u8; 32],
    /// Counts, if the function was given no name: the same text may call something else elsewhere.
    module: Option<&'static str>,
    words: &'static str,
    whole: OnceLock<Whole>,
}

#[derive(Debug)]
struct Whole {
    code: CodeId,
    /// Without the helpers.
    own: Digest,
    helpers: Vec<ValueSummary>,
}

impl FunctionCode {
    /// Of a function with this digest, which may name these words.
    #[must_use]
    pub const fn new(digest: [u8; 32], module: Option<&'static str>, words: &'static str) -> Self {
        Self {
            digest,
            module,
            words,
            whole: OnceLock::new(),
        }
    }

    /// What tells it from the same function with an edit. An app that names no helper is known by its own digest.
    pub(super) fn code(&self) -> &CodeId {
        &self.whole().code
    }

    /// The helpers that count, and the function's own digest if there are any.
    pub(super) fn helpers(&self) -> (&[ValueSummary], Option<Digest>) {
        let whole = self.whole();
        let own = (!whole.helpers.is_empty()).then_some(whole.own);
        (&whole.helpers, own)
    }

    fn whole(&self) -> &Whole {
        self.whole.get_or_init(|| {
            static LINKED: OnceLock<Named> = OnceLock::new();
            let linked = LINKED.get_or_init(|| by_name(inventory::iter::<LinkedHelper>));
            let own = match self.module {
                None => Digest::from_bytes(self.digest),
                Some(module) => digest_of([&self.digest[..], module.as_bytes()]),
            };
            let helpers = counting(self.words, linked);
            let code = match helpers.is_empty() {
                true => own,
                false => with_helpers(own, &helpers),
            };
            Whole {
                code: CodeId::Source(code),
                own,
                helpers,
            }
        })
    }
}

/// Identifier -> the helpers of that name, in an order that does not depend on the linker.
type Named = HashMap<&'static str, Vec<&'static LinkedHelper>>;

fn by_name(linked: impl IntoIterator<Item = &'static LinkedHelper>) -> Named {
    let mut named = Named::new();
    for helper in linked {
        named.entry(helper.name).or_default().push(helper);
    }
    for helpers in named.values_mut() {
        helpers.sort_by_key(|helper| (helper.module, helper.place, helper.digest));
    }
    named
}

/// The helpers that these words name, and those that they name: a path and a digest for each.
fn counting(words: &'static str, linked: &Named) -> Vec<ValueSummary> {
    let mut found: BTreeMap<&str, &[&LinkedHelper]> = BTreeMap::new();
    let mut to_look_at = vec![words];
    while let Some(words) = to_look_at.pop() {
        for (name, helpers) in words
            .split(' ')
            .filter_map(|word| linked.get_key_value(word))
        {
            if found.insert(name, helpers).is_none() {
                to_look_at.extend(helpers.iter().map(|helper| helper.words));
            }
        }
    }
    let mut digests: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for helper in found.into_values().flatten() {
        digests
            .entry(helper.path())
            .or_default()
            .push(&helper.digest);
    }
    let summary = |(name, digests): (String, _)| {
        let digest = digest_of(digests);
        let short = CodeId::Source(digest).to_string();
        ValueSummary {
            name: name.into(),
            short,
            digest,
            scalar: None,
        }
    };
    digests.into_iter().map(summary).collect()
}

fn with_helpers(own: Digest, helpers: &[ValueSummary]) -> Digest {
    let own = [own.as_bytes() as &[u8]].into_iter();
    digest_of(own.chain(helpers.iter().flat_map(|helper| {
        // A name has no byte 0.
        [helper.name.as_bytes(), &[0], helper.digest.as_bytes()]
    })))
}

fn digest_of<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    Digest::from_bytes(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::{LinkedHelper, by_name, counting, with_helpers};
    use crate::key::Digest;

    const fn helper(
        name: &'static str,
        module: &'static str,
        line: u32,
        text: u8,
        words: &'static str,
    ) -> LinkedHelper {
        LinkedHelper {
            name,
            module,
            place: (line, 1, 0),
            digest: [text; 32],
            words,
        }
    }

    /// Kept for good, as those of a program are.
    fn link(helpers: Vec<LinkedHelper>) -> &'static [LinkedHelper] {
        static LINKED: Mutex<Vec<&[LinkedHelper]>> = Mutex::new(Vec::new());
        let linked = helpers.leak();
        LINKED.lock().unwrap().push(linked);
        linked
    }

    /// What the code of an app with these words comes to in a program with these helpers.
    fn code(words: &'static str, linked: Vec<LinkedHelper>) -> Digest {
        with_helpers(
            Digest::from_bytes([0; 32]),
            &counting(words, &by_name(link(linked))),
        )
    }

    fn program(far: u8, first: u8, second: u8) -> Vec<LinkedHelper> {
        vec![
            helper("near", "c::m", 1, 1, "far near"),
            helper("far", "c", 1, far, "far near"),
            helper("step", "c::m", 5, first, "step"),
            helper("step", "c::m", 9, second, "step"),
            helper("other", "c", 9, 7, "other"),
        ]
    }

    /// What was remembered of an app with helpers is found by this for as long as there are stores.
    #[test]
    fn a_code_is_what_it_was() {
        let golden = "1ef4cf23f29333f2c31d99183a178893f0c92dc4a3f3cbe0048178b12773301e";
        assert_eq!(code("f near step", program(2, 3, 4)).to_string(), golden);
    }

    #[test]
    fn the_order_of_linking_does_not_count() {
        let turned = program(2, 3, 4).into_iter().rev().collect();
        assert_eq!(
            code("f near step", program(2, 3, 4)),
            code("f near step", turned)
        );
    }

    #[test]
    fn every_edit_counts_of_what_is_named_and_of_what_that_names() {
        let of = |linked| code("f near step", linked);
        let all = [
            of(program(2, 3, 4)),
            of(program(9, 3, 4)),
            of(program(2, 9, 4)),
            // Two methods of one name that were given one another's text.
            of(program(2, 4, 3)),
            of(program(2, 3, 4).split_off(1)),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(
                all[i + 1..].iter().all(|b| a != b),
                "number {i} is not alone"
            );
        }
    }

    #[test]
    fn what_is_not_named_does_not_count_nor_do_crate_and_line() {
        let moved = |line, name| {
            let linked = program(2, 3, 4).into_iter();
            let moved = linked.map(|helper| LinkedHelper {
                module: if helper.module == "c" {
                    name
                } else {
                    helper.module
                },
                place: (helper.place.0 + line, 7, 0),
                ..helper
            });
            moved.filter(|helper| helper.name != "other").collect()
        };
        assert_eq!(code("near", program(2, 3, 4)), code("near", moved(30, "d")));
        let linked = link(program(2, 3, 4));
        assert!(counting("f nearer", &by_name(linked)).is_empty());
    }
}
