//! All vectors there are.

use crate::load::{LoadError, read};
use crate::vector::{Runner, Vector};
use std::collections::BTreeMap;
use std::path::Path;

/// The folder with the vector files.
#[must_use]
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Vectors by file.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    files: BTreeMap<String, Vec<Vector>>,
}

impl Collection {
    /// Reads every `*.toml` of `folder` but the crate's manifest.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong: a file that cannot be read or is no file of vectors, an id
    /// used twice, a vector that no runner can run.
    pub fn load(folder: &Path) -> Result<Self, LoadError> {
        let mut collection = Self::default();
        for name in names(folder)? {
            let text = std::fs::read_to_string(folder.join(&name))
                .map_err(|cause| whole(&name, cause.to_string()))?;
            let vectors = read(&name, &text)?;
            collection.files.insert(name, vectors);
        }
        collection.check()?;
        Ok(collection)
    }

    /// The files' names, in order.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// All vectors, file by file, in the order they are written in.
    pub fn vectors(&self) -> impl Iterator<Item = &Vector> {
        self.files.values().flatten()
    }

    fn check(&self) -> Result<(), LoadError> {
        let mut places: BTreeMap<&str, &str> = BTreeMap::new();
        for (file, vector) in self
            .files
            .iter()
            .flat_map(|(file, vectors)| vectors.iter().map(move |vector| (file, vector)))
        {
            let id = &vector.id;
            if let Some(place) = places.insert(id, &vector.place) {
                return Err(whole(file, format!("`{id}` is at {place} as well")));
            }
            if Runner::ALL
                .iter()
                .all(|runner| vector.unmet(*runner).is_some())
            {
                return Err(whole(
                    file,
                    format!("`{id}` needs more than any runner has"),
                ));
            }
        }
        Ok(())
    }
}

fn names(folder: &Path) -> Result<Vec<String>, LoadError> {
    let failed = |cause: std::io::Error| whole(&folder.display().to_string(), cause.to_string());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry
            .map_err(failed)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if name.ends_with(".toml") && name != "Cargo.toml" {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn whole(file: &str, what: String) -> LoadError {
    LoadError {
        file: file.to_owned(),
        line: 0,
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All vectors there are. A change that adds some or takes some away says so here: none is lost
    /// by accident.
    const VECTORS: usize = 349;

    #[test]
    fn number_of_vectors_is_known_and_no_file_is_empty() {
        let collection = Collection::load(folder()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(collection.vectors().count(), VECTORS);
        for (file, vectors) in &collection.files {
            assert!(!vectors.is_empty(), "{file} is empty");
        }
    }
}
