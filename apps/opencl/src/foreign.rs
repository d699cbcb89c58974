//! Foreign programs: made by a caller with OpenCL's own calls.
//!
//! SYCL's cache leaves out all "interop" programs, since it does not know their keys. Many can be known:
//! OpenCL tells the source and the options of a program that was built from source.

#![allow(
    unsafe_code,
    reason = "a program of OpenCL comes in as a pointer, of which only the caller knows that it is alive"
)]

use std::time::Duration;

use opencl3::types::cl_program;

use crate::Error;
use crate::cacheable::NotCacheable;
use crate::capture::Code;
use crate::context::Context;
use crate::driver::{BinaryKind, ForeignFacts, RawProgram, opencl};
use crate::error::Refusal;
use crate::identity::{Material, ProgramSpec};
use crate::kept::Facts;
use crate::live::{Owned, Program};
use crate::make::Making;

/// A foreign program, made with OpenCL's own calls.
#[derive(Clone, Debug)]
pub struct Foreign {
    found: Result<Program, NotCacheable>,
}

impl Context {
    /// Inspects a program that was made on this context by OpenCL's own calls, and makes a copy of it from its
    /// binary: the caller's program stays as it is.
    ///
    /// If it was built from a source that includes nothing, its key is that of the same program by
    /// [`describe`](Self::describe). If it includes files, its key is not known, since they may have changed since the
    /// build. The switches of the driver are assumed to be as they were then.
    ///
    /// # Safety
    /// `program` must be a program of OpenCL that is alive.
    ///
    /// # Errors
    /// If the driver does not answer, or the program belongs to another context.
    pub unsafe fn foreign(&self, device: usize, program: cl_program) -> Result<Foreign, Error> {
        // SAFETY: the caller says that it is alive.
        let raw = unsafe { opencl::retain(program) };
        let raw = raw.map_err(|refusal| self.foreign_refused(device, refusal))?;
        self.adopt(device, raw)
    }

    /// As [`foreign`](Self::foreign), of a program that is held.
    pub(crate) fn adopt(&self, device: usize, raw: RawProgram) -> Result<Foreign, Error> {
        let raw = Owned::new(self, raw);
        let found = self.copied(device, raw.get())?;
        Ok(Foreign { found })
    }

    /// A copy made from the binary, since the owner may build his program again, with other options.
    fn copied(
        &self,
        device: usize,
        raw: &RawProgram,
    ) -> Result<Result<Program, NotCacheable>, Error> {
        let (making, told) = match self.describe_foreign(device, raw)? {
            Ok(described) => described,
            Err(why) => return Ok(Err(why)),
        };
        let driver = &*self.0.driver;
        let copied = || {
            let facts = Facts {
                log: driver.log(raw, device)?,
                build_time: Duration::ZERO,
                kernels: driver.kernel_names(raw)?,
            };
            let binary = driver.binary(raw, device)?;
            Ok((
                facts,
                making.with_binary(&binary)?,
                driver.foreign(raw, device)?,
            ))
        };
        let foreign = |why: String| Ok(Err(NotCacheable::Foreign { why }));
        match copied() {
            Ok((facts, own, told_after)) if told_after == told => {
                let code = Code::default();
                Ok(Ok(Program::new(making.clone(), own, facts, code)))
            }
            Ok(_) => foreign("it was built again while it was looked at".to_owned()),
            Err(refusal) => foreign(Refusal::to_string(&refusal)),
        }
    }

    fn describe_foreign(
        &self,
        device: usize,
        raw: &RawProgram,
    ) -> Result<Result<(Making, ForeignFacts), NotCacheable>, Error> {
        let driver = &*self.0.driver;
        let refused = |refusal| self.foreign_refused(device, refusal);
        let facts = driver.foreign(raw, device).map_err(refused)?;
        let spec = match source(facts.clone()) {
            Ok(spec) => spec,
            Err(why) => return Ok(Err(NotCacheable::Foreign { why })),
        };
        let descriptor = match self.describe_built(device, &spec) {
            Ok(descriptor) => descriptor,
            // The driver built it, so options that can't be parsed here are no error of the caller.
            Err(error @ Error::Options { .. }) => {
                let why = error.to_string();
                return Ok(Err(NotCacheable::Foreign { why }));
            }
            Err(error) => return Err(error),
        };
        if let Err(why) = descriptor.is_cacheable() {
            return Ok(Err(why.clone()));
        }
        if let Material::Source { included, .. } = &descriptor.full_key().material
            && let Some(file) = included.first()
        {
            // The build may have read another version of the file.
            let why = format!("it may include {}, which may have changed since", file.name);
            return Ok(Err(NotCacheable::Foreign { why }));
        }
        Ok(Ok((Making::new(self, device, &descriptor)?, facts)))
    }

    fn foreign_refused(&self, device: usize, refusal: crate::Refusal) -> Error {
        let device = self.devices().get(device);
        let device = device.map_or("a device that is not there", |device| &device.identity.name);
        Error::refused("looking at a foreign program", device, refusal)
    }
}

/// The spec that a program was made from, or why it is not known.
fn source(facts: ForeignFacts) -> Result<ProgramSpec, String> {
    if facts.kind != BinaryKind::Executable {
        return Err("it was not built, or is a library".to_owned());
    }
    // OpenCL has no query for the constants of an intermediate language.
    if facts.source.iter().all(|byte| *byte == 0) || !facts.il.is_empty() {
        return Err("it does not give the source that it was made from".to_owned());
    }
    let (Some(source), Some(options)) = (text(facts.source), text(facts.options)) else {
        return Err("its source, or its options, are not UTF-8".to_owned());
    };
    // Parsed here, the options would be split at any blank; how the driver split them is not known.
    match options.contains(|c: char| c.is_ascii_control()) {
        true => Err("its options have blanks that are no spaces".to_owned()),
        false => Ok(ProgramSpec::source(source).option(options)),
    }
}

/// A driver's answer as text, without null bytes at its end.
fn text(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim_end_matches('\0').to_owned())
}

impl Foreign {
    /// Whether its key is known, so that its binary can be kept.
    ///
    /// # Errors
    /// The reason, if it is not.
    pub fn is_cacheable(&self) -> Result<(), &NotCacheable> {
        self.found.as_ref().map(|_| ())
    }

    /// The program, for kernels and blobs.
    ///
    /// # Errors
    /// If its key is not known.
    pub fn program(&self) -> Result<&Program, Error> {
        let found = self.found.as_ref();
        found.map_err(|why| Error::NotCacheable(why.clone()))
    }

    /// Keeps its binary in the store of its context, for all who ask for the same program. Gives whether
    /// a store keeps it; if the driver gives no binary, a warning says so.
    ///
    /// # Errors
    /// If its key is not known.
    pub fn keep(&self) -> Result<bool, Error> {
        Ok(self.program()?.0.keep_foreign())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::driver::simulated::Simulated;

    #[test]
    fn a_foreign_program_that_includes_files_has_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let header = folder.path().join("one.h");
        std::fs::write(&header, "#define ONE 1\n").unwrap();
        for includes in [true, false] {
            let driver = Simulated::new();
            let context = Context::simulated(&driver).build().unwrap();
            let source = match includes {
                true => format!("#include \"{}\"\nkernel void k() {{}}", header.display()),
                false => "kernel void k() {}".to_owned(),
            };
            let raw = driver.with_source(&source).unwrap();
            driver.build(&raw, 0, "").unwrap();
            let foreign = context.adopt(0, raw).unwrap();
            assert_eq!(foreign.is_cacheable().is_ok(), !includes);
        }
    }

    /// A lossy conversion would make two sources one.
    #[test]
    fn what_is_no_text_is_not_made_one() {
        assert_eq!(text(b"kernel\0".to_vec()).as_deref(), Some("kernel"));
        assert_eq!(text(b"/* \xe9 */\0".to_vec()), None);
    }

    /// The driver builds them, but here something is missing, can't be read, or can't be parsed.
    #[test]
    fn what_can_not_be_told_of_a_foreign_program_is_a_reason_and_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let looping = folder.path().join("loop.h");
        #[cfg(unix)]
        std::os::unix::fs::symlink(&looping, &looping).unwrap();
        let looping = format!("#include \"{}\"", looping.display());
        for (source, options) in [
            ("#include \"gone.h\"", ""),
            (&*looping, ""),
            ("", "-D"),
            ("", "-DA=1\t-DB=2"),
        ] {
            let driver = Simulated::new();
            let context = Context::simulated(&driver).build().unwrap();
            let source = format!("{source}\nkernel void k() {{}}");
            let raw = driver.with_source(&source).unwrap();
            driver.build(&raw, 0, options).unwrap();
            let foreign = context.adopt(0, raw).unwrap();
            let why = foreign.is_cacheable().unwrap_err();
            assert!(
                matches!(
                    why,
                    NotCacheable::Foreign { .. } | NotCacheable::Reads { .. }
                ),
                "{why}"
            );
            assert_eq!(driver.counts().programs, 0);
        }
    }
}
