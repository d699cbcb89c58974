//! The description of a program by its author.

use std::path::PathBuf;
use std::sync::Arc;

/// A program as its author has it: source or intermediate language, with defines, options and
/// constants; or parts to be linked.
///
/// It names no device. [`Context::describe`](crate::Context::describe) adds the device, reads
/// the included files, and makes the key.
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
    /// Macros, each as the text after `#define`.
    pub(super) defines: Vec<String>,
    /// The options as given, in order.
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
    /// To be split at its blanks.
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

    /// A program of parts, each compiled with its own options and then linked. The options of the linked program
    /// go to the linker.
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

    /// Options, separated by blanks, as `clBuildProgram` takes them. One with a quote or a backslash is passed to
    /// the driver unchanged, and makes the program not cacheable: drivers read them in different ways. For a macro
    /// there is [`define`](Self::define).
    #[must_use]
    pub fn option(mut self, text: impl Into<String>) -> Self {
        self.options.push(OptionText::Text(text.into()));
        self
    }

    /// A macro of a source, with any value that fits on a line: `#define name value` before the first line of the
    /// text, whose lines keep their numbers. Describing a program that is no source, or a value that does not end
    /// with its line, is an error.
    #[must_use]
    pub fn define(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.defines.push(format!("{name} {value}"));
        self
    }

    /// A directory for included files: `-I dir`. Not all drivers understand a blank in its name, so one makes the
    /// program not cacheable.
    #[must_use]
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        // The parent of a bare file name is empty.
        let dir = if dir.as_os_str().is_empty() {
            ".".into()
        } else {
            dir
        };
        self.options.push(OptionText::Dir(dir));
        self
    }

    /// A file that the source includes through a macro, as in `#include FILE`; it is looked for as any other. Its own
    /// includes are followed. **It is a promise** that the source, and the files it includes, read no files but
    /// those named so and plain includes: a change of any other would go unnoticed. It makes a source cacheable whose
    /// includes can't all be followed.
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

    /// The promise of [`reads`](Self::reads) that the source reads no file but plain includes that are found,
    /// whatever else is in it: text for an assembler, for example.
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
