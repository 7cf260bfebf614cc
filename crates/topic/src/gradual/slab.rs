//! The slab.

use std::ops::{Index, IndexMut};

use super::GradualList;

#[derive(Debug)]
enum Place<T> {
    Taken(T),
    /// The place that was free before this one, or an index beyond the last.
    Free(usize),
}

/// Elements at places that stay theirs until they are removed; then the places are taken again,
/// the latest first.
///
/// Places are added without moving all others, and kept when they are free.
#[derive(Debug)]
pub struct GradualSlab<T> {
    places: GradualList<Place<T>>,
    /// The latest place that became free, or an index beyond the last.
    free: usize,
    len: usize,
}

impl<T> Default for GradualSlab<T> {
    fn default() -> Self {
        Self { places: GradualList::default(), free: usize::MAX, len: 0 }
    }
}

impl<T> GradualSlab<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All places that were ever taken are below this.
    pub fn places_end(&self) -> usize {
        self.places.len()
    }

    /// The element at a place, if there is one.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        match self.places.get(place)? {
            Place::Taken(element) => Some(element),
            Place::Free(_) => None,
        }
    }

    /// The element at a place, to change.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        match self.places.get_mut(place)? {
            Place::Taken(element) => Some(element),
            Place::Free(_) => None,
        }
    }

    /// All elements with their places, in the order of places.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.places.iter().enumerate().filter_map(|(place, found)| match found {
            Place::Taken(element) => Some((place, element)),
            Place::Free(_) => None,
        })
    }

    /// Adds an element and returns its place.
    pub fn insert(&mut self, element: T) -> usize {
        self.len += 1;
        let place = self.free;
        match self.places.get_mut(place) {
            Some(found) => {
                let before = std::mem::replace(found, Place::Taken(element));
                if let Place::Free(next) = before {
                    self.free = next;
                }
                place
            }
            None => self.places.push(Place::Taken(element)),
        }
    }

    /// Removes and returns the element at a place.
    pub fn remove(&mut self, place: usize) -> Option<T> {
        let found = self.places.get_mut(place)?;
        if let Place::Free(_) = found {
            return None;
        }
        let removed = std::mem::replace(found, Place::Free(self.free));
        self.free = place;
        self.len -= 1;
        match removed {
            Place::Taken(element) => Some(element),
            Place::Free(_) => None,
        }
    }
}

impl<T> Index<usize> for GradualSlab<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        // Invariant: callers know that the place is taken, or look it up with `get`.
        self.get(place).expect("the place is taken")
    }
}

impl<T> IndexMut<usize> for GradualSlab<T> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut T {
        self.get_mut(place).expect("the place is taken")
    }
}
