//! What every [`ProcessGroup`] must do, whatever implements it.
//!
//! Each function is called by all ranks of a group, and panics on the rank that sees a fault.

use std::time::Duration;

use sde::ranks::{GroupError, ProcessGroup};

/// Long enough to be no reason for a report.
const PATIENCE: Duration = Duration::from_secs(600);

/// Calls every operation, on a group and on the groups it is split into, down to single ranks.
/// The group can be used afterwards.
///
/// # Panics
/// If a rank gets something else than the contract says.
pub fn check_contract(group: &dyn ProcessGroup) {
    check_operations(group);
    check_split(group);
    check_operations(group);
}

fn check_operations(group: &dyn ProcessGroup) {
    check_nodes(group);
    for length in [0, 1, 70, 73, 5000] {
        check_meet(group, length);
    }
    check_gather(group, |_| 0);
    check_gather(group, |rank| rank * 7 % 5);
    check_gather(group, |rank| 10_000 * (rank + 1));
    check_exchange(group, |_, _| 0);
    check_exchange(group, |from, to| (3 * from + 5 * to) % 4);
    check_exchange(group, |from, to| 1000 * (1 + from) + to);
    check_lengths(group);
    check_notes(group);
}

fn check_nodes(group: &dyn ProcessGroup) {
    let nodes = group.nodes();
    assert!(group.rank() < group.size());
    assert_eq!(nodes.len(), group.size());
    let mut next = 0;
    for node in nodes {
        assert!(
            node <= next,
            "nodes are numbered in the order of their lowest rank"
        );
        next = next.max(node + 1);
    }
}

/// What a rank has for another.
fn bytes(from: usize, to: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| (from * 31 + to * 17 + i) as u8)
        .collect()
}

/// What `rank` of a group of `size` gets from the others.
fn expected(size: usize, to: impl Fn(usize) -> usize, count: impl Fn(usize) -> usize) -> Vec<u8> {
    (0..size)
        .flat_map(|from| bytes(from, to(from), count(from)))
        .collect()
}

fn check_meet(group: &dyn ProcessGroup, length: usize) {
    let message = bytes(group.rank(), 0, length);
    let met = group.meet(&message, PATIENCE, &mut |_| {});
    assert_eq!(met, Ok(expected(group.size(), |_| 0, |_| length)));
}

fn check_gather(group: &dyn ProcessGroup, count: impl Fn(usize) -> usize) {
    let counts: Vec<usize> = (0..group.size()).map(&count).collect();
    let mine = bytes(group.rank(), 0, counts[group.rank()]);
    let mut all = vec![255; counts.iter().sum()];
    assert_eq!(group.all_gather(&mine, &counts, &mut all), Ok(()));
    assert!(
        all == expected(group.size(), |_| 0, count),
        "gathered {counts:?}"
    );
}

/// Each rank sends each, itself too, two messages, of which the second is a byte longer; and expects them in another
/// order of ranks.
fn check_exchange(group: &dyn ProcessGroup, count: impl Fn(usize, usize) -> usize) {
    let (rank, size) = (group.rank(), group.size());
    let pairs = || (0..2).flat_map(|more| (0..size).map(move |other| (other, more)));
    let of = |from: usize, to: usize, more: usize| bytes(from, to, count(from, to) + more);
    let sent: Vec<_> = pairs().map(|(to, more)| (to, of(rank, to, more))).collect();
    let right: Vec<_> = pairs()
        .map(|(from, more)| (size - 1 - from, of(size - 1 - from, rank, more)))
        .collect();
    let mut received: Vec<_> = right
        .iter()
        .map(|(from, bytes)| (*from, vec![255; bytes.len()]))
        .collect();
    let send: Vec<_> = sent.iter().map(|(to, bytes)| (*to, &bytes[..])).collect();
    let mut receive: Vec<_> = received
        .iter_mut()
        .map(|(from, bytes)| (*from, &mut bytes[..]))
        .collect();
    assert_eq!(group.exchange(&send, &mut receive), Ok(()));
    assert!(received == right, "exchanged on {size} ranks");
}

/// The last rank has a byte more than it should.
fn check_lengths(group: &dyn ProcessGroup) {
    let last = group.size() - 1;
    let mine = vec![1; if group.rank() == last { 3 } else { 2 }];
    let mut all = vec![0; 2 * group.size()];
    let wrong = Err(GroupError::length(last, 3, 2));
    let gathered = group.all_gather(&mine, &vec![2; group.size()], &mut all);
    assert_eq!(gathered, wrong);
    // It has them for rank 0 here. A rank that gets what it expects may be told, or not.
    let mut places = vec![[0; 2]; group.size()];
    let mut receive: Vec<_> = places
        .iter_mut()
        .map(|place| &mut place[..])
        .enumerate()
        .collect();
    receive.truncate(if group.rank() == 0 { group.size() } else { 0 });
    let exchanged = group.exchange(&[(0, &mine)], &mut receive);
    if group.rank() == 0 {
        assert!(exchanged.is_err());
    }
}

/// Each rank says two things to each, itself too, unless it is alone.
fn check_notes(group: &dyn ProcessGroup) {
    let (rank, size) = (group.rank(), group.size());
    if size == 1 {
        return;
    }
    for to in 0..size {
        group.post(to, [255; 16]).unwrap();
        group.post(to, [to as u8; 16]).unwrap();
    }
    let mut told = vec![Vec::new(); size];
    while told.iter().map(Vec::len).sum::<usize>() < 2 * size {
        match group.poll().expect("no rank has left") {
            Some((from, note)) => told[from].push(note),
            None => std::thread::yield_now(),
        }
    }
    assert_eq!(told, vec![[[255; 16], [rank as u8; 16]]; size]);
    // None of the next are taken for these.
    check_meet(group, 1);
}

fn check_split(group: &dyn ProcessGroup) {
    let (rank, size) = (group.rank(), group.size());
    // Nobody.
    assert!(group.split(None, 0).is_ok_and(|none| none.is_none()));
    // All, backwards, by keys that are not C ints.
    let key = i64::MAX - (1 << 40) * rank as i64;
    check_members(
        group,
        Some(u32::MAX),
        key,
        &(0..size).rev().collect::<Vec<_>>(),
    );
    // All with one key: in the order of ranks.
    check_members(group, Some(0), i64::MIN, &(0..size).collect::<Vec<_>>());
    // Odd and even ranks, without the last, down to single ranks.
    let color = (rank + 1 < size).then_some(rank as u32 % 2);
    let same = (0..size.saturating_sub(1)).filter(|other| other % 2 == rank % 2);
    check_members(group, color, 0, &same.collect::<Vec<_>>());
}

fn check_members(group: &dyn ProcessGroup, color: Option<u32>, key: i64, members: &[usize]) {
    let part = group.split(color, key).expect("no rank has left");
    assert_eq!(part.is_some(), color.is_some());
    let Some(part) = part else {
        return;
    };
    assert_eq!(part.size(), members.len());
    assert_eq!(members[part.rank()], group.rank());
    let met = part.meet(&(group.rank() as u64).to_le_bytes(), PATIENCE, &mut |_| {});
    let right: Vec<u8> = members
        .iter()
        .flat_map(|m| (*m as u64).to_le_bytes())
        .collect();
    assert_eq!(met, Ok(right));
    check_operations(&*part);
    if part.size() < group.size() {
        check_split(&*part);
    }
}

/// The last of two ranks or more comes late to a meeting: not before rank 0 has missed it, and
/// nobody else.
///
/// # Panics
/// If a rank gets something else than the contract says.
pub fn check_late(group: &dyn ProcessGroup) {
    let (rank, last) = (group.rank(), group.size() - 1);
    // By which rank 0 lets the last one come.
    let gate = group.split((rank == 0 || rank == last).then_some(0), 0);
    let gate = gate.expect("no rank has left");
    let pass = || {
        let gate = gate.as_ref().expect("rank 0 and the last have a gate");
        gate.meet(&[], PATIENCE, &mut |_| {})
            .expect("both come to the gate");
    };
    if rank == last {
        pass();
    }
    let mut missed = false;
    let met = group.meet(&[7], Duration::from_millis(20), &mut |late| {
        assert!(
            late.contains(&last) || missed,
            "{late:?} are late, and not {last}"
        );
        if rank == 0 && late == [last] && !missed {
            missed = true;
            pass();
        }
    });
    assert_eq!(met, Ok(vec![7; group.size()]));
    assert_eq!(missed, rank == 0);
}

/// The last of two ranks or more leaves; the others go on until they need it. The group is
/// of no use afterwards.
///
/// # Panics
/// If a rank gets something else than the contract says.
pub fn check_leave(group: &dyn ProcessGroup) {
    let last = group.size() - 1;
    check_meet(group, 1);
    if group.rank() == last {
        group.leave();
        group.leave();
        return;
    }
    let left = GroupError::left(last);
    let met = group.meet(&[], PATIENCE, &mut |_| {});
    assert_eq!(met, Err(left.clone()));
    let again = group.all_gather(&[1], &vec![1; group.size()], &mut vec![0; group.size()]);
    assert_eq!(again, Err(left.clone()));
    assert_eq!(group.exchange(&[], &mut []), Err(left.clone()));
    // Others may have gone on to their end.
    assert!(matches!(group.poll(), Err(GroupError::Left { .. })));
    assert_eq!(group.split(Some(0), 0).err(), Some(left));
}
