//! Connections of one user at once, over all shards.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts the connections of each user. A lock is held for one look at a map.
#[derive(Debug, Default)]
pub(crate) struct UserPlaces(Mutex<HashMap<Arc<str>, u32>>);

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct UserPlace {
    user: Arc<str>,
    places: Arc<UserPlaces>,
}

impl UserPlaces {
    /// A place for a connection of a user, if it has fewer than the maximum.
    pub(crate) fn try_take(
        self: &Arc<Self>,
        user: &Arc<str>,
        max: Option<u32>,
    ) -> Option<UserPlace> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(user).copied().unwrap_or(0);
        if max.is_some_and(|max| count >= max) {
            return None;
        }
        counts.insert(Arc::clone(user), count + 1);
        Some(UserPlace { user: Arc::clone(user), places: Arc::clone(self) })
    }
}

impl Drop for UserPlace {
    fn drop(&mut self) {
        let mut counts = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(&self.user) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.user)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_user_and_given_back() {
        let places = Arc::new(UserPlaces::default());
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        let first = places.try_take(&ann, Some(2));
        let second = places.try_take(&ann, Some(2));
        assert!(first.is_some() && second.is_some());
        assert!(places.try_take(&ann, Some(2)).is_none());
        assert!(places.try_take(&bob, Some(1)).is_some());
        drop(first);
        assert!(places.try_take(&ann, Some(2)).is_some());
        drop(second);
        assert!(places.0.lock().unwrap().is_empty());
    }
}
