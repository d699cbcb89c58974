//! What a traced run may read where it lies: all that is in its key.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use sde_engine::key::Digest;

use crate::builder::Content;
use crate::code::Code;
use crate::given::Given;
use crate::trace::Declared;

/// Files and folders of a command, and where programs are looked for.
pub(crate) fn declared(
    code: &Code,
    files: &BTreeMap<String, Given>,
    trees: &BTreeMap<String, (PathBuf, Digest)>,
) -> Declared {
    let parts = code.program.parts.iter().chain(&code.starts);
    let counted = parts.chain(&code.reads).map(|part| part.path.clone());
    let programs = code.program.interpreters.iter().chain([&code.program.path]);
    let originals = files.values().filter_map(|file| match &file.content {
        Content::Path(path) => Some(path.clone()),
        Content::Bytes(_) => None,
    });
    // A file has nothing below it. Of what is absent all counts that would be below it.
    let reads = code.reads.iter().map(|part| part.path.clone());
    let trees = trees.values().map(|(path, _)| path.clone());
    Declared {
        files: counted.chain(programs.cloned()).chain(originals).collect(),
        folders: reads.chain(trees).collect(),
        names: code.names.iter().map(OsString::from).collect(),
        search: std::env::split_paths(&code.search).collect(),
    }
}
