//! What ranks do.

use std::time::Duration;

use crate::{engine, panics};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{Communicator, Destination, Source};
use sde::ranks::{GroupError, ProcessGroup};
use sde::{Event, SavePolicy, Sde};
use sde_mpi::{MpiGroup, Session, StartError};
use sde_tests::ranks::Rank;
use sde_tests::{Counter, Lying, check_contract, check_late, check_leave, until};

/// The name of the signal that a rank gets.
pub const SIGNAL: &str = "SDE_TEST_SIGNAL";

pub fn run(case: &str) {
    match case {
        "contract" => contract(),
        "pieces" => pieces(),
        "late" => check_late(&session().world()),
        "leave" => check_leave(&session().world()),
        "mixed" => mixed(),
        "communicator" => communicator(),
        "elsewhere" => elsewhere(),
        "many" => many(),
        "left out" => left_out(),
        "large" => large(),
        "panic" => panic(),
        "survived" => survived(),
        "early" => early(),
        "killed" => last_ends(|| kill("9")),
        "aborts" => last_ends(|| std::process::abort()),
        "exit" => last_ends(|| std::process::exit(0)),
        "twice" => twice(),
        "slow" => slow(),
        "signal" => signal(),
        "engine" => engine::run(),
        "save" => engine::save(),
        "load" => engine::load(),
        "journey" => panics::run(),
        _ => panic!("no case is called {case}"),
    }
}

pub fn session() -> Session {
    Session::start().unwrap()
}

fn meet(group: &dyn ProcessGroup) -> Result<Vec<u8>, GroupError> {
    group.meet(&[1], Duration::MAX, &mut |_| {})
}

fn is_last(group: &dyn ProcessGroup) -> bool {
    group.rank() + 1 == group.size()
}

fn contract() {
    let session = session();
    let world = session.world();
    let got = (world.rank(), world.size());
    assert_eq!(got, (session.rank(), session.size()));
    check_contract(&world);
    assert_eq!(world.nodes(), vec![0; world.size()], "all on this machine");
}

fn pieces() {
    let session = session();
    session.set_piece(997);
    check_contract(&session.world());
    // Less than there are ranks.
    session.set_piece(3);
    let world = session.world();
    let counts: Vec<usize> = (0..world.size()).collect();
    let mut all = vec![255; counts.iter().sum()];
    let mine = vec![world.rank() as u8; world.rank()];
    world.all_gather(&mine, &counts, &mut all).unwrap();
    let right: Vec<u8> = counts.iter().flat_map(|n| vec![*n as u8; *n]).collect();
    assert_eq!(all, right);
}

/// The same error on all ranks, and the group can be used further.
fn mixed() {
    let session = session();
    let world = session.world();
    let last = world.size() - 1;
    let said = if is_last(&world) {
        world.split(None, 0).map(|_| ())
    } else {
        meet(&world).map(|_| ())
    };
    let text = format!("{:#}", said.unwrap_err());
    let right = format!("rank {last} called split, and rank 0 meet; ");
    assert!(text.starts_with(&right), "{text}");
    let longer = vec![1; 5000 * world.rank()];
    let length = GroupError::length(1, 5000, 0);
    assert_eq!(world.meet(&longer, Duration::MAX, &mut |_| {}), Err(length));
    let count = world.rank();
    let counts = vec![count; world.size()];
    let different = world.all_gather(&vec![0; count], &counts, &mut vec![0; count * world.size()]);
    assert!(
        matches!(different, Err(GroupError::Other(_))),
        "{different:?}"
    );
    // Rank 0 has a byte for itself that it does not expect: all are told.
    let bytes: &[(usize, &[u8])] = &[(0, &[0])];
    let exchanged = world.exchange(&bytes[..usize::from(world.rank() == 0)], &mut []);
    assert!(
        matches!(exchanged, Err(GroupError::Other(_))),
        "{exchanged:?}"
    );
    check_contract(&world);
}

fn communicator() {
    let session = session();
    let world = SimpleCommunicator::world();
    let color = Color::with_value(world.rank() % 2);
    let own = world.split_by_color_with_key(color, -world.rank()).unwrap();
    // Messages of the user's that nobody has taken yet.
    let next = own.process_at_rank((own.rank() + 1) % own.size());
    let sent = own.rank();
    mpi::request::scope(|scope| {
        let request = next.immediate_send(scope, &sent);
        let group = MpiGroup::from_communicator(&own).unwrap();
        let got = (group.rank(), group.size());
        assert_eq!(got, (own.rank() as usize, own.size() as usize));
        check_contract(&group);
        let previous = own.process_at_rank((own.rank() + own.size() - 1) % own.size());
        let (got, _) = previous.receive::<i32>();
        assert_eq!(got, previous.rank());
        request.wait();
    });
    drop(own);
    check_contract(&session.world());
}

fn elsewhere() {
    let session = session();
    let (world, other) = (session.world(), session.world());
    let other_thread = std::thread::scope(|scope| scope.spawn(|| meet(&world)).join().unwrap());
    assert!(
        matches!(other_thread, Err(GroupError::Other(_))),
        "{other_thread:?}"
    );
    // Dropped there, it is left, and freed here.
    std::thread::scope(|scope| {
        if is_last(&world) {
            scope.spawn(move || drop(other));
        } else if world.size() > 1 {
            let rank = world.size() - 1;
            assert_eq!(meet(&other), Err(GroupError::left(rank)));
        }
        meet(&world).unwrap();
    });
    meet(&world).unwrap();
    drop(session);
    assert!(matches!(meet(&world), Err(GroupError::Other(_))));
    world.leave();
}

/// MPICH has some two thousand of them.
fn many() {
    let session = session();
    let world = session.world();
    for round in 0..5000 {
        let part = world.split(Some(round), 0).unwrap().unwrap();
        assert_eq!(part.size(), world.size());
    }
    check_contract(&world);
}

/// The last rank enters a round that the others have left out; these go on with groups that it is not in.
fn left_out() {
    let session = session();
    let world = session.world();
    let is_last = is_last(&world);
    let whole = world.split(Some(0), 0).unwrap().unwrap();
    let others = world.split(Some(u32::from(is_last)), 0).unwrap().unwrap();
    let whole = is_last.then_some(whole);
    meet(&world).unwrap();
    if let Some(whole) = whole {
        assert!(matches!(meet(&*whole), Err(GroupError::Left { .. })));
    }
    meet(&world).unwrap();
    let alone: Vec<_> = (0..20)
        .map(|_| {
            others
                .split(Some(others.rank() as u32), 0)
                .unwrap()
                .unwrap()
        })
        .collect();
    assert!(alone.iter().all(|one| meet(&**one).is_ok()));
    meet(&world).unwrap();
}

fn large() {
    const PART: usize = (1 << 30) + (100 << 20) + 7;
    let session = session();
    let world = session.world();
    let mine: Vec<u8> = (0..PART).map(|i| (i / 4096 + world.rank()) as u8).collect();
    let right = |all: &[u8]| {
        let mut parts = all.chunks_exact(PART).enumerate();
        parts.all(|(rank, part)| {
            let mut bytes = part.iter().enumerate();
            bytes.all(|(i, byte)| *byte == (i / 4096 + rank) as u8)
        })
    };
    let mut all = vec![0; 2 * PART];
    world.all_gather(&mine, &[PART; 2], &mut all).unwrap();
    assert!(right(&all));
    all.fill(0);
    let (zero, one) = all.split_at_mut(PART);
    let both = [(0, &mine[..]), (1, &mine[..])];
    world.exchange(&both, &mut [(0, zero), (1, one)]).unwrap();
    assert!(right(&all));
}

fn panic() {
    let session = session();
    let world = session.world();
    assert!(!is_last(&world), "no way on");
    // The others wait for ever.
    while meet(&world).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn survived() {
    let session = session();
    let world = session.world();
    let thread = std::thread::spawn(|| panic!("on another thread"));
    assert!(thread.join().is_err());
    assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
    check_contract(&world);
}

fn early() {
    let session = session();
    let world = session.world();
    if is_last(&world) {
        return;
    }
    if let Err(error) = meet(&world) {
        // What a program does that returns the error from `main`.
        drop(world);
        drop(session);
        eprintln!("Error: {error:#}");
        std::process::exit(1);
    }
}

/// Sends this process a signal.
fn kill(signal: &str) {
    let own = std::process::id().to_string();
    let _ = std::process::Command::new("kill")
        .args([&format!("-{signal}"), &own])
        .status();
}

/// The last rank ends like this while the others wait for it.
fn last_ends(how: impl FnOnce()) {
    let session = session();
    let world = session.world();
    meet(&world).unwrap();
    if is_last(&world) {
        how();
    }
    let _ = meet(&world);
    panic!("nobody comes here");
}

fn twice() {
    let session = session();
    assert_eq!(Session::start().err(), Some(StartError::Started));
    drop(session);
    assert_eq!(Session::start().err(), Some(StartError::Ended));
}

fn slow() {
    let session = session();
    if session.rank() == 1 {
        std::thread::sleep(Duration::from_secs(13));
    }
}

#[sde::app(name = "mpi.cases.square")]
fn square(x: u64) -> u64 {
    x * x
}

fn signal() {
    let session = session();
    let saved = Counter::new();
    let observer = move |event: &Event| {
        if let Event::Saved { .. } = event {
            println!("saved");
            saved.add();
        }
    };
    let builder = Sde::builder()
        .store(Lying::new())
        .save(SavePolicy::OnRequest)
        .observer(observer);
    let builder = builder.save(SavePolicy::OnRequest).checkpoint_on_signals();
    let sde = Rank::of(session.world()).join(builder).build().unwrap();
    square.call(&sde, 3).unwrap();
    let name = std::env::var(SIGNAL).unwrap();
    kill(&name);
    saved.reach(1);
    until("the signal ends this process", || name == "USR1");
    sde.finish().unwrap();
}
