//! The layers of each crate. What keeps to them is in `layers.rs`.

/// A crate with its modules.
#[derive(Clone, Copy)]
pub struct Layered {
    pub name: &'static str,
    pub src: &'static str,
    /// From the bottom up. Modules of one layer may use each other and all layers below. A module within one that
    /// is listed itself has a layer of its own.
    pub layers: &'static [&'static [&'static str]],
    /// What a module may name of a layer above it.
    pub upward: &'static [(&'static str, &'static [&'static str])],
    /// The modules that may use `std::fs`, and why no others; `None` for all.
    pub may_read_files: Option<(&'static [&'static str], &'static str)>,
}

/// A crate of which only the layers are to be said.
pub const PLAIN: Layered = Layered {
    name: "",
    src: "",
    layers: &[],
    upward: &[],
    may_read_files: None,
};

pub const SDE: Layered = Layered {
    name: "sde-engine",
    src: "sde/engine/src/",
    layers: &[
        &[
            "bulk",
            "error",
            "event",
            "key",
            "stretch",
            "sync",
            "job",
            "machine",
            "parallel",
            "ranks::collective",
            "ranks::deal",
            "ranks::group",
            "ranks::points",
            "ranks::threads",
        ],
        &[
            "entry",
            "inputs",
            "output_file",
            "result_map",
            "app",
            "ranks::distributed",
            "ranks::values",
            "console",
        ],
        &["cache"],
        &[
            "checkpoint",
            "ranks::exchange",
            "ranks::parts",
            "ranks::sets",
        ],
        &["engine", "engine::handle", "ranks"],
    ],
    // What bodies are given to run other apps with.
    upward: &[("app", &["engine", "Handle"])],
    // Where a key is made of a file's content, and where a result is a file; the trait gives one what it is to hold; what
    // memory there is, the system tells in files; a caller has a result written to a file of its own.
    may_read_files: Some((
        &[
            "key",
            "output_file",
            "checkpoint",
            "job",
            "machine",
            "engine::handle",
        ],
        "files are for an Archiver",
    )),
};

/// Keys know of no live program, and what is kept of no context.
pub const OPENCL: Layered = Layered {
    name: "sde-opencl",
    src: "apps/opencl/src/",
    layers: &[
        &["lock"],
        &["cacheable"],
        &["error"],
        &["driver"],
        &["identity"],
        &["failed", "settings"],
        &["kept", "stats"],
        &["apps", "capture", "context", "live", "make"],
        &["blob", "foreign"],
    ],
    upward: &[],
    may_read_files: Some((
        &["identity"],
        "included files are those of keys; what is kept is the store's",
    )),
};

/// The circle of `store` is known: see `circles.rs`.
pub const ARCHIVES: Layered = Layered {
    name: "sde-archives",
    src: "archives/src/",
    layers: &[
        &["locks"],
        &["cbor", "vfs"],
        &["format"],
        &["catalog", "retention", "trusted", "work"],
        &["writer", "read"],
        &["processes", "resolve"],
        &[
            "archive",
            "collective",
            "compact",
            "copy",
            "rewrite",
            "store",
        ],
        &["inspect"],
        &["remove"],
    ],
    may_read_files: Some((
        &["vfs", "format", "work", "read", "store", "trusted"],
        "tests fail each call of a file system there; what a record says of the machine is no store's, and on what processes tell one another nothing rests; where a user wants an output file is on no store\'s disk",
    )),
    ..PLAIN
};

/// What a thread of MPI does lies above what the others ask of it.
pub const MPI: Layered = Layered {
    name: "sde-mpi",
    src: "sde/mpi/src/",
    layers: &[
        &[
            "ask",
            "book",
            "frame",
            "guard",
            "in_flight",
            "notice",
            "transfer",
        ],
        &["home"],
        &["end", "group"],
        &["session"],
    ],
    ..PLAIN
};

/// Chemistry needs no engine, but for the apps made of it.
pub const APPS: Layered = Layered {
    name: "sde-apps",
    src: "apps/src/",
    layers: &[
        &["matrix", "text", "units"],
        &["molecule"],
        &["basis"],
        &["integrals"],
        &["scf"],
        &["hartree_fock"],
    ],
    ..PLAIN
};

/// One process, one folder and one program know nothing of the call that they serve.
pub const COMMAND: Layered = Layered {
    name: "sde-command",
    src: "sde/command/src/",
    layers: &[
        &[
            "folder", "process", "program", "rules", "stop", "sync", "trace", "tree",
        ],
        &[
            "arguments",
            "attempts",
            "call",
            "carry",
            "builder",
            "code",
            "declared",
            "error",
            "given",
            "image",
            "judge",
            "launched",
            "outputs",
            "paths",
            "plan",
            "ran",
            "results",
            "run",
            "uses",
        ],
    ],
    ..PLAIN
};

pub const TABLE: Layered = Layered {
    name: "sde-table",
    src: "archives/table/src/",
    layers: &[
        &["error", "failed", "python", "text", "time"],
        &["app_name", "json", "store", "text_table"],
        &["codes", "columns", "find", "packed"],
        &["runs"],
        &["listing", "rows", "singles"],
        &["code_choice", "judged", "table"],
    ],
    ..PLAIN
};

pub const CLI: Layered = Layered {
    name: "sde-cli",
    src: "cli/src/",
    layers: &[
        &["failure", "text", "time", "users"],
        &["args", "file", "json", "output"],
        &["npy", "store", "table"],
        &["commands"],
    ],
    ..PLAIN
};

pub const CRATES: &[Layered] = &[SDE, COMMAND, MPI, ARCHIVES, TABLE, APPS, OPENCL, CLI];
