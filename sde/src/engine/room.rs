//! Keeping apps within the memory that they may take.

use std::sync::Arc;

use super::Engine;
use crate::cache::{AppCache, Count};
use crate::event::Event;

impl Engine {
    /// Makes room if the values of an app have passed its limit.
    pub(super) fn keep_within_limit(&self, cache: &AppCache) {
        if let Some(keep) = cache.room.is_over() {
            self.make_room_in(cache, keep);
        }
    }

    /// The same for the app of a name; gives how many bytes were let go.
    pub(super) fn make_room_for(&self, app: &str, keep: usize) -> usize {
        let of_name = self.caches.all().filter(|cache| &*cache.name == app);
        of_name.map(|cache| self.make_room_in(cache, keep)).sum()
    }

    fn make_room_in(&self, cache: &AppCache, keep: usize) -> usize {
        let evicted = cache.make_room(keep);
        if evicted.is_empty() {
            return 0;
        }
        // Whoever found one of them by its last value does not find it there any more.
        self.raise_result_epoch();
        cache.counters.add(Count::Evicted, evicted.len() as u64);
        let bytes = evicted.iter().map(|entry| entry.bytes()).sum();
        for entry in &evicted {
            self.tell(|| Event::Evicted {
                app: Arc::clone(&entry.record.app),
                key: entry.record.key,
            });
        }
        bytes
    }
}
