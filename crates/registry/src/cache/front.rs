//! A map of the results in use, which is cheap to read.
//!
//! The cache behind it counts and orders every read for eviction, which takes longer than the read
//! itself. This map counts nothing: when it is full, it is cleared and refilled from the cache.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{PoisonError, RwLock},
};

pub(super) struct Front<K, T> {
    entries: RwLock<HashMap<K, T>>,
    capacity: usize,
}

// === impl Front ===

impl<K: Eq + Hash, T: Clone> Front<K, T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            entries: RwLock::default(),
            capacity,
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<T> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(key).cloned()
    }

    pub(super) fn put(&self, key: K, entry: T) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.capacity && !entries.contains_key(&key) {
            entries.clear();
        }
        entries.insert(key, entry);
    }

    pub(super) fn remove(&self, key: &K) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_holds_more_than_its_capacity() {
        let front = Front::new(2);
        for key in 0..3 {
            front.put(key, key);
        }
        assert_eq!((front.get(&0), front.get(&2)), (None, Some(2)));
        front.put(2, 7);
        assert_eq!(front.get(&2), Some(7));
        front.remove(&2);
        assert_eq!(front.get(&2), None);
    }
}
