//! A map of recently read results, which is cheaper to read than the cache itself.
//!
//! The cache counts and orders every read for eviction, which takes longer than the read
//! itself. This map counts nothing: when it is full, it is cleared and refilled from the cache.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{PoisonError, RwLock},
};

/// A map that is cleared when it is full.
pub(super) struct RecentEntries<K, T> {
    entries: RwLock<HashMap<K, T>>,
    capacity: usize,
}

// === impl RecentEntries ===

impl<K: Eq + Hash, T: Clone> RecentEntries<K, T> {
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
        let recent = RecentEntries::new(2);
        for key in 0..3 {
            recent.put(key, key);
        }
        assert_eq!((recent.get(&0), recent.get(&2)), (None, Some(2)));
        recent.put(2, 7);
        assert_eq!(recent.get(&2), Some(7));
        recent.remove(&2);
        assert_eq!(recent.get(&2), None);
    }
}
