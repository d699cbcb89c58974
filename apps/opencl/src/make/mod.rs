//! Making a program that is not live: from a kept binary, from the binary of a device of equal
//! identity, or by a build.

mod compile;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sde::{ErrorKind, Handle, Policy};

use crate::Error;
use crate::capture::Code;
use crate::context::{Context, Keeping};
use crate::driver::{DeviceType, Driver, RawProgram};
use crate::error::Refusal;
use crate::identity::Descriptor;
use crate::kept::{Facts, Kept, KernelDir, KernelStore, NotKept, parse};
use crate::live::{Object, Owned, Program};
use crate::lock::lock;
use crate::settings::Mode;
use crate::stats::Event;

/// The body of the app that builds programs.
pub(crate) fn program(
    sde: &Handle,
    context: &Context,
    device: usize,
    descriptor: &Descriptor,
) -> Result<Program, Error> {
    let making = Making::new(context, device, descriptor)?;
    context.keep_to_limit(sde);
    let first = context.first_like(device);
    if first != device
        && let Some(shared) = making.share(sde, first)?
    {
        return Ok(shared);
    }
    match (&context.0.keeping, descriptor.is_cacheable()) {
        (Keeping::Nowhere(None), _) => making.build(sde),
        (Keeping::Nowhere(Some(why)), _) => making.build_not_kept(sde, why),
        (_, Err(why)) => making.build_not_kept(sde, why),
        (Keeping::Dir(dir), _) => making.in_dir(sde, dir),
        (Keeping::Store(store), _) => making.in_store(sde, &**store),
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
    let (raw, log) = making.compile("compiling", |driver, raw, options| {
        driver.compile(raw, device, options)
    })?;
    making.note_built(begun.elapsed());
    Ok(Object::new(descriptor, raw, log))
}

/// A program to be made.
#[derive(Clone)]
pub(crate) struct Making {
    pub(crate) context: Context,
    pub(crate) device: usize,
    pub(crate) descriptor: Descriptor,
}

impl Making {
    pub(crate) fn new(
        context: &Context,
        device: usize,
        descriptor: &Descriptor,
    ) -> Result<Self, Error> {
        let identity = context.identity(device)?;
        let described = &descriptor.full_key().device;
        if described != identity {
            return Err(Error::OtherDevice {
                described: described.name.clone(),
                asked: identity.name.clone(),
            });
        }
        Ok(Self {
            context: context.clone(),
            device,
            descriptor: descriptor.clone(),
        })
    }

    fn build_not_kept(&self, sde: &Handle, why: impl Display) -> Result<Program, Error> {
        let program = self.build(sde)?;
        self.note_not_kept(why);
        Ok(program)
    }

    /// With a directory: its binary, or a build that is kept in it.
    fn in_dir(&self, sde: &Handle, dir: &KernelDir) -> Result<Program, Error> {
        let policies: &[Policy] = match dir.settings().mode_of(self.kind()) {
            Mode::Off => &[],
            Mode::Read => &[Policy::OnlyIfRemembered],
            // A kept binary that is of no use is built once more, and replaced.
            Mode::ReadWrite => &[Policy::Use, Policy::Refresh],
        };
        for policy in policies {
            let live = Arc::<Mutex<Option<Program>>>::default();
            let make = {
                let (making, sde, live) = (self.clone(), sde.clone(), Arc::clone(&live));
                move || {
                    let program = making.build(&sde)?;
                    let kept = program.0.as_built();
                    *lock(&live) = Some(program);
                    Ok(kept)
                }
            };
            let run = dir.run(&self.descriptor, *policy, make);
            if let Some(program) = lock(&live).take() {
                match run {
                    Ok(kept) => kept
                        .iter()
                        .for_each(|(_, key)| program.0.code.note_kept(Some(*key))),
                    Err(error) => self.note_not_kept(error),
                }
                return Ok(program);
            }
            match run {
                Err(error) if matches!(error.kind(), ErrorKind::NotRemembered { .. }) => break,
                Err(error) if error.app_error::<NotKept>().is_some() => {
                    return self.build_not_kept(sde, error);
                }
                run => {
                    if let Some((kept, key)) = run?
                        && let Some(program) = self.load(&kept)?
                    {
                        program.0.code.note_kept(Some(key));
                        return Ok(program);
                    }
                }
            }
        }
        match dir.only_read() {
            None => self.build(sde),
            Some(why) => self.build_not_kept(sde, why),
        }
    }

    /// With the user's store: its blob, or a build that is put there.
    fn in_store(&self, sde: &Handle, store: &dyn KernelStore) -> Result<Program, Error> {
        let id = self.descriptor.blob_id();
        let found = self.context.0.brought.take(&id).unwrap_or_else(|| {
            let found = self.context.get(store, &[id]);
            found.into_iter().next().flatten()
        });
        if let Some(blob) = found {
            match parse(&self.descriptor, &blob) {
                Ok(kept) => {
                    if let Some(program) = self.load(&kept)? {
                        program.0.code.note_kept(None);
                        return Ok(program);
                    }
                }
                Err(why) => self.unfit(why),
            }
        }
        let program = self.build(sde)?;
        program.0.put_built(store);
        Ok(program)
    }

    pub(crate) fn note_not_kept(&self, why: impl Display) {
        let (key, why) = (self.descriptor.key(), format!("{why:#}"));
        self.note(&Event::NotKept { key, why });
    }

    fn unfit(&self, why: &'static str) {
        let key = self.descriptor.key();
        self.note(&Event::Unfit { key, why });
    }

    /// From a kept binary; `None` if it is of another program, or the driver refuses it.
    fn load(&self, kept: &Kept) -> Result<Option<Program>, Error> {
        if let Some(why) = kept.is_unfit(self.descriptor.full_key()) {
            self.unfit(why);
            return Ok(None);
        }
        let key = self.descriptor.key();
        let loaded = self.with_binary(&kept.binary).and_then(|raw| {
            let has_kernels = self.has_kernels(raw.get(), &kept.facts.kernels)?;
            Ok(has_kernels.then_some(raw))
        });
        let why = match loaded {
            Ok(Some(raw)) => {
                self.note(&Event::Loaded { key });
                return Ok(Some(self.loaded(raw, kept)));
            }
            Ok(None) => "it has not the kernels that it is said to have".to_owned(),
            Err(refusal) if refusal.is_out_of_resources() => return Err(self.refused(refusal)),
            Err(refusal) => refusal.to_string(),
        };
        self.note(&Event::Refused { key, why });
        Ok(None)
    }

    /// Whether a driver finds exactly these kernels, in any order.
    fn has_kernels(&self, raw: &RawProgram, kernels: &[String]) -> Result<bool, Refusal> {
        let names = self.driver().kernel_names(raw)?;
        let names: BTreeSet<_> = names.into_iter().collect();
        Ok(names.iter().eq(kernels.iter().collect::<BTreeSet<_>>()))
    }

    /// A live program of a kept binary.
    pub(crate) fn loaded(&self, raw: Owned, kept: &Kept) -> Program {
        let program = self.live(raw, kept.facts.clone(), Code::loaded(&kept.launched));
        program.0.note_bytes(&kept.binary);
        program
    }

    /// From the binary of an equal device's program. If its driver gives none, or refuses it, this
    /// device builds for itself.
    fn share(&self, sde: &Handle, first: usize) -> Result<Option<Program>, Error> {
        let other = self.context.program_once(sde, first, &self.descriptor)?;
        let binary = other.0.binary_as_it_is().unwrap_or_default();
        if binary.is_empty() {
            return Ok(None);
        }
        match self.with_binary(&binary) {
            Ok(raw) => {
                let key = self.descriptor.key();
                self.note(&Event::Shared { key });
                let code = Code::shared(&other.0.code);
                let program = self.live(raw, other.0.facts.clone(), code);
                program.0.note_bytes(&binary);
                Ok(Some(program))
            }
            Err(refusal) if refusal.is_out_of_resources() => Err(self.refused(refusal)),
            Err(_) => Ok(None),
        }
    }

    pub(crate) fn kind(&self) -> DeviceType {
        self.context.devices()[self.device].kind
    }

    fn live(&self, raw: Owned, facts: Facts, code: Code) -> Program {
        Program::new(self.clone(), raw, facts, code)
    }

    fn driver(&self) -> &dyn Driver {
        &*self.context.0.driver
    }

    fn note(&self, event: &Event) {
        self.context.0.notes.note(event);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::driver::simulated::Simulated;
    use crate::kept::{StoreError, seal};
    use crate::{Environment, ProgramSpec};

    #[derive(Clone, Default)]
    struct One(Arc<Mutex<Option<Vec<u8>>>>);

    impl KernelStore for One {
        fn get(&self, _: &[[u8; 32]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
            Ok(vec![self.0.lock().unwrap().clone()])
        }

        fn put(&self, blobs: &[([u8; 32], Vec<u8>)]) -> Result<(), StoreError> {
            *self.0.lock().unwrap() = Some(blobs[0].1.clone());
            Ok(())
        }

        fn describe(&self) -> String {
            "one".to_owned()
        }
    }

    /// A driver may accept a binary that it would not run.
    #[test]
    fn a_binary_without_its_kernels_is_built_anew_and_replaced() {
        let store = One::default();
        let run = || {
            let context = Context::simulated(&Simulated::new()).keep_in(store.clone());
            let context = context.environment(Environment::reading(Vec::new));
            let context = context.build().unwrap();
            let spec = ProgramSpec::source("kernel void k() {}");
            let program = context.describe(0, &spec).unwrap();
            context.program(&sde::Sde::new(), 0, &program).unwrap();
            (context.stats().refused, context.stats().builds, program)
        };
        let (_, _, program) = run();
        let mut kept = parse(&program, &store.0.lock().unwrap().clone().unwrap()).unwrap();
        kept.facts.kernels.push("gone".to_owned());
        *store.0.lock().unwrap() = Some(seal(&program, &kept));
        let refused = |(refused, builds, _)| (refused, builds);
        assert_eq!(refused(run()), (1, 1));
        assert_eq!(refused(run()), (0, 0));
    }
}
