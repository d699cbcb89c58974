//! What a user wants built.

use std::path::PathBuf;
use std::sync::Arc;

/// A program as its author has it: source or intermediate language, with defines, options and
/// constants; or parts to be linked.
///
/// It says nothing of a device. [`Context::describe`](crate::Context::describe) adds that, reads
/// what is included, and makes the key.
///
/// ```
/// use sde_opencl::ProgramSpec;
///
/// let saxpy = ProgramSpec::source("kernel void saxpy(global T *y) { y[get_global_id(0)] *= A; }")
///     .named("saxpy")
///     .define("T", "float")
///     .define("A", 2)
///     .option("-cl-mad-enable");
/// let both = ProgramSpec::linked([saxpy.clone(), ProgramSpec::source("float half_of(float x) { return x / 2; }")]);
/// # let _ = both;
/// ```
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    pub(super) what: What,
    pub(super) name: Option<String>,
    /// Macros, each as it stands behind `#define`.
    pub(super) defines: Vec<String>,
    /// As they were given, in order.
    pub(super) options: Vec<OptionText>,
    pub(super) constants: Vec<(u32, Vec<u8>)>,
    pub(super) reads: Option<Vec<String>>,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Source(Arc<str>),
    Il(Arc<[u8]>),
    Linked(Vec<ProgramSpec>),
}

#[derive(Clone, Debug)]
pub(super) enum OptionText {
    /// To be parted at its blanks.
    Text(String),
    /// A directory for included files.
    Dir(PathBuf),
}

impl ProgramSpec {
    fn new(what: What) -> Self {
        Self {
            what,
            name: None,
            defines: Vec::new(),
            options: Vec::new(),
            constants: Vec::new(),
            reads: None,
        }
    }

    /// A program in OpenCL C.
    #[must_use]
    pub fn source(text: impl Into<Arc<str>>) -> Self {
        Self::new(What::Source(text.into()))
    }

    /// A program in an intermediate language, such as SPIR-V, for devices that take one.
    #[must_use]
    pub fn il(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::new(What::Il(bytes.into()))
    }

    /// A program of parts, each compiled with its own options and then linked. The options of this
    /// one are the linker's.
    #[must_use]
    pub fn linked(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::new(What::Linked(parts.into_iter().collect()))
    }

    /// A name for messages and for people who look into the cache. It is not in the key.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Options, parted by blanks, as `clBuildProgram` takes them. One with a quote or a backslash goes to the driver as it
    /// is written, and makes the program one that is not cacheable: drivers read them in different ways. For a macro
    /// there is [`define`](Self::define).
    #[must_use]
    pub fn option(mut self, text: impl Into<String>) -> Self {
        self.options.push(OptionText::Text(text.into()));
        self
    }

    /// A macro of a source, with any value that fits on a line: `#define name value` before the first line of the
    /// text, whose lines keep their numbers. Describing a program that is not a source, or a value that does not end with its line, is
    /// an error.
    #[must_use]
    pub fn define(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.defines.push(format!("{name} {value}"));
        self
    }

    /// A directory in which included files are looked for: `-I dir`. A blank in its name is not understood by
    /// all drivers, and makes the program one that is not cacheable.
    #[must_use]
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        // An empty one is where a file lies that has no directory in its path.
        let dir = if dir.as_os_str().is_empty() {
            ".".into()
        } else {
            dir
        };
        self.options.push(OptionText::Dir(dir));
        self
    }

    /// A file that the source includes by what a macro says, as `#include FILE` does, looked for as any other. What it
    /// includes is followed. **It is a promise** that the source, and what it includes, read no files but those that are
    /// named so and those that are included plainly: of others no change would be noticed. With it, a source is cacheable
    /// whose files can't be told otherwise.
    ///
    /// ```
    /// # use sde_opencl::ProgramSpec;
    /// let spec = ProgramSpec::source("#include KERNEL")
    ///     .define("KERNEL", "\"axpy.cl\"")
    ///     .include_dir("kernels")
    ///     .reads("axpy.cl");
    /// # let _ = spec;
    /// ```
    #[must_use]
    pub fn reads(mut self, file: impl Into<String>) -> Self {
        self.reads.get_or_insert_default().push(file.into());
        self
    }

    /// The same promise of a source that reads no file but those that are included plainly and found, whatever it looks like:
    /// one with an assembler's text in it, for example.
    #[must_use]
    pub fn reads_no_other(mut self) -> Self {
        self.reads.get_or_insert_default();
        self
    }

    /// The value of a specialization constant of an intermediate language, as its bytes. A constant
    /// given twice has the later value.
    #[must_use]
    pub fn constant(mut self, id: u32, value: impl Into<Vec<u8>>) -> Self {
        self.constants.retain(|(old, _)| *old != id);
        self.constants.push((id, value.into()));
        self.constants.sort();
        self
    }
}
