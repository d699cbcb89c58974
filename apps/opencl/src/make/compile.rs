//! The driver's ways to make a program: compile, link, load a binary.

use std::time::{Duration, Instant};

use sde::{Handle, Value};

use super::{Making, object};
use crate::Error;
use crate::apps;
use crate::capture::Code;
use crate::driver::{Driver, RawProgram};
use crate::error::Refusal;
use crate::failed::given;
use crate::identity::{Descriptor, Made, Material};
use crate::kept::Facts;
use crate::live::{Object, Owned, Program};
use crate::stats::Event;

impl Making {
    /// Builds source or intermediate language, or links parts.
    pub(crate) fn build(&self, sde: &Handle) -> Result<Program, Error> {
        let stretch = sde::stretch!("build", program = self.descriptor.name());
        let begun = Instant::now();
        let (raw, log) = match self.descriptor.made() {
            Made::Built => self.build_alone()?,
            Made::Linked(parts) => {
                let objects = parts.iter().map(|part| self.part(sde, part));
                let objects = objects.collect::<Result<Vec<_>, _>>()?;
                self.link(objects.iter().map(|object| &**object))?
            }
        };
        let build_time = begun.elapsed();
        stretch.end("built");
        self.note_built(build_time);
        let kernels = self.driver().kernel_names(raw.get());
        let facts = Facts {
            log,
            build_time,
            kernels: kernels.map_err(|refusal| self.refused(refusal))?,
        };
        Ok(self.live(raw, facts, Code::default()))
    }

    fn build_alone(&self) -> Result<(Owned, String), Error> {
        self.compile("building", |driver, raw, options| {
            driver.build(raw, self.device, options)
        })
    }

    /// Compiles the source or the intermediate language; gives the program and the log.
    pub(super) fn compile(
        &self,
        doing: &str,
        call: impl Fn(&dyn Driver, &RawProgram, &str) -> Result<(), Refusal>,
    ) -> Result<(Owned, String), Error> {
        self.as_described(|| {
            let raw = self.create()?;
            let compiled = call(self.driver(), raw.get(), self.descriptor.options());
            let log = self.log(raw.get());
            match compiled {
                Ok(()) => Ok((raw, log)),
                Err(refusal) => Err(self.failed(doing, refusal, log)),
            }
        })
    }

    /// The outcome of a compilation, program or error, if the compiler read what the key was made from: either is
    /// remembered under that key.
    fn as_described<T>(&self, compile: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if self.descriptor.is_cacheable().is_err() {
            return compile();
        }
        let changed = || Error::Changed {
            program: self.descriptor.name().to_owned(),
        };
        let look = || self.descriptor.unchanged(&self.context.0.environment);
        let before = look().ok_or_else(changed)?;
        let outcome = compile();
        match look() {
            Some(after) if after == before => outcome,
            _ => Err(changed()),
        }
    }

    fn link<'o>(
        &self,
        objects: impl Iterator<Item = &'o Object> + Clone,
    ) -> Result<(Owned, String), Error> {
        let raws: Vec<&RawProgram> = objects.clone().map(Object::raw).collect();
        let options = self.descriptor.options();
        let mut log: String = objects.map(Object::log).collect();
        // The parts may have been compiled before a switch of the driver was changed.
        self.as_described(|| match self.driver().link(self.device, options, &raws) {
            Ok(raw) => {
                let raw = Owned::new(&self.context, raw);
                log += &self.log(raw.get());
                Ok((raw, log))
            }
            Err(refusal) => Err(self.failed("linking", refusal, log)),
        })
    }

    /// A compiled part: remembered, or compiled.
    fn part(&self, sde: &Handle, part: &Descriptor) -> Result<Value<Object>, Error> {
        if part.is_cacheable().is_ok() {
            let outcome = apps::object.call(sde, &self.context, self.device, part);
            if let Some(outcome) = given(outcome, part, |found| &found.descriptor) {
                return outcome;
            }
        }
        object(&self.context, self.device, part).map(Value::new)
    }

    /// A program that is not built yet.
    fn create(&self) -> Result<Owned, Error> {
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
        let raw = Owned::new(&self.context, raw.map_err(|refusal| self.refused(refusal))?);
        if let Material::Il { constants, .. } = &self.descriptor.full_key().material {
            for (id, value) in constants {
                let set = driver.set_constant(raw.get(), *id, value);
                let log = || format!("constant {id} was not taken");
                set.map_err(|refusal| self.failed("setting a constant", refusal, log()))?;
            }
        }
        Ok(raw)
    }

    /// A built program from bytes that were checked.
    pub(crate) fn with_binary(&self, binary: &[u8]) -> Result<Owned, Refusal> {
        let driver = self.driver();
        let raw = Owned::new(&self.context, driver.with_binary(self.device, binary)?);
        driver.build(raw.get(), self.device, self.descriptor.options())?;
        Ok(raw)
    }

    /// The binary of the program built anew, by a driver that has all of its code in a cache of its own.
    pub(crate) fn binary_anew(&self) -> Result<Vec<u8>, Error> {
        let raw = match self.descriptor.made() {
            Made::Built => self.build_alone()?.0,
            Made::Linked(parts) => {
                let object = |part| object(&self.context, self.device, part);
                let objects = parts.iter().map(object).collect::<Result<Vec<_>, _>>()?;
                self.link(objects.iter())?.0
            }
        };
        let binary = self.driver().binary(raw.get(), self.device);
        binary.map_err(|refusal| self.refused(refusal))
    }

    pub(super) fn note_built(&self, took: Duration) {
        let key = self.descriptor.key();
        self.note(&Event::Built { key, took });
    }

    fn log(&self, raw: &RawProgram) -> String {
        let log = self.driver().log(raw, self.device);
        let log = log.unwrap_or_else(|refusal| format!("(no build log: {refusal})"));
        log.trim_matches(|c: char| c == '\0' || c.is_whitespace())
            .to_owned()
    }

    fn no_il(&self, why: String) -> Error {
        Error::NoIl {
            device: self.context.devices()[self.device].identity.name.clone(),
            program: self.descriptor.name().to_owned(),
            why,
        }
    }

    fn failed(&self, doing: &str, refusal: Refusal, log: String) -> Error {
        match refusal.is_out_of_resources() {
            true => self.refused(refusal),
            false => Error::Build {
                what: format!("{doing} {}", self.descriptor.name()),
                device: self.context.devices()[self.device].identity.name.clone(),
                refusal,
                log,
            },
        }
    }

    pub(super) fn refused(&self, refusal: Refusal) -> Error {
        let device = &self.context.devices()[self.device].identity.name;
        let what = format!("making {}", self.descriptor.name());
        Error::refused(what, device, refusal)
    }
}
