//! Functions and constants that count as code of the apps that name them.
//!
//! An `#[sde::app]` function is known by the digest of its tokens; a function that it calls has its tokens elsewhere.
//! `#[sde::helper]` has the linker collect the digest of such a function and the words in it. An app depends on a
//! helper if the helper's name is among its words, and on the helpers that this one names. Words are not paths, so a
//! variable with a helper's name counts too. One helper too many is harmless; one too few would give a wrong result.
//!
//! Besides, the compiler resolves the bare names of each. Resolving only adds to what counts. It finds a helper called
//! by another name. Where an edited `use` may have a name lead elsewhere, its present target counts too.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use super::identity::CodeId;
use crate::inputs::ValueSummary;
use crate::key::Digest;

/// The source of an app or a helper, as the macros see it.
#[derive(Debug)]
pub struct Source {
    /// The digest of its tokens.
    pub digest: [u8; 32],
    /// The words that may be names, with blanks between.
    pub words: &'static str,
    /// The values of its `cfg` conditions in this build.
    pub conditions: &'static [bool],
    /// Its bare names, as the compiler resolves them.
    pub names: fn() -> Vec<Name>,
}

/// A bare name, and the item that it resolves to.
pub type Name = (&'static str, Resolved);

/// Module and identifier of a helper; `None` for anything else.
pub type Resolved = Option<(&'static str, &'static str)>;

/// The type that implements the traits of all helpers, whose method names the helper.
#[derive(Debug)]
pub struct Helper;

/// The fallback of that method where no trait of a helper is in scope.
pub trait NoHelper {
    /// Always `None`.
    fn __sde_helper(&self) -> Resolved;
}

// One reference further away than the traits of helpers, so the compiler finds theirs first.
impl NoHelper for &Helper {
    fn __sde_helper(&self) -> Resolved {
        None
    }
}

impl Source {
    /// Of its tokens and conditions.
    #[must_use]
    pub fn digest(&self) -> Digest {
        if self.conditions.is_empty() {
            return Digest::from_bytes(self.digest);
        }
        let conditions: Vec<u8> = self.conditions.iter().copied().map(u8::from).collect();
        digest_of([&self.digest[..], &conditions])
    }
}

/// A helper of this program, as the linker collects them. Made by the macro.
#[derive(Debug)]
pub struct LinkedHelper {
    /// The identifier.
    pub name: &'static str,
    /// The module, from the crate on.
    pub module: &'static str,
    /// Line, column and number, which order helpers of one name in one module.
    pub place: (u32, u32, u32),
    /// Whether the compiler finds it by its name.
    pub has_trait: bool,
    /// Its source.
    pub source: Source,
}

inventory::collect!(LinkedHelper);

impl LinkedHelper {
    /// Its path in its crate: two programs may share a file of helpers.
    fn path(&self) -> String {
        self.path_from(crate_of(self.module))
            .replacen("crate::", "", 1)
    }

    /// Its path as the crate `own` writes it.
    fn path_from(&self, own: &str) -> String {
        path_from(own, self.module, self.name)
    }
}

/// The source of an `#[sde::app]` function, and, once asked for, its code with its helpers.
#[derive(Debug)]
pub struct FunctionCode {
    source: Source,
    module: &'static str,
    /// Whether it has a name of its own. If not, its module counts: equal text may call something else elsewhere.
    is_named: bool,
    whole: OnceLock<Whole>,
}

#[derive(Debug)]
struct Whole {
    code: CodeId,
    /// The digest without the helpers.
    own: Digest,
    helpers: Vec<ValueSummary>,
}

impl FunctionCode {
    /// The code of a function with this source, in this module.
    #[must_use]
    pub const fn new(source: Source, module: &'static str, is_named: bool) -> Self {
        Self {
            source,
            module,
            is_named,
            whole: OnceLock::new(),
        }
    }

    /// The code identity, which every edit changes. An app that names no helper is known by its own digest.
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
            let own = if self.is_named {
                self.source.digest()
            } else {
                digest_of([&self.source.digest().as_bytes()[..], self.module.as_bytes()])
            };
            let helpers = counting(&self.source, crate_of(self.module), linked);
            let code = if helpers.is_empty() {
                own
            } else {
                with_helpers(own, &helpers)
            };
            Whole {
                code: CodeId::Source(code),
                own,
                helpers,
            }
        })
    }
}

fn crate_of(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

/// The path of an item of this module, as the crate `own` writes it.
fn path_from(own: &str, module: &str, name: &str) -> String {
    match module.strip_prefix(own) {
        Some(inner) if inner.is_empty() || inner.starts_with("::") => {
            format!("crate{inner}::{name}")
        }
        _ => format!("{module}::{name}"),
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
        helpers.sort_by_key(|helper| (helper.module, helper.place, helper.source.digest));
    }
    named
}

/// The summaries that count for a function of crate `own`: the helpers that it names, the helpers that those name, and
/// the targets of names that might lead elsewhere.
fn counting(source: &Source, own: &str, linked: &Named) -> Vec<ValueSummary> {
    let mut found: BTreeMap<&str, &[&LinkedHelper]> = BTreeMap::new();
    let mut to_look_at = vec![source];
    while let Some(source) = to_look_at.pop() {
        let names = (source.names)().into_iter();
        let resolved = names.filter_map(|(_, to)| to.map(|(_, name)| name));
        let words = source.words.split(' ').chain(resolved);
        for (name, helpers) in words.filter_map(|word| linked.get_key_value(word)) {
            if found.insert(name, helpers).is_none() {
                to_look_at.extend(helpers.iter().map(|helper| &helper.source));
            }
        }
    }
    let found: Vec<_> = found.into_values().flatten().collect();
    let mut digests: BTreeMap<String, Vec<Digest>> = BTreeMap::new();
    for helper in &found {
        let of_path = digests.entry(helper.path()).or_default();
        of_path.push(helper.source.digest());
    }
    let digests = digests.into_iter().map(|(name, digests)| {
        let digest = digest_of(digests.iter().map(|digest| &digest.as_bytes()[..]));
        summary(name, CodeId::Source(digest).to_string(), digest)
    });
    let mut uses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut put_uses = |asking: &str, source: &Source| {
        let names = (source.names)().into_iter();
        for (name, to) in names.filter(|name| may_lead_elsewhere(name, linked)) {
            let to = to.map(|(module, name)| path_from(own, module, name));
            let of_name = uses.entry(format!("{asking}use {name}")).or_default();
            of_name.push(to.unwrap_or_else(|| "no helper".to_owned()));
        }
    };
    put_uses("", source);
    for helper in found {
        put_uses(&(helper.path_from(own) + ": "), &helper.source);
    }
    let uses = uses.into_iter().map(|(name, to)| {
        let to = to.join(", ");
        let digest = digest_of([to.as_bytes()]);
        summary(name, to, digest)
    });
    digests.chain(uses).collect()
}

/// Whether a name may lead elsewhere after an edit. It may not if it leads to the only helper of its name, or if no
/// helper can be found by it.
fn may_lead_elsewhere((name, to): &Name, linked: &Named) -> bool {
    let bearing = linked.get(name).map_or(&[][..], Vec::as_slice);
    match to {
        Some((_, helper)) => helper != name || bearing.len() > 1,
        None => bearing.iter().any(|helper| helper.has_trait),
    }
}

pub(super) fn summary(name: String, short: String, digest: Digest) -> ValueSummary {
    ValueSummary {
        name: name.into(),
        short,
        digest,
        scalar: None,
        fields: Box::default(),
    }
}

pub(super) fn with_helpers(own: Digest, helpers: &[ValueSummary]) -> Digest {
    let own = [own.as_bytes() as &[u8]].into_iter();
    digest_of(own.chain(helpers.iter().flat_map(|helper| {
        // A name has no byte 0.
        [helper.name.as_bytes(), &[0], helper.digest.as_bytes()]
    })))
}

pub(super) fn digest_of<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    Digest::from_bytes(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::{LinkedHelper, Name, Source, by_name, counting, with_helpers};
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
            has_trait: true,
            source: source(text, words),
        }
    }

    const fn source(text: u8, words: &'static str) -> Source {
        Source {
            digest: [text; 32],
            words,
            conditions: &[],
            names: Vec::new,
        }
    }

    /// Leaked, as the helpers of a program are static.
    fn link(helpers: Vec<LinkedHelper>) -> &'static [LinkedHelper] {
        static LINKED: Mutex<Vec<&[LinkedHelper]>> = Mutex::new(Vec::new());
        let linked = helpers.leak();
        LINKED.lock().unwrap().push(linked);
        linked
    }

    /// The code of an app with these words in a program with these helpers.
    fn code(words: &'static str, linked: Vec<LinkedHelper>) -> Digest {
        code_of(&source(0, words), linked)
    }

    fn code_of(source: &Source, linked: Vec<LinkedHelper>) -> Digest {
        let helpers = counting(source, "c", &by_name(link(linked)));
        with_helpers(source.digest(), &helpers)
    }

    fn all_differ(all: &[Digest]) {
        for (i, a) in all.iter().enumerate() {
            assert!(
                all[i + 1..].iter().all(|b| a != b),
                "number {i} is not alone"
            );
        }
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

    /// Stores find the results of apps with helpers by this digest, so it must never change.
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
        all_differ(&all);
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
        assert!(counting(&source(0, "f nearer"), "c", &by_name(linked)).is_empty());
    }

    #[test]
    fn where_a_name_leads_counts_if_it_may_lead_elsewhere() {
        let of = |words, names: fn() -> Vec<Name>| {
            let source = Source {
                names,
                ..source(0, words)
            };
            code_of(&source, program(2, 3, 4))
        };
        let plain = of("near", Vec::new);
        assert_eq!(of("near", || vec![("near", Some(("c::m", "near")))]), plain);
        assert_eq!(of("near", || vec![("sqrt", None)]), plain);
        let all = [
            of("near step", Vec::new),
            of("near step", || vec![("step", Some(("c::m", "step")))]),
            of("near step", || vec![("step", Some(("d::m", "step")))]),
            of("near step", || vec![("step", None)]),
            of("near step", || vec![("near", None)]),
            // By another name.
            of("near step", || vec![("renamed", Some(("c", "other")))]),
            of("near step", || vec![("renamed", Some(("c::m", "near")))]),
        ];
        all_differ(&all);
    }

    #[test]
    fn conditions_count_in_an_app_and_in_a_helper() {
        let with = |conditions| Source {
            conditions,
            ..source(0, "near")
        };
        let of = |conditions, of_helper| {
            let mut linked = program(2, 3, 4);
            linked[0].source.conditions = of_helper;
            code_of(&with(conditions), linked)
        };
        let all = [
            of(&[], &[]),
            of(&[true], &[]),
            of(&[false], &[]),
            of(&[], &[true]),
            of(&[], &[false]),
        ];
        all_differ(&all);
    }
}
