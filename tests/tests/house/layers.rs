//! Which module of a crate may use which.
//!
//! Inside a crate the arrows point down: the cache may use keys, a key knows of no cache.
//! That keeps each layer testable without those above it, and the claim logic small enough for a
//! model checker.

use std::collections::BTreeMap;

use super::layer_lists::{CLI, CRATES, Layered};
use super::none;
use super::paths::{NamedPath, Source, scan_of};
use super::repository::{TextFile, text_files};

/// What macros need in other crates, re-exported at the root; nothing else may use it.
const FOR_MACROS: &str = "__private";

impl Layered {
    fn layer(&self, module: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer.contains(&module))
    }

    fn may_name(&self, own: &str, named: &NamedPath) -> bool {
        let is_it = |(module, path): &(&str, &[&str])| *module == own && named.segments == *path;
        self.upward.iter().any(is_it)
    }

    /// It is above all layers: it names what is public, or is where the program begins.
    fn root(&self) -> String {
        let root = if self.name == CLI.name { "main" } else { "lib" };
        format!("{}{root}.rs", self.src)
    }

    /// The module with a layer that a path leads into: that within a module, if it has a layer of its own.
    fn layered<'a>(&self, segments: impl IntoIterator<Item = &'a String>) -> Option<String> {
        let mut segments = segments.into_iter();
        let module = segments.next()?;
        let within = segments.next().map(|name| format!("{module}::{name}"));
        let within = within.filter(|within| self.layer(within).is_some());
        Some(within.unwrap_or_else(|| module.clone()))
    }

    /// The module that a file is the source of.
    fn module_of(&self, path: &str) -> Vec<String> {
        let inside = path
            .trim_start_matches(self.src)
            .trim_end_matches(".rs")
            .trim_end_matches("/mod");
        inside.split('/').map(str::to_owned).collect()
    }

    fn breaches(&self, files: &[(String, String)]) -> Vec<String> {
        let (mut found, root) = (Vec::new(), self.root());
        let mut sources: Vec<(&str, Vec<String>, Source)> = Vec::new();
        for (path, text) in files {
            let module = if *path == root {
                Vec::new()
            } else {
                self.module_of(path)
            };
            match scan_of(self.name, text, &module) {
                Ok(source) => sources.push((path, module, source)),
                Err(why) => found.push(format!("{path} is not Rust: {why}")),
            }
        }
        let test_modules: Vec<Vec<String>> = sources
            .iter()
            .flat_map(|(_, _, source)| source.test_modules.clone())
            .collect();
        let public = self.public_names(&sources);
        for (path, module, source) in &sources {
            let for_tests = test_modules.iter().any(|tests| module.starts_with(tests));
            if *path != root && !for_tests {
                let own = self.layered(module).unwrap_or_default();
                self.check(path, &own, source, &public, &mut found);
            }
        }
        found
    }

    /// Where the names at the crate's root come from: name -> module.
    fn public_names(&self, sources: &[(&str, Vec<String>, Source)]) -> BTreeMap<String, String> {
        let root = self.root();
        let root = sources.iter().find(|(path, ..)| *path == root);
        let reexports = root
            .into_iter()
            .flat_map(|(_, _, source)| &source.reexports);
        reexports
            .filter_map(|path| Some((path.last()?.clone(), self.layered(path)?)))
            .collect()
    }

    fn check(
        &self,
        path: &str,
        own: &str,
        source: &Source,
        public: &BTreeMap<String, String>,
        found: &mut Vec<String>,
    ) {
        let Some(own_layer) = self.layer(own) else {
            found.push(format!(
                "{path}: module {own} has no layer; give it one in tests/tests/house/layer_lists.rs"
            ));
            return;
        };
        for named in &source.paths {
            let used = named.segments.join("::");
            let target = self.layered(&named.segments);
            let trouble = match target.as_deref() {
                None => Some("name the module, not the whole root".to_owned()),
                Some("std") => {
                    let is_file = named.segments.get(1).is_some_and(|part| part == "fs");
                    let rule = self.may_read_files;
                    let broken = rule.filter(|(may, _)| is_file && !may.contains(&own));
                    broken.map(|(may, why)| format!("only {may:?} may: {why}"))
                }
                Some(FOR_MACROS) if named.by_macro => None,
                Some(target) if target == own => None,
                Some(target) => {
                    // A module's name may also be that of a macro at the root; the module counts.
                    let known = self.layer(target).is_some();
                    let module = if known {
                        target
                    } else {
                        public.get(target).map_or(target, String::as_str)
                    };
                    match self.layer(module) {
                        None => Some("name the module it is in".to_owned()),
                        Some(above) if above > own_layer && !self.may_name(own, named) => {
                            Some(format!("{module} is above {own}; see its layers"))
                        }
                        Some(_) => None,
                    }
                }
            };
            if let Some(trouble) = trouble {
                found.push(format!("{path}:{} uses {used}: {trouble}", named.line));
            }
        }
    }
}

#[test]
fn modules_use_only_what_is_below_them() {
    for krate in CRATES {
        let is_source = |file: &&TextFile| file.path.starts_with(krate.src) && file.is(".rs");
        let files: Vec<(String, String)> = text_files()
            .iter()
            .filter(is_source)
            .map(|file| (file.path.clone(), file.text.clone()))
            .collect();
        assert!(files.len() > 1, "{} was not found", krate.src);
        none(krate.breaches(&files));
    }
}

#[cfg(test)]
mod tests {
    use super::super::layer_lists::{OPENCL, SDE};
    use super::super::none;

    fn in_file(path: &str, text: &str) -> Vec<String> {
        SDE.breaches(&[(format!("sde/engine/src/{path}"), text.to_owned())])
    }

    #[test]
    fn down_and_sideways_are_allowed() {
        let text = "use crate::key::Key; use crate::app::App; use self::map; use std::sync::Arc;";
        none(in_file("inputs/mod.rs", text));
        let got = in_file("engine.rs", "use crate::cache::Cache;");
        assert_eq!(got, Vec::<String>::new());
        let got = in_file("lib.rs", "pub use crate::engine::Sde;");
        assert_eq!(got, Vec::<String>::new());
    }

    #[test]
    fn up_is_noticed_however_it_is_written() {
        for text in [
            "use crate::engine::Sde;",
            "use crate::{key::Key, cache::{Cache}};",
            "fn f() { crate::cache::new() }",
            "use super::super::engine::Sde;",
            "use crate::engine::{Handle, Sde};",
            "use ::sde::checkpoint::X;",
            "macro_rules! m { () => { $crate::engine::X } }",
        ] {
            assert_eq!(in_file("app/info.rs", text).len(), 1, "{text}");
        }
        assert!(
            in_file("app/info.rs", "\nuse crate::cache::X;")[0]
                .starts_with("sde/engine/src/app/info.rs:2 ")
        );
    }

    #[test]
    fn only_apps_name_the_handle_above_them() {
        let text = "pub use crate::engine::Handle;";
        none(in_file("app/mod.rs", text));
        assert_eq!(in_file("cache/mod.rs", text).len(), 1);
    }

    #[test]
    fn the_root_is_no_way_around() {
        let with_root = |text: &str| {
            let root =
                "pub use engine::Sde; pub use key::{Key, digest::Digest}; pub use sde_macros::key;";
            SDE.breaches(&[
                (SDE.root(), root.to_owned()),
                ("sde/engine/src/app.rs".to_owned(), text.to_owned()),
            ])
        };
        for good in [
            "use crate::Key;",
            "fn f() { crate::Digest::new() }",
            "use super::{Key};",
        ] {
            assert_eq!(with_root(good), Vec::<String>::new(), "{good}");
        }
        for bad in [
            "use crate::Sde;",
            "use super::Sde;",
            "use super::*;",
            "use crate::Unknown;",
        ] {
            assert_eq!(with_root(bad).len(), 1, "{bad}");
        }
        let got = in_file("app/info.rs", "use super::*;");
        assert_eq!(got, Vec::<String>::new());
    }

    #[test]
    fn only_macros_use_what_is_there_for_them() {
        let in_macro = "macro_rules! m { () => { $crate::__private::x!() } }";
        none(in_file("app.rs", in_macro));
        assert_eq!(in_file("app.rs", "use crate::__private::x;").len(), 1);
    }

    #[test]
    fn modules_within_a_module_have_layers_of_their_own() {
        let own = "ranks/group.rs";
        for (path, text) in [
            ("app/info.rs", "use crate::ranks::group::X;"),
            ("engine.rs", "use crate::ranks::X;"),
            (own, "use super::collective::X;"),
            ("ranks/run.rs", "use crate::engine::Engine;"),
        ] {
            assert_eq!(in_file(path, text), Vec::<String>::new(), "{path}");
        }
        for (path, text) in [
            ("app/info.rs", "use crate::ranks::X;"),
            ("app/info.rs", "use crate::ranks::sets::X;"),
            (own, "use super::sets::X;"),
            (own, "use crate::app::X;"),
        ] {
            assert_eq!(in_file(path, text).len(), 1, "{path} {text}");
        }
    }

    #[test]
    fn a_module_without_a_layer_is_noticed() {
        assert!(in_file("helpers.rs", "")[0].contains("no layer"));
    }

    #[test]
    fn files_are_read_in_one_place() {
        assert_eq!(in_file("cache/disk.rs", "use std::fs;").len(), 1);
        let got = in_file("key/input_file.rs", "use std::fs;");
        assert_eq!(got, Vec::<String>::new());
    }

    /// To it `sde` is another crate.
    #[test]
    fn the_kernels_have_layers_of_their_own() {
        let of = |path: &str, text: &str| {
            OPENCL.breaches(&[(format!("apps/opencl/src/{path}"), text.to_owned())])
        };
        for good in ["use sde::engine::Sde;", "use crate::driver::Driver;"] {
            none(of("identity/spec.rs", good));
        }
        assert_eq!(of("identity/spec.rs", "use crate::live::Live;").len(), 1);
        assert_eq!(of("driver/mod.rs", "use crate::context::X;").len(), 1);
        assert_eq!(of("live/program.rs", "use std::fs;").len(), 1);
    }

    #[test]
    fn tests_may_look_at_everything() {
        let files = [
            ("mod.rs", "#[cfg(test)] mod tests;"),
            ("tests.rs", "use crate::engine::Sde;"),
        ]
        .map(|(name, text)| (format!("sde/engine/src/app/{name}"), text.to_owned()));
        none(SDE.breaches(&files));
        assert_eq!(SDE.breaches(&files[1..]).len(), 1);
    }
}
