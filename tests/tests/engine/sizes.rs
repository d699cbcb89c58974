//! What values take, as they tell it or not.

use sde::archiver::MemoryArchiver;
use sde::{
    App, AppError, AppInfo, DistArray, Distributed, Fingerprint, Handle, Inputs, MemoryBudget,
    MemorySize, ResultMap, ResultSpec, Sde, Value, inputs,
};

const KIB: usize = 1 << 10;

#[sde::app(name = "sizes.field")]
fn field(number: u64, kib: usize) -> Vec<u8> {
    vec![number as u8; kib * KIB]
}

fn bytes(sde: &Sde) -> usize {
    sde.stats().memory.unwrap().bytes
}

fn with(budget: MemoryBudget) -> Sde {
    Sde::builder().memory_budget(budget).build().unwrap()
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Lies(u64);

impl MemorySize for Lies {
    fn memory_size(&self) -> usize {
        match self.0 {
            0 => usize::MAX,
            1 => panic!("it has no size"),
            2 => {
                // It may use the cache.
                let sde = HERE.with_borrow(Clone::clone).unwrap();
                field.call(&sde, 77, 1).unwrap().len()
            }
            _ => 0,
        }
    }
}

thread_local! {
    static HERE: std::cell::RefCell<Option<Sde>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn sizes_that_lie_or_panic_or_call_do_no_harm() {
    #[sde::app(sized)]
    fn lies(number: u64) -> Lies {
        Lies(number)
    }
    let sde = with(MemoryBudget::bytes(500 * KIB));
    HERE.set(Some(sde.clone()));
    for _ in 0..3 {
        for number in 0..20 {
            assert_eq!(lies.call(&sde, number).unwrap().0, number);
            field.call(&sde, number, 10).unwrap();
        }
    }
    HERE.set(None);
    assert!(bytes(&sde) <= 500 * KIB);
    assert!(
        sde.stats().apps["sizes.field"].computed <= 21,
        "one liar threw all out"
    );
}

/// Of what tells no size the encoding is taken, of lists of numbers what they hold.
#[test]
fn what_tells_no_size_counts_with_its_encoding() {
    #[sde::app]
    fn texts(number: u64) -> Vec<String> {
        (0..100).map(|n| format!("{:>1000}", n + number)).collect()
    }
    let sde = with(MemoryBudget::bytes(1000 * KIB));
    let before = bytes(&sde);
    texts.call(&sde, 1).unwrap();
    let counted = bytes(&sde) - before;
    assert!((100_000..110_000).contains(&counted), "{counted}");
}

#[test]
fn a_derived_size_is_what_all_fields_take() {
    #[derive(MemorySize)]
    struct Mesh<T> {
        points: Vec<[f64; 3]>,
        names: Option<Box<str>>,
        of: T,
        #[memory_size(skip)]
        shared: std::rc::Rc<Vec<u8>>,
    }
    #[derive(MemorySize)]
    enum Shape {
        Point,
        Named(String),
        Cells { cells: Vec<Shape> },
    }
    let mesh = Mesh {
        points: vec![[0.0; 3]; 10],
        names: Some("water".into()),
        of: (1_u8, vec![1_u16; 7]),
        shared: std::rc::Rc::new(vec![0; 1000]),
    };
    assert_eq!(mesh.memory_size(), size_of_val(&mesh) + 240 + 5 + 14);
    assert_eq!(mesh.shared.len(), 1000);
    let cells = vec![Shape::Point, Shape::Named("abc".to_owned())];
    let shape = Shape::Cells { cells };
    assert_eq!(shape.memory_size(), 3 * size_of::<Shape>() + 3);
    assert_eq!(Value::new(7_u64).memory_size(), size_of::<usize>() + 8);
}

#[test]
fn a_type_that_holds_its_like_has_a_size() {
    #[derive(MemorySize)]
    struct Tree<T> {
        branches: Vec<Tree<T>>,
        of: T,
    }
    let leaf = |of: u8| Tree {
        branches: Vec::new(),
        of,
    };
    let tree = Tree {
        branches: vec![leaf(1)],
        of: 2_u8,
    };
    assert_eq!(tree.memory_size(), 2 * size_of::<Tree<u8>>());
    assert_eq!(tree.branches[0].of + tree.of, 3);
}

/// What is sparse takes much more than its encoding.
#[derive(serde::Serialize, serde::Deserialize, MemorySize)]
struct Sparse(Vec<Option<u64>>);

#[sde::app(name = "sizes.sparse", sized)]
fn sparse(number: u64) -> Sparse {
    Sparse(vec![None; 4096 + number as usize])
}

/// Two results, of which one is read as a rule.
#[derive(Fingerprint)]
struct Two;

impl App for Two {
    fn info(&self) -> AppInfo {
        let cells = ResultSpec::new::<Sparse>("sparse").sized::<Sparse>();
        let number = ResultSpec::new::<u64>("number");
        AppInfo::new("sizes.Two", "1").result(cells).result(number)
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let number = *inputs.get::<u64>("number")?;
        let cells = Sparse(vec![None; 4096]);
        Ok(ResultMap::new()
            .with("sparse", cells)
            .with("number", number))
    }
}

/// It counted with the length of its encoding until it was asked for again, and for ever if one of its results was not.
#[test]
fn what_is_read_from_a_store_counts_with_what_it_takes() {
    let store = MemoryArchiver::new();
    let open = |budget| {
        let builder = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest);
        builder.memory_budget(budget).build().unwrap()
    };
    let large = || MemoryBudget::bytes(1 << 30).only_saved();
    let all = |sde: &Sde| {
        for number in 0..30 {
            sparse.call(sde, number).unwrap();
            let results = sde.run(&Two, &inputs! { number: number }).unwrap();
            results.get::<Sparse>("sparse").unwrap();
        }
        // It is looked at when something comes.
        for number in 100..110 {
            sparse.call(sde, number).unwrap();
        }
        bytes(sde)
    };
    let sde = open(large());
    let computed = all(&sde);
    sde.finish().unwrap();
    let read = all(&open(large()));
    assert!(read > computed * 3 / 4, "{read} of {computed}");
    // Hits make room too.
    let sde = open(MemoryBudget::bytes(computed / 2).only_saved());
    all(&sde);
    all(&sde);
    assert!(bytes(&sde) <= computed / 2, "{} of {computed}", bytes(&sde));
    assert_eq!(sde.stats().total.computed, 0);
}

/// A part counts like anything else that can be saved, or as it says.
#[test]
fn parts_of_distributed_values_count() {
    const LENGTH: usize = 10_000;
    #[derive(Distributed, MemorySize, serde::Serialize, serde::Deserialize)]
    struct Fields {
        one: DistArray<f64>,
        other: DistArray<f64>,
    }
    fn fields(sde: &Handle) -> Result<Fields, sde::Error> {
        let one = DistArray::from_fn(sde, &[LENGTH], |at| at[0] as f64)?;
        let other = one.map(|x| -x);
        Ok(Fields { one, other })
    }
    #[sde::app(distributed)]
    fn encoded(sde: &Handle) -> Result<Fields, sde::Error> {
        fields(sde)
    }
    #[sde::app(distributed, sized)]
    fn told(sde: &Handle) -> Result<Fields, sde::Error> {
        fields(sde)
    }
    let sde = with(MemoryBudget::bytes(1 << 30));
    encoded.call(&sde).unwrap();
    assert!(bytes(&sde) > 2 * 8 * LENGTH);
    told.call(&sde).unwrap();
    assert!(bytes(&sde) > 4 * 8 * LENGTH);
}

/// A thread lists an entry again while the one that published it learns what it takes: the sums underflowed.
#[test]
fn what_becomes_known_while_it_is_counted_is_counted_once() {
    let sde = with(MemoryBudget::bytes(1).forget_records());
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let sde = &sde;
            scope.spawn(move || {
                for number in 0..4000 {
                    field.call(sde, 4 * number + thread, 16).unwrap();
                }
            });
        }
    });
    field.call(&sde, u64::MAX, 1).unwrap();
    let used = sde.stats().memory.unwrap();
    assert!(used.bytes < 4 * KIB, "{used:?}");
}

/// Each run of an app that is made anew has its settings for itself.
#[test]
fn settings_count() {
    #[derive(Fingerprint)]
    struct Titled(String);
    impl App for Titled {
        fn info(&self) -> AppInfo {
            AppInfo::new("budget.Titled", "1").result(ResultSpec::new::<u64>("length"))
        }
        fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
            Ok(ResultMap::new().with("length", self.0.len() as u64))
        }
    }
    let counted = |length: usize| {
        let sde = with(MemoryBudget::bytes(1 << 30));
        for number in 0..100 {
            let title = Titled(format!("{number:0length$}"));
            sde.run(&title, &inputs! {}).unwrap();
        }
        sde.stats().memory.unwrap().bytes
    };
    assert!(counted(60) > counted(10) + 100 * 40);
}
