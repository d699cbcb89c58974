//! Each call of a driver fails once, with each kind of code: a program that asked is told or gets
//! what it asked for, the next one gets it, nothing wrong is kept, and nothing is left with the driver.

use std::error::Error as StdError;

use sde::{Handle, Sde};
use sde_opencl::driver::faults::{Call, Faults};
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{BlobError, Context, Error, ProgramSpec};

use crate::fixture::{OUT_OF_RESOURCES, copied, copy, folder, keep, quiet};

/// Of a driver that is broken, short of memory, or not pleased with the program.
pub const CODES: [i32; 4] = [OUT_OF_RESOURCES, -6, -11, -30];

type Outcome<T> = Result<T, Box<dyn StdError>>;

/// A way to use a context, and what it should see.
pub struct Use<'a> {
    pub context: &'a dyn Fn(&Faults) -> Context,
    pub work: &'a dyn Fn(&Handle, &Context) -> Outcome<()>,
}

/// How many calls the work makes.
pub fn calls(work: &Use<'_>) -> Vec<Call> {
    let (faults, sde) = (Faults::new(), Sde::new());
    let context = (work.context)(&faults);
    (work.work)(&sde, &context).unwrap();
    // Not those of the end.
    let made = faults.made();
    drop((sde, context));
    assert_eq!(faults.held(), (0, 0));
    made
}

/// Has one call fail in a fresh context, then works in peace; gives whether it was told of the fault.
pub fn fail_one(work: &Use<'_>, at: usize, code: i32) -> bool {
    let (faults, sde) = (Faults::new(), Sde::new());
    let context = (work.context)(&faults);
    faults.fail_after(at, code);
    let told = (work.work)(&sde, &context);
    let call = faults.made()[at];
    if let Err(error) = &told {
        let text = error.to_string();
        let is_typed = error.is::<Error>() || error.is::<BlobError>();
        assert!(is_typed, "{call:?} {code}: {text}");
        assert!(text.contains(call.name()), "{call:?} {code}: {text}");
    }
    // What would come again is remembered until the user says otherwise.
    if matches!(&told, Err(error) if is_permanent(&**error)) {
        let again = (work.work)(&sde, &context).unwrap_err();
        assert_eq!(again.to_string(), told.as_ref().unwrap_err().to_string());
        for app in ["Kernel", "ProgramBuild", "Object"] {
            sde.clear_app(format!("sde_opencl.{app}").as_str()).unwrap();
        }
    }
    if let Err(error) = (work.work)(&sde, &context) {
        panic!("{call:?} failed once with {code}, and then: {error}");
    }
    let stats = context.stats();
    drop((sde, context));
    assert_eq!(faults.held(), (0, 0), "{call:?} {code}");
    assert_eq!((stats.unfit, stats.store_failures), (0, 0));
    told.is_err()
}

fn is_permanent(error: &(dyn StdError + 'static)) -> bool {
    error
        .downcast_ref::<Error>()
        .is_some_and(Error::is_permanent)
}

fn parts() -> ProgramSpec {
    ProgramSpec::linked([
        ProgramSpec::source("kernel void a() {}"),
        ProgramSpec::source("kernel void b() {}"),
    ])
}

/// All that is needed for kernels.
fn kernels(sde: &Handle, context: &Context) -> Outcome<()> {
    let kernel = context.kernel(sde, 0, &copy(context), "copy")?;
    assert_eq!(kernel.program().kernel_names(), ["copy", "move"]);
    let (first, second) = (kernel.launch()?, kernel.launch()?);
    first.enqueued();
    drop((first, second));
    // A twin takes the binary of the first.
    let twin = context.program(sde, 1, &copy(context))?;
    assert_eq!(twin.kernel_names(), ["copy", "move"]);
    let linked = context.describe(0, &parts())?;
    let linked = context.kernel(sde, 0, &linked, "b")?;
    assert_eq!(linked.program().kernel_names(), ["a", "b"]);
    let il = ProgramSpec::il(*b"kernel void il(").constant(7, [1, 2, 3, 4]);
    let il = context.describe(0, &il)?;
    context.kernel(sde, 0, &il, "il")?;
    Ok(())
}

/// And all else.
fn everything(sde: &Handle, context: &Context) -> Outcome<()> {
    kernels(sde, context)?;
    let program = context.program(sde, 0, &copy(context))?;
    let blob = program.blob()?;
    let from_blob = context.from_blob(0, &copy(context), &blob)?;
    from_blob.kernel("move")?.launch()?;
    context.keep_launched();
    Ok(())
}

fn takes_il() -> Simulated {
    let mut device = device("simulated", "1.0");
    device.il = "SPIR-V_1.0".to_owned();
    Simulated::with(vec![device.clone(), device])
}

#[test]
fn each_call_of_a_driver_fails_once_and_nothing_is_lost() {
    let is_loaded = [false, true];
    for (is_loaded, code) in is_loaded.iter().flat_map(|l| CODES.map(|code| (l, code))) {
        let kept = folder();
        let fresh = |faults: &Faults| {
            let driver = takes_il();
            driver.freeze_binaries();
            keep(quiet(&driver).faults(faults), kept.path())
        };
        let emptied = |faults: &Faults| {
            let _ = std::fs::remove_dir_all(kept.path());
            fresh(faults)
        };
        let context: &dyn Fn(&Faults) -> Context = match is_loaded {
            true => &fresh,
            false => &emptied,
        };
        let work = Use {
            context,
            work: &everything,
        };
        // The first time fills what the others load from.
        let _ = calls(&work);
        let calls = calls(&work);
        assert_eq!(calls.contains(&Call::CreateWithSource), !is_loaded);
        let told = (0..calls.len()).filter(|at| fail_one(&work, *at, code));
        assert!(told.count() > 0);
        // What was kept under all these faults is what is had without any.
        let faults = Faults::new();
        let context = fresh(&faults);
        everything(&Sde::new(), &context).unwrap();
        assert_eq!(context.stats().builds, 0);
    }
}

/// What was built goes to the store before memory is made room in, and is loaded from there: not compiled once more while it
/// is still held.
#[test]
fn a_kernel_that_lacks_resources_is_no_reason_to_build_its_program_again() {
    let kept = folder();
    let (driver, faults) = (Simulated::new(), Faults::new());
    let context = keep(quiet(&driver).faults(&faults), kept.path());
    let sde = Sde::new();
    faults.fail(&[Call::CreateKernel], 2, OUT_OF_RESOURCES);
    context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
    assert_eq!((driver.counts().builds, driver.counts().programs), (1, 1));
    // Nor are the names that a driver could not tell.
    drop(sde);
    faults.fail(&[Call::KernelNames], 1, OUT_OF_RESOURCES);
    copied(&context);
    assert_eq!((driver.counts().builds, context.stats().refused), (1, 0));
}

/// Memory that is lacking once is no reason to be told, whichever call it is.
#[test]
fn a_lack_of_resources_at_any_call_for_a_kernel_is_overcome() {
    for code in [OUT_OF_RESOURCES, -6] {
        let kept = folder();
        let context = |faults: &Faults| {
            let _ = std::fs::remove_dir_all(kept.path());
            keep(quiet(&takes_il()).faults(faults), kept.path())
        };
        let work = Use {
            context: &context,
            work: &kernels,
        };
        for (at, call) in calls(&work).into_iter().enumerate() {
            assert!(!fail_one(&work, at, code), "{call:?} {code}");
        }
    }
}
