//! Two builds are the same if nothing differs that a compiler can see, and only then.

use std::collections::HashSet;
use std::fs;

use sde::Sde;
use sde::key::Digest;
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{Context, DRIVER_CACHES, DeviceInfo, Environment, Error, Material, ProgramSpec};

use crate::fixture::{COPY, context, copy, folder, keeping, process, quiet};

fn key(context: &Context, spec: &ProgramSpec) -> Digest {
    context.describe(0, spec).unwrap().key()
}

#[test]
fn shifted_boundaries_between_fields_give_other_keys() {
    let context = context(&Simulated::new());
    let specs = [
        ProgramSpec::source("ab").option("c"),
        ProgramSpec::source("a").option("bc"),
        ProgramSpec::source("a").option("b c"),
        ProgramSpec::source("a").option("\"b c\""),
        ProgramSpec::source("a").define("b", "c"),
        ProgramSpec::source("#define b c\na"),
        ProgramSpec::source("abc"),
        ProgramSpec::source("").option("abc"),
        ProgramSpec::il(*b"abc"),
        ProgramSpec::il(*b"a").constant(1, *b"bc"),
        ProgramSpec::il(*b"a").constant(1, *b"b").constant(2, *b"c"),
        ProgramSpec::linked([ProgramSpec::source("a"), ProgramSpec::source("bc")]),
        ProgramSpec::linked([ProgramSpec::source("ab"), ProgramSpec::source("c")]),
        ProgramSpec::linked([ProgramSpec::source("abc")]),
        ProgramSpec::linked([
            ProgramSpec::source("a").option("x"),
            ProgramSpec::source("bc"),
        ]),
        ProgramSpec::linked([ProgramSpec::source("a"), ProgramSpec::source("bc")]).option("x"),
    ];
    let keys: HashSet<_> = specs.iter().map(|spec| key(&context, spec)).collect();
    assert_eq!(keys.len(), specs.len());
}

#[test]
fn what_cannot_change_the_code_is_not_in_the_key() {
    let context = context(&Simulated::new());
    let plain = ProgramSpec::source(COPY);
    let one = plain.clone().option("-D A=1  -cl-mad-enable").named("one");
    let other = plain.clone().option("-DA=1").option("-cl-mad-enable");
    assert_eq!(key(&context, &one), key(&context, &other.named("other")));
    let by_call = context.describe_with(0, &plain.clone().option("-DA=1"), "-cl-mad-enable");
    assert_eq!(key(&context, &one), by_call.unwrap().key());
    let swapped = plain.option("-cl-mad-enable").option("-DA=1");
    assert_ne!(key(&context, &one), key(&context, &swapped));
}

/// The same in debug and release, in each process, and from one release to the next: whoever changes
/// this makes a new format version.
#[test]
fn keys_are_golden() {
    let context = context(&Simulated::new());
    let spec = ProgramSpec::source(COPY).define("A", 1);
    let golden = "70cbf254c3f63591aeee23e4ec76613cf0553edc66a1f34bfa2b6d7846fa678d";
    assert_eq!(key(&context, &spec).to_string(), golden);
    let both = ProgramSpec::linked([spec, ProgramSpec::il(*b"il").constant(3, *b"x")]);
    let golden = "67cdaec85fe4fa85afb7f62a987e7fed2cb39f9050213b3ad47cae23bbb93014";
    assert_eq!(key(&context, &both).to_string(), golden);
}

#[test]
fn each_part_of_the_identity_of_a_device_counts() {
    let plain = device("simulated", "1.0");
    let others: [fn(&mut DeviceInfo); 8] = [
        |device| device.identity.platform += "x",
        |device| device.identity.platform_version += "x",
        |device| device.identity.name += "x",
        |device| device.identity.vendor += "x",
        |device| device.identity.version += "x",
        |device| device.identity.driver += "x",
        |device| device.identity.extensions += "x",
        |device| device.identity.language += "x",
    ];
    let spec = ProgramSpec::source(COPY);
    let mut keys = HashSet::from([key(&context(&Simulated::with(vec![plain.clone()])), &spec)]);
    for change in others {
        let mut device = plain.clone();
        change(&mut device);
        keys.insert(key(&context(&Simulated::with(vec![device])), &spec));
    }
    assert_eq!(keys.len(), 9);
}

/// Each alone: what was kept before is not used.
#[test]
fn a_change_of_anything_a_compiler_sees_is_a_build() {
    let (kept, headers) = (folder(), folder());
    let header = headers.path().join("size.h");
    fs::write(&header, "#include \"deeper.h\"").unwrap();
    fs::write(headers.path().join("deeper.h"), "#define SIZE 1").unwrap();
    let source = format!("#include \"size.h\"\n{COPY}");
    let spec = ProgramSpec::source(source).include_dir(headers.path());

    let builds = |device: DeviceInfo, spec: &ProgramSpec| {
        let driver = Simulated::with(vec![device]);
        let context = keeping(&driver, kept.path());
        let program = context.describe(0, spec).unwrap();
        context.kernel(&Sde::new(), 0, &program, "copy").unwrap();
        driver.counts().builds
    };
    let plain = || device("simulated", "1.0");
    assert_eq!(builds(plain(), &spec), 1);
    assert_eq!(builds(plain(), &spec), 0);
    assert_eq!(builds(device("simulated", "1.1"), &spec), 1);
    assert_eq!(builds(device("another", "1.0"), &spec), 1);
    assert_eq!(builds(plain(), &spec.clone().option("-g")), 1);
    fs::write(headers.path().join("deeper.h"), "#define SIZE 2").unwrap();
    assert_eq!(builds(plain(), &spec), 1);
    fs::write(headers.path().join("deeper.h"), "#define SIZE 1").unwrap();
    assert_eq!(builds(plain(), &spec), 0);
}

#[test]
fn switches_of_drivers_and_options_of_the_environment_count() {
    let with = |variables: &[(&str, &str)]| {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let variables: Vec<_> = variables.iter().map(owned).collect();
        let environment = Environment::reading(move || variables.clone());
        let driver = Simulated::new();
        let context = Context::simulated(&driver)
            .environment(environment.prefix("MINE_").without("MINE_LOG"));
        key(&context.build().unwrap(), &ProgramSpec::source(COPY))
    };
    let plain = with(&[]);
    assert_eq!(
        with(&[
            ("HOME", "x"),
            ("POCL_CACHE_DIR", "x"),
            ("POCL_DEBUG", "1"),
            ("MINE_LOG", "x")
        ]),
        plain
    );
    let mut keys = HashSet::from([plain]);
    for switch in [
        "POCL_WORK_GROUP_METHOD",
        "IGC_EnableX",
        "MINE_X",
        "SDE_OPENCL_BUILD_OPTIONS",
    ] {
        assert!(keys.insert(with(&[(switch, "-a")])), "{switch} alone");
        assert!(keys.insert(with(&[(switch, "-b")])), "{switch} changed");
    }
}

/// With one bit of each digest left, half of all programs share a key, in memory and in the store.
#[test]
fn programs_that_share_a_digest_are_never_mistaken() {
    let kept = folder();
    for _ in ["built", "kept"] {
        let driver = Simulated::new();
        let dir =
            sde_opencl::KernelDir::open(sde_opencl::Settings::new().dir(kept.path())).unwrap();
        let context = quiet(&driver)
            .keep_in_dir(&dir)
            .cut_digests_to(1)
            .build()
            .unwrap();
        let sde = Sde::new();
        let mut keys = HashSet::new();
        for _ in ["once", "again"] {
            for n in 0..12 {
                let spec = ProgramSpec::source(format!("kernel void k{n}() {{}}"));
                let program = context.describe(0, &spec).unwrap();
                keys.insert(program.key());
                let kernel = context.kernel(&sde, 0, &program, &format!("k{n}")).unwrap();
                assert!(kernel.program().descriptor().key() == program.key());
                assert_eq!(kernel.program().kernel_names(), [format!("k{n}")]);
                let live = context.program(&sde, 0, &program).unwrap();
                assert!(
                    String::from_utf8_lossy(&live.binary().unwrap()).contains(&format!("k{n}("))
                );
            }
        }
        assert_eq!(keys.len(), 2);
        assert!(context.stats().unfit > 0);
        assert_eq!(driver.counts().damaged, 0);
    }
}

/// An error is remembered as a program is, and is no more another program's.
#[test]
fn programs_that_share_a_digest_have_errors_of_their_own() {
    let driver = Simulated::new();
    let context = quiet(&driver).cut_digests_to(1).build().unwrap();
    let sde = Sde::new();
    let mut keys = HashSet::new();
    for round in 0..2 {
        for n in 0..12 {
            let is_good = n % 3 == 0;
            let part = ProgramSpec::source(match is_good {
                true => format!("kernel void k{n}() {{}}"),
                false => format!("#error because of {n}!"),
            });
            let spec = match n % 2 {
                0 => part.named(format!("number {n}")),
                _ => ProgramSpec::linked([part]).named(format!("number {n}")),
            };
            let program = context.describe(0, &spec).unwrap();
            keys.insert(program.key());
            let whole = context.program(&sde, 0, &program).map(|_| ());
            for name in [format!("k{n}"), "none".to_owned()] {
                let kernel = context.kernel(&sde, 0, &program, &name).map(|_| ());
                let text = match (is_good, kernel) {
                    (true, kernel) if name != "none" => {
                        kernel.unwrap();
                        continue;
                    }
                    (true, kernel) => kernel.unwrap_err().to_string(),
                    (false, kernel) => {
                        let whole = whole.clone().unwrap_err();
                        assert!(whole.to_string().contains(&format!("of {n}!")), "{whole}");
                        kernel.unwrap_err().to_string()
                    }
                };
                let own = match is_good {
                    true => format!("number {n} has no kernel \"none\"; it has: k{n}"),
                    false => format!("because of {n}!"),
                };
                assert!(text.contains(&own), "round {round}, {n}: {text}");
            }
        }
    }
    assert_eq!(keys.len(), 2);
}

#[test]
fn linked_parts_may_share_a_digest_too() {
    let context = quiet(&Simulated::new()).cut_digests_to(1).build().unwrap();
    let sde = Sde::new();
    for n in 0..6 {
        let part = |which: &str| ProgramSpec::source(format!("kernel void {which}{n}() {{}}"));
        let program = context
            .describe(0, &ProgramSpec::linked([part("a"), part("b")]))
            .unwrap();
        let live = context.program(&sde, 0, &program).unwrap();
        assert_eq!(live.kernel_names(), [format!("a{n}"), format!("b{n}")]);
    }
}

#[test]
fn a_descriptor_is_for_its_device() {
    let driver = Simulated::with(vec![device("one", "1"), device("two", "1")]);
    let context = context(&driver);
    let program = context.describe(0, &ProgramSpec::source(COPY)).unwrap();
    let error = context.program(&Sde::new(), 1, &program).unwrap_err();
    assert!(matches!(error, Error::OtherDevice { .. }), "{error}");
    let error = context.describe(2, &ProgramSpec::source(COPY)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NoDevice {
                device: 2,
                devices: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_program_that_no_key_can_hold_is_built_each_time_and_never_kept() {
    let kept = folder();
    let (driver, context) = process(kept.path());
    let spec =
        ProgramSpec::source("constant char when[] = __TIME__; kernel void k() {}").named("clock");
    let program = context.describe(0, &spec).unwrap();
    let why = program.is_cacheable().unwrap_err();
    assert_eq!(
        why.to_string(),
        "clock has __TIME__, which is another from one build to the next"
    );
    let sde = Sde::new();
    for _ in 0..2 {
        context.kernel(&sde, 0, &program, "k").unwrap();
    }
    // The apps would remember it, and are for who knows what can be.
    let refused = [
        sde_opencl::apps::program_build
            .call(&sde, &context, 0, &program)
            .err(),
        sde_opencl::apps::kernel
            .call(&sde, &context, 0, &program, "k")
            .err(),
        sde_opencl::apps::object
            .call(&sde, &context, 0, &program)
            .err(),
    ];
    for error in refused {
        let error = Error::from(error.unwrap());
        assert!(matches!(error, Error::NotCacheable(_)), "{error}");
    }
    assert_eq!(driver.counts().builds, 2);
    assert_eq!(context.stats().kept, 0);
    let linked = ProgramSpec::linked([ProgramSpec::source(COPY), spec]);
    let linked = context.describe(0, &linked).unwrap();
    assert!(linked.is_cacheable().is_err());
    for spec in [
        ProgramSpec::source(COPY).option("--include=other.h"),
        ProgramSpec::source(COPY).define("WHEN", "__TIME__"),
        ProgramSpec::source(format!("#include_next <a.h>\n{COPY}")),
    ] {
        let program = context.describe(0, &spec).unwrap();
        assert!(program.is_cacheable().is_err(), "{spec:?}");
    }
}

/// Editors of some systems write one.
#[test]
fn a_mark_of_the_byte_order_hides_no_include() {
    let headers = folder();
    let of = |size: &str| {
        fs::write(headers.path().join("deeper.h"), size).unwrap();
        fs::write(
            headers.path().join("size.h"),
            "\u{feff}#include \"deeper.h\"",
        )
        .unwrap();
        let source = format!("\u{feff}#include \"size.h\"\n{COPY}");
        let spec = ProgramSpec::source(source).include_dir(headers.path());
        let context = context(&Simulated::new());
        context.describe(0, &spec).unwrap().key()
    };
    assert_eq!(of("#define SIZE 1"), of("#define SIZE 1"));
    assert_ne!(of("#define SIZE 1"), of("#define SIZE 2"));
}

#[test]
fn switches_of_other_drivers_count_by_themselves() {
    let key = |name: &str| {
        let variables = vec![(name.to_owned(), "x".to_owned())];
        let environment = Environment::reading(move || variables.clone());
        let driver = Simulated::new();
        let context = Context::simulated(&driver).environment(environment).build();
        copy(&context.unwrap()).key()
    };
    for name in [
        "AMD_OCL_BUILD_OPTIONS_APPEND",
        "AMD_GPU_FORCE_SINGLE_FP_DENORM",
        "CL_KHR_FP64",
        "CLOVER_EXTRA_BUILD_OPTIONS",
        "CUDA_FORCE_PTX_JIT",
        "GPU_ENABLE_WAVE32_MODE",
        "GPU_ENABLE_WGP_MODE",
        "NEOReadDebugKeys",
        "OverrideDefaultFP64Settings",
        "RUSTICL_FEATURES",
    ] {
        assert_ne!(key(name), key("HOME"), "{name}");
    }
    // Each rank of a job may have others of these, and all shared directories of a toolkit are paths.
    for name in DRIVER_CACHES.iter().chain(&[
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "AMD_LOG_LEVEL",
    ]) {
        assert_eq!(key(name), key("HOME"), "{name}");
    }
}

/// Intel's driver reads hundreds of variables with names of all kinds once this one is set. And a path to NVIDIA's toolkit, which most
/// clusters set, is no reason to keep nothing.
#[test]
fn a_switch_that_opens_all_others_is_not_cacheable() {
    let is_cacheable = |name: &'static str, value: &'static str| {
        let variables = move || vec![(name.to_owned(), value.to_owned())];
        let builder = quiet(&Simulated::new()).environment(Environment::reading(variables));
        copy(&builder.build().unwrap()).is_cacheable().is_ok()
    };
    assert!(!is_cacheable("NEOReadDebugKeys", "1"));
    assert!(is_cacheable("NEOReadDebugKeys", "0"));
    assert!(is_cacheable("CUDA_HOME", "/usr/local/cuda"));
}

/// A linker takes five options, of which PoCL refuses each. So links have a variable of their own, and the other one is for compilers.
#[test]
fn compilers_and_linkers_each_have_options_of_the_environment() {
    let describe = |variables: &[(&str, &str)], spec: &ProgramSpec| {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let variables: Vec<_> = variables.iter().map(owned).collect();
        let environment = Environment::reading(move || variables.clone());
        let context = quiet(&Simulated::new()).environment(environment).build();
        context
            .unwrap()
            .describe_with(0, spec, "-cl-finite-math-only")
    };
    let source = ProgramSpec::source("kernel void k() {}");
    let linked = ProgramSpec::linked([source.clone()]).option("-cl-unsafe-math-optimizations");
    let build = ("SDE_OPENCL_BUILD_OPTIONS", "-cl-fast-relaxed-math");
    let link = ("SDE_OPENCL_LINK_OPTIONS", "-cl-no-signed-zeros");
    let both = describe(&[build, link], &linked).unwrap();
    let options = "-cl-unsafe-math-optimizations -cl-finite-math-only -cl-no-signed-zeros";
    assert_eq!(both.options(), options);
    let Material::Linked { parts } = &both.full_key().material else {
        unreachable!("it is linked");
    };
    assert_eq!(parts[0].options, build.1);
    let alone = describe(&[build, link], &source).unwrap();
    assert_eq!(alone.options(), format!("-cl-finite-math-only {}", build.1));
    let error = describe(&[("SDE_OPENCL_LINK_OPTIONS", "-D")], &linked).unwrap_err();
    assert!(
        error.to_string().contains("SDE_OPENCL_LINK_OPTIONS=-D"),
        "{error}"
    );
}
