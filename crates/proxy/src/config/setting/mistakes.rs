//! The mistakes of a configuration, collected: an operator who corrects one wants to know the
//! others.

use super::invalid::Invalid;

/// The most mistakes that are described; more are counted.
pub const MISTAKES_MAX: usize = 20;

/// What is wrong with a configuration, in the order in which it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mistakes {
    described: Vec<Invalid>,
    more: usize,
}

impl Mistakes {
    /// Adds what a check found, unless something is wrong with the same key already.
    pub fn note(&mut self, checked: Result<(), Invalid>) {
        let Err(invalid) = checked else { return };
        let mut keys = self.described.iter().map(|known| &known.key_path);
        if keys.any(|key| *key == invalid.key_path) {
            return;
        }
        match self.described.len() < MISTAKES_MAX {
            true => self.described.push(invalid),
            false => self.more += 1,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.described.is_empty()
    }

    /// The first [`MISTAKES_MAX`] of them.
    #[must_use]
    pub fn described(&self) -> &[Invalid] {
        &self.described
    }

    /// How many there are beside those.
    #[must_use]
    pub const fn more(&self) -> usize {
        self.more
    }

    /// Refuses what has a mistake, for the first one.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the key, the reason and what to do.
    pub fn first(self) -> Result<(), Invalid> {
        self.described.into_iter().next().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_beyond_the_bound_are_counted_and_not_described() {
        let mut mistakes = Mistakes::default();
        assert_eq!(mistakes.clone().first(), Ok(()));
        let mistake = |number: usize| Invalid::new(format!("key{number}"), "bad", "mend it");
        for number in 0..MISTAKES_MAX + 2 {
            mistakes.note(Ok(()));
            mistakes.note(Err(mistake(number)));
            mistakes.note(Err(mistake(0)));
        }
        assert_eq!(mistakes.described().len(), MISTAKES_MAX);
        assert_eq!(mistakes.more(), 2);
        assert_eq!(mistakes.first(), Err(mistake(0)));
    }
}
