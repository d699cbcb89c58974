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
    /// As a driver takes them, in the order they were given.
    pub(super) options: Vec<OptionText>,
    pub(super) constants: Vec<(u32, Vec<u8>)>,
    pub(super) reads: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Source(Arc<str>),
    Il(Arc<[u8]>),
    Linked(Vec<ProgramSpec>),
}

#[derive(Clone, Debug)]
pub(super) enum OptionText {
    /// To be taken apart at its blanks.
    Text(String),
    /// One option, whatever is in it.
    One(String),
}

impl ProgramSpec {
    fn new(what: What) -> Self {
        Self {
            what,
            name: None,
            options: Vec::new(),
            constants: Vec::new(),
            reads: Vec::new(),
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

    /// Options, parted by blanks, as `clBuildProgram` takes them. A text that has quotes or backslashes goes to the
    /// driver as it is written: what they mean is the driver's affair.
    #[must_use]
    pub fn option(mut self, text: impl Into<String>) -> Self {
        self.options.push(OptionText::Text(text.into()));
        self
    }

    /// A macro: `-D name=value`. A value with a blank is put into quotes, which OpenCL leaves to the driver: PoCL
    /// takes them. One with a blank and with quotes or backslashes there is no way to write that all drivers
    /// understand: describing it is an error. Others go to the driver as they are.
    #[must_use]
    pub fn define(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        let define = format!("-D{name}={value}");
        self.options.push(OptionText::One(define));
        self
    }

    /// A directory in which included files are looked for: `-I dir`. A blank in its name is not understood by
    /// all drivers, and makes the program one that is not cacheable.
    #[must_use]
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        let option = format!("-I{}", dir.into().display());
        self.options.push(OptionText::One(option));
        self
    }

    /// A file that the source includes by what a macro says, as `#include FILE` does, looked for as any other. What it
    /// includes is followed. Without this such a source is not cacheable, since what the macro says is the compiler's
    /// to find out. **It is a promise** that those that are named are all that are included in this way, in the source and
    /// in what it includes: of others no change would be noticed.
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
        self.reads.push(file.into());
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
