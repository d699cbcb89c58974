//! What the supervisor does from the program's start until nothing of it is left.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use super::{END, ENDED, ENDING, LEFT, MESSAGE, SETTLE, Seat, system};

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Phase {
    Running,
    /// The program has ended by itself; what is left has until the deadline to do so too.
    Settling,
    /// TERM was sent; KILL follows at the deadline.
    Terminating,
    Killing,
}

pub(super) struct Supervisor {
    program: pid_t,
    parent: pid_t,
    line: RawFd,
    grace: Duration,
    /// Whether the program ended and was waited for. Its number may be another's then.
    ended: bool,
    phase: Phase,
    deadline: Instant,
    /// Who got TERM (a group by its negative number): to some programs a second one means to hurry. What
    /// finds no room here gets KILL only.
    told: [pid_t; 256],
    told_count: usize,
}

impl Supervisor {
    pub(super) fn new(seat: &Seat, program: pid_t) -> Self {
        Self {
            program,
            parent: seat.parent,
            line: system::keep_two(seat.line, seat.lock),
            grace: seat.grace,
            ended: false,
            phase: Phase::Running,
            deadline: Instant::now(),
            told: [0; 256],
            told_count: 0,
        }
    }

    pub(super) fn run(mut self) -> ! {
        system::release_memory();
        while self.reap() {
            self.take_orders();
            let all_seen = self.act();
            if !all_seen
                && self.phase == Phase::Killing
                && self.deadline.elapsed() > Duration::from_secs(1)
            {
                // Who is left can't be found from here. The parent looks for strays at this status.
                system::exit(1);
            }
            // No order changes anything once the end has begun, and a line that is closed would not wait.
            let line = if self.phase < Phase::Terminating {
                self.line
            } else {
                -1
            };
            system::sleep(
                line,
                if self.phase == Phase::Running {
                    None
                } else {
                    Some(20)
                },
            );
        }
        system::exit(0)
    }

    /// Waits for all who ended; whether others remain.
    fn reap(&mut self) -> bool {
        while let Some((pid, status)) = system::reap() {
            if pid == self.program {
                self.ended = true;
                self.tell(ENDED, status, [0; 16]);
            }
        }
        system::others_remain(self.program)
    }

    fn take_orders(&mut self) {
        if self.phase >= Phase::Terminating {
            return;
        }
        while let Some(order) = system::receive(self.line) {
            if order == END {
                return self.begin_end();
            }
            // The program was not waited for yet, so its number is its own.
            if !self.ended {
                system::signal(-self.program, c_int::from(order));
                system::signal(-self.program, libc::SIGCONT);
            }
        }
        if system::parent() != self.parent {
            self.begin_end();
        }
    }

    fn begin_end(&mut self) {
        self.enter(Phase::Terminating, self.grace);
        self.tell(ENDING, 0, [0; 16]);
    }

    fn enter(&mut self, phase: Phase, lasts: Duration) {
        self.phase = phase;
        self.deadline = Instant::now() + lasts;
    }

    /// Goes on to the next phase where it is time, and does what the phase asks; whether every child was seen.
    fn act(&mut self) -> bool {
        let due = Instant::now() >= self.deadline;
        match self.phase {
            Phase::Running if self.ended => self.enter(Phase::Settling, SETTLE),
            Phase::Settling if due => {
                system::each_child(self.program, |child| {
                    if child > 0 {
                        self.tell(LEFT, child, system::name(child));
                    }
                });
                self.begin_end();
            }
            Phase::Terminating if due => self.enter(Phase::Killing, Duration::ZERO),
            _ => {}
        }
        match self.phase {
            Phase::Running | Phase::Settling => true,
            Phase::Terminating => system::each_child(self.program, |child| self.terminate(child)),
            Phase::Killing => {
                system::each_child(self.program, |child| system::signal(child, libc::SIGKILL))
            }
        }
    }

    /// Sends TERM once: by the group where it is the program's, as a batch system does, else to the child.
    fn terminate(&mut self, child: pid_t) {
        let target = if system::group_of(child) == self.program {
            -self.program
        } else {
            child
        };
        if self.told[..self.told_count].contains(&target) || self.told_count == self.told.len() {
            return;
        }
        self.told[self.told_count] = target;
        self.told_count += 1;
        system::signal(target, libc::SIGTERM);
        // What is stopped gets it when it goes on.
        system::signal(target, libc::SIGCONT);
    }

    fn tell(&self, kind: i32, number: i32, name: [u8; 16]) {
        let mut message = [0; MESSAGE];
        message[..4].copy_from_slice(&kind.to_ne_bytes());
        message[4..8].copy_from_slice(&number.to_ne_bytes());
        message[8..].copy_from_slice(&name);
        system::send(self.line, &message);
    }
}
