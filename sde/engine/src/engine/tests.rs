//! Tests that look inside the engine: at the memory of caches and received results, at locks, at threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use super::handle::Handle;
use crate::app::{App, AppInfo};
use crate::checkpoint::MemoryArchiver;
use crate::error::AppError;
use crate::inputs::Inputs;
use crate::key::{Encoder, Fingerprint, FingerprintError};
use crate::ranks::{ProcessGroup, ThreadGroup};
use crate::result_map::{Codec, ErasedValue, Json, ResultMap, ResultSpec, SizeOf, Tag, Wire};
use crate::sync::lock;
use crate::{Event, MemoryBudget, Policy, Sde};

struct Twice;

impl Twice {
    const NAME: &str = "in_memory_once.twice";
}

impl Fingerprint for Twice {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("Twice", |_| Ok(()))
    }
}

impl App for Twice {
    fn info(&self) -> AppInfo {
        AppInfo::new(Self::NAME, "1")
            .result(ResultSpec::new::<u64>("result"))
            .result(ResultSpec::new::<u64>("input").tagged(Tag::Expendable))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let x = *inputs.get::<u64>("x")?;
        match x % 10 {
            7 => Err(AppError::message("it is unlucky").permanent()),
            _ => Ok(ResultMap::new().with("result", 2 * x).with("input", x)),
        }
    }
}

#[test]
fn what_was_sent_is_let_go_when_a_run_has_taken_it_up() {
    let inputs = |x: u64| Inputs::new().with("x", x);
    ThreadGroup::run(2, |group| {
        let first = group.rank() == 0;
        let sde = Sde::builder().process_group(group, Json).build().unwrap();
        let part = sde.split(u32::from(first), 0).unwrap();
        if first {
            for x in [1, 2, 3] {
                part.run(&Twice, &inputs(x)).unwrap();
            }
        }
        part.release().unwrap();
        let waiting = || sde.engine().sets.received.waiting().len();
        let expected = |left: usize| if first { 0 } else { left };
        assert_eq!(waiting(), expected(3));
        let map = sde.run(&Twice, &inputs(1)).unwrap();
        assert_eq!(waiting(), expected(2));
        let given = inputs(2);
        let request = sde.request(&Twice, &given).policy(Policy::OnlyIfRemembered);
        request.run().unwrap();
        assert_eq!(waiting(), expected(1));
        assert_eq!(*map.get::<u64>("result").unwrap(), 2);
        let again = sde.run(&Twice, &inputs(2)).unwrap();
        assert_eq!(*again.get::<u64>("result").unwrap(), 4);
        let computed = sde.stats().total.computed;
        assert_eq!(computed, if first { 3 } else { 0 });
    });
}

/// The count is right whatever threads do at once, whether the budget evicts anything or only saved values.
#[test]
fn what_a_budget_counts_is_what_the_cache_holds() {
    let budgets = [
        MemoryBudget::bytes(40_000),
        MemoryBudget::bytes(20_000).only_saved(),
    ];
    let inputs = |x: u64| Inputs::new().with("x", x);
    for budget in budgets {
        let sde = Sde::builder().memory_budget(budget).build().unwrap();
        sde.run(&Twice, &inputs(0)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let sde = &sde;
                scope.spawn(move || {
                    for round in 0..200_u64 {
                        let x = (thread * 7 + round * 13) % 50;
                        match round % 7 {
                            0 => sde.clear_app(Twice::NAME).unwrap(),
                            1 => drop(sde.evict(Twice::NAME, 10)),
                            2 => drop(
                                sde.request(&Twice, &inputs(x))
                                    .policy(Policy::Refresh)
                                    .run(),
                            ),
                            _ => drop(sde.run(&Twice, &inputs(x))),
                        }
                    }
                });
            }
        });
        let held = || {
            let caches = sde.engine().caches.all();
            let all = caches.flat_map(|cache| [cache.entries(), cache.failures()].concat());
            all.map(|entry| entry.known_memory()).sum::<usize>()
        };
        let counted = || sde.stats().memory.unwrap();
        assert!(held() > counted().limit / 2);
        assert_eq!(counted().bytes, held());
        // Loading a store drops all entries at once, whatever state they are in.
        for x in 0..50 {
            let _ = sde.run(&Twice, &inputs(x));
        }
        sde.load(MemoryArchiver::new()).unwrap();
        for x in 0..5 {
            sde.run(&Twice, &inputs(x)).unwrap();
        }
        assert_eq!(counted().bytes, held());
        assert!(counted().kept_bytes <= counted().bytes);
    }
}

/// The engine calls code of users in eight places; without `user_code` there, no test notices that a lock is held.
#[cfg(debug_assertions)]
#[test]
fn all_that_calls_code_of_users_says_so() {
    struct Guarded;
    let (sde, inputs) = (Sde::new(), Inputs::new().with("x", 1_u64));
    let observed = Sde::builder().observer(|_: &Event| ()).build().unwrap();
    observed.run(&Twice, &inputs).unwrap();
    let (value, codec) = (ErasedValue::new(1_u64), Codec::of::<u64>());
    let bypassing = || sde.request(&Twice, &inputs).policy(Policy::Bypass).run();
    let calls: [(&str, &dyn Fn()); 8] = [
        ("a body", &|| drop(bypassing())),
        ("an observer", &|| observed.engine().warn(String::new)),
        ("what is told of records", &|| {
            observed.records(|_| ());
        }),
        ("a store", &|| drop(sde.engine().archiver())),
        ("a destructor", &|| drop(ErasedValue::new(1_u64))),
        ("`MemorySize`", &|| _ = SizeOf::flat::<u64>().of(&value)),
        ("`Serialize`", &|| {
            _ = codec.encode(&value, serde_json::value::Serializer);
        }),
        ("`Deserialize`", &|| drop(Json.decode(b"1", &codec))),
    ];
    let mutex = Mutex::new(Guarded);
    for (what, call) in calls {
        call();
        let locked = AssertUnwindSafe(|| {
            let _held = lock(&mutex);
            call();
        });
        let panic = catch_unwind(locked).expect_err(what);
        let said = panic.downcast_ref::<String>().unwrap();
        let expected = format!("{what} is called with locks held");
        assert!(said.contains(&expected), "{said}");
    }
}

/// Found by reading: memory was divided by the ranks of a node, and each rank took all of its cores.
#[test]
fn the_cores_of_a_node_are_divided_by_its_ranks() {
    let threads = |threads: Option<usize>| {
        let groups = ThreadGroup::on_nodes(vec![0, 0, 1]).into_iter();
        let of_rank = |group| {
            let builder = Sde::builder().process_group(group, Json);
            let builder = match threads {
                Some(threads) => builder.threads(threads),
                None => builder,
            };
            builder.build().unwrap().engine().helpers().threads()
        };
        groups.map(of_rank).collect::<Vec<_>>()
    };
    let of = crate::machine::cores_of_one_of;
    assert_eq!(threads(None), [of(2), of(2), of(1)]);
    assert_eq!(
        threads(Some(7)),
        [7; 3],
        "what the user says is for each rank"
    );
}
