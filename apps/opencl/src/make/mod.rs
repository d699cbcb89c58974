//! How a program is had if it is not live: from a kept binary, from the binary of a device of equal
//! identity, or by a build, which other processes wait for.

mod kept;
mod owned;

use std::time::{Duration, Instant};

use sde::{Handle, Value};

use crate::Error;
use crate::apps;
use crate::context::Context;
use crate::driver::{Driver, RawProgram, Refusal};
use crate::error::given;
use crate::identity::{Descriptor, Made, Material};
use crate::keep::Code;
use crate::live::{Facts, Object, Program};
use crate::stats::Event;

use owned::Owned;

/// The body of the app that builds programs.
pub(crate) fn program(
    sde: &Handle,
    context: &Context,
    device: usize,
    descriptor: &Descriptor,
) -> Result<Program, Error> {
    let making = Making::new(context, device, descriptor)?;
    let first = context.first_like(device);
    if first != device
        && let Some(shared) = making.share(sde, first)?
    {
        return Ok(shared);
    }
    match (&context.0.store, descriptor.is_cacheable()) {
        (Some(store), Ok(())) => making.kept(sde, &**store),
        _ => making.build(sde),
    }
}

/// The body of the app that compiles parts.
pub(crate) fn object(
    context: &Context,
    device: usize,
    descriptor: &Descriptor,
) -> Result<Object, Error> {
    let making = Making::new(context, device, descriptor)?;
    let begun = Instant::now();
    let (raw, log) = making.as_described(|| {
        let raw = making.create()?;
        let compiled = making
            .driver()
            .compile(raw.get(), device, descriptor.options());
        let log = making.log(raw.get());
        match compiled {
            Ok(()) => Ok((raw, log)),
            Err(refusal) => Err(making.failed("compiling", refusal, log)),
        }
    })?;
    making.note_built(begun.elapsed());
    Ok(Object::new(context, descriptor, raw.take(), log))
}

struct Making<'a> {
    context: &'a Context,
    device: usize,
    descriptor: &'a Descriptor,
}

impl<'a> Making<'a> {
    fn new(context: &'a Context, device: usize, descriptor: &'a Descriptor) -> Result<Self, Error> {
        let identity = context.identity(device)?;
        let described = &descriptor.full_key().device;
        if described != identity {
            return Err(Error::OtherDevice {
                described: described.name.clone(),
                asked: identity.name.clone(),
            });
        }
        Ok(Self {
            context,
            device,
            descriptor,
        })
    }

    fn note(&self, event: &Event) {
        self.context.0.notes.note(event);
    }

    fn note_built(&self, took: Duration) {
        let key = self.descriptor.key();
        self.note(&Event::Built { key, took });
    }

    /// From the binary of an equal device's program. If its driver gives none, or refuses it, this
    /// device builds for itself.
    fn share(&self, sde: &Handle, first: usize) -> Result<Option<Program>, Error> {
        let other = self.context.program_once(sde, first, self.descriptor)?;
        let binary = other.0.binary_as_it_is().unwrap_or_default();
        if binary.is_empty() {
            return Ok(None);
        }
        let facts = Facts {
            log: other.log().to_owned(),
            build_time: other.build_time(),
            kernels: other.kernel_names().to_vec(),
        };
        match self.with_binary(&binary) {
            Ok(raw) => {
                let key = self.descriptor.key();
                self.note(&Event::Shared { key });
                let program = self.live(raw, facts, Code::shared(&other.0.code));
                program.0.note_bytes(&binary);
                Ok(Some(program))
            }
            Err(refusal) if refusal.is_out_of_resources() => Err(self.refused(refusal)),
            Err(_) => Ok(None),
        }
    }

    fn build(&self, sde: &Handle) -> Result<Program, Error> {
        let stretch = sde::stretch!("build", program = self.descriptor.name());
        let begun = Instant::now();
        let (raw, log) = match self.descriptor.made() {
            Made::Built => self.compile()?,
            Made::Linked(parts) => self.link(sde, parts)?,
        };
        let build_time = begun.elapsed();
        stretch.end("built");
        self.note_built(build_time);
        let kernels = self.kernel_names(raw.get())?;
        let facts = Facts {
            log,
            build_time,
            kernels,
        };
        Ok(self.live(raw, facts, Code::built()))
    }

    /// Builds source or intermediate language.
    fn compile(&self) -> Result<(Owned<'a>, String), Error> {
        self.as_described(|| {
            let raw = self.create()?;
            let options = self.descriptor.options();
            let built = self.driver().build(raw.get(), self.device, options);
            let log = self.log(raw.get());
            match built {
                Ok(()) => Ok((raw, log)),
                Err(refusal) => Err(self.failed("building", refusal, log)),
            }
        })
    }

    /// What a compiler makes, or the error it ends with, if it read what is in the key: either is
    /// remembered under that.
    fn as_described<T>(&self, compile: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if self.descriptor.is_cacheable().is_err() {
            return compile();
        }
        let look = || {
            let stamps = self.descriptor.unchanged(&self.context.0.environment);
            let program = self.descriptor.name().to_owned();
            stamps.ok_or(Error::Changed { program })
        };
        let before = look()?;
        let outcome = compile();
        if look()? != before {
            let program = self.descriptor.name().to_owned();
            return Err(Error::Changed { program });
        }
        outcome
    }

    fn link(&self, sde: &Handle, parts: &[Descriptor]) -> Result<(Owned<'a>, String), Error> {
        let objects = parts.iter().map(|part| self.part(sde, part));
        let objects = objects.collect::<Result<Vec<_>, _>>()?;
        self.link_objects(objects.iter().map(|object| &**object))
    }

    fn link_objects<'o>(
        &self,
        objects: impl Iterator<Item = &'o Object> + Clone,
    ) -> Result<(Owned<'a>, String), Error> {
        let raws: Vec<&RawProgram> = objects.clone().filter_map(Object::raw).collect();
        let options = self.descriptor.options();
        let mut log: String = objects.map(Object::log).collect();
        // The parts may have been compiled before a switch of the driver was changed.
        self.as_described(|| match self.driver().link(self.device, options, &raws) {
            Ok(raw) => {
                let raw = self.own(raw);
                log += &self.log(raw.get());
                Ok((raw, log))
            }
            Err(refusal) => Err(self.failed("linking", refusal, log)),
        })
    }

    /// A compiled part: remembered, or compiled.
    fn part(&self, sde: &Handle, part: &Descriptor) -> Result<Value<Object>, Error> {
        if part.is_cacheable().is_ok() {
            let outcome = apps::object.call(sde, self.context, self.device, part);
            if let Some(outcome) = given(outcome, part, |found| &found.descriptor) {
                return outcome;
            }
        }
        object(self.context, self.device, part).map(Value::new)
    }

    /// A program that is not built yet.
    fn create(&self) -> Result<Owned<'a>, Error> {
        let driver = self.driver();
        let raw = match &self.descriptor.full_key().material {
            Material::Source { text, .. } => driver.with_source(text),
            Material::Il { bytes, .. } => {
                if self.context.devices()[self.device].il.is_empty() {
                    return Err(self.no_il("it takes none".to_owned()));
                }
                match driver.with_il(bytes) {
                    Err(refusal) if refusal.is_of_the_module() => {
                        return Err(self.no_il(refusal.to_string()));
                    }
                    made => made,
                }
            }
            Material::Linked { .. } => {
                return Err(Error::Parts {
                    why: "a linked program is no part".to_owned(),
                });
            }
        };
        let raw = self.own(raw.map_err(|refusal| self.refused(refusal))?);
        if let Material::Il { constants, .. } = &self.descriptor.full_key().material {
            for (id, value) in constants {
                let set = driver.set_constant(raw.get(), *id, value);
                let log = || format!("constant {id} was not taken");
                set.map_err(|refusal| self.failed("setting a constant", refusal, log()))?;
            }
        }
        Ok(raw)
    }

    fn no_il(&self, why: String) -> Error {
        Error::NoIl {
            device: self.context.devices()[self.device].name.clone(),
            program: self.descriptor.name().to_owned(),
            why,
        }
    }

    /// A built program from bytes that were checked.
    fn with_binary(&self, binary: &[u8]) -> Result<Owned<'a>, Refusal> {
        let driver = self.driver();
        let raw = self.own(driver.with_binary(self.device, binary)?);
        driver.build(raw.get(), self.device, self.descriptor.options())?;
        Ok(raw)
    }

    fn driver(&self) -> &'a dyn Driver {
        &*self.context.0.driver
    }

    fn own(&self, raw: RawProgram) -> Owned<'a> {
        Owned::new(self.driver(), raw)
    }

    fn kernel_names(&self, raw: &RawProgram) -> Result<Vec<String>, Error> {
        let names = self.context.0.driver.kernel_names(raw);
        names.map_err(|refusal| self.refused(refusal))
    }

    fn live(&self, raw: Owned<'a>, facts: Facts, code: Code) -> Program {
        let raw = raw.take();
        Program::new(self.context, self.device, self.descriptor, raw, facts, code)
    }

    fn log(&self, raw: &RawProgram) -> String {
        let log = self.context.0.driver.log(raw, self.device);
        let log = log.unwrap_or_else(|refusal| format!("(no build log: {refusal})"));
        log.trim_matches(|c: char| c == '\0' || c.is_whitespace())
            .to_owned()
    }

    fn failed(&self, doing: &str, refusal: Refusal, log: String) -> Error {
        match refusal.is_out_of_resources() {
            true => self.refused(refusal),
            false => Error::Build {
                what: format!("{doing} {}", self.descriptor.name()),
                device: self.context.devices()[self.device].name.clone(),
                refusal,
                log,
            },
        }
    }

    fn refused(&self, refusal: Refusal) -> Error {
        let device = &self.context.devices()[self.device].name;
        Error::refused(
            format!("making {}", self.descriptor.name()),
            device,
            refusal,
        )
    }
}

/// The binary of a program built anew, by a driver that has all that it takes in a cache of its own.
pub(crate) fn binary_anew(
    context: &Context,
    device: usize,
    descriptor: &Descriptor,
) -> Result<Vec<u8>, Error> {
    let making = Making::new(context, device, descriptor)?;
    let raw = match descriptor.made() {
        Made::Built => making.compile()?.0,
        Made::Linked(parts) => {
            let objects = parts.iter().map(|part| object(context, device, part));
            let objects = objects.collect::<Result<Vec<_>, _>>()?;
            making.link_objects(objects.iter())?.0
        }
    };
    let binary = making.driver().binary(raw.get(), device);
    binary.map_err(|refusal| making.refused(refusal))
}

/// A program from bytes that a user kept, checked by who calls this.
pub(crate) fn from_binary(
    context: &Context,
    device: usize,
    descriptor: &Descriptor,
    binary: &[u8],
    facts: Facts,
) -> Result<Result<Program, Refusal>, Error> {
    let making = Making::new(context, device, descriptor)?;
    let made = making.with_binary(binary);
    Ok(made.map(|raw| making.live(raw, facts, Code::loaded(&[]))))
}
