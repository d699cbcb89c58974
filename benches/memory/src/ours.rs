//! The engine's eviction list, used as the engine does.

use std::sync::atomic::AtomicU64;

use sde::__private::{Candidate, Eviction, Uses};
use sde::EvictionOrder;

use super::peers::Cache;
use super::traces::Item;

pub struct Ours {
    eviction: Eviction,
    budget: u64,
    bytes: u64,
    places: Vec<Place>,
    free: Vec<u32>,
    /// By item.
    place_of: Vec<Option<u32>>,
}

struct Place {
    number: u32,
    item: Item,
    uses: AtomicU64,
}

impl Ours {
    pub fn new(budget: u64, items: usize) -> Self {
        Self {
            eviction: Eviction::new(EvictionOrder::Worth, (budget / 64) as usize),
            budget,
            bytes: 0,
            places: Vec::new(),
            free: Vec::new(),
            place_of: vec![None; items],
        }
    }
}

/// The engine has digests for keys.
fn key(number: u32) -> u64 {
    super::random::Random::new(u64::from(number)).next()
}

fn candidate(places: &[Place], at: u32) -> Candidate {
    let place = &places[at as usize];
    Candidate {
        class: 0,
        density: place.item.cost as f64 / place.item.bytes as f64,
        uses: Uses::of(&place.uses),
    }
}

impl Cache for Ours {
    fn get(&mut self, number: u32, _: Item) -> bool {
        let place = self.place_of[number as usize];
        if let Some(at) = place {
            Uses::note(&self.places[at as usize].uses, self.eviction.tick);
        }
        place.is_some()
    }

    fn put(&mut self, number: u32, item: Item) {
        let uses = AtomicU64::new(0);
        self.eviction.came(key(number), &uses);
        let place = Place { number, item, uses };
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = place;
                at
            }
            None => {
                self.places.push(place);
                self.places.len() as u32 - 1
            }
        };
        self.place_of[number as usize] = Some(at);
        self.bytes += item.bytes;
        self.eviction.list(at, candidate(&self.places, at));
        while self.bytes > self.budget
            && let Some(at) = self.eviction.victim(|at| candidate(&self.places, at))
        {
            let place = &self.places[at as usize];
            self.eviction.order.remove(at);
            self.eviction.left(key(place.number), Uses::of(&place.uses));
            self.bytes -= place.item.bytes;
            self.place_of[place.number as usize] = None;
            self.free.push(at);
        }
    }
}
