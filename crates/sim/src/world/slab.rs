//! Things that come and go, by number; a place is used again with the memory that its last owner
//! had.

/// Values by number.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<T>,
    unused: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            unused: Vec::new(),
        }
    }
}

impl<T: Default> Slab<T> {
    /// A place; what is there is a default, or what the last owner left.
    pub(crate) fn reuse(&mut self) -> u32 {
        self.unused.pop().unwrap_or_else(|| {
            self.places.push(T::default());
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

impl<T> Slab<T> {
    /// A place for `value`.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(id) = self.unused.pop() {
            self.places[id as usize] = value;
            return id;
        }
        self.places.push(value);
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn at(&self, id: u32) -> &T {
        &self.places[id as usize]
    }

    pub(crate) fn at_mut(&mut self, id: u32) -> &mut T {
        &mut self.places[id as usize]
    }

    /// The place may be used again.
    pub(crate) fn remove(&mut self, id: u32) {
        debug_assert!(
            !self.unused.contains(&id) || self.unused.len() > 64,
            "removed twice"
        );
        self.unused.push(id);
    }

    /// All places, taken or not.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.places.iter()
    }

    /// How many places are taken.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.unused.len()
    }
}
