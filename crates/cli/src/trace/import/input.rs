//! A file or standard input, and how much of it was read.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

/// What is being read.
pub(super) struct Input {
    source: Box<dyn Read>,
    meter: Meter,
}

/// How much was read.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    bytes: Rc<Cell<u64>>,
    /// Bytes of the whole; `None` where that is not known before the end.
    whole: Option<u64>,
}

impl Input {
    /// Opens `path`; `-` is standard input.
    ///
    /// # Errors
    /// It is not there, may not be read, or is a directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::of(Box::new(io::stdin()), None));
        }
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a directory",
            ));
        }
        let whole = about.is_file().then_some(about.len());
        Ok(Self::of(Box::new(file), whole))
    }

    fn of(source: Box<dyn Read>, whole: Option<u64>) -> Self {
        let bytes = Rc::new(Cell::new(0));
        let meter = Meter { bytes, whole };
        Self { source, meter }
    }

    /// Reports how much was read, while it is being read.
    pub(super) fn meter(&self) -> Meter {
        self.meter.clone()
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(out)?;
        let bytes = &self.meter.bytes;
        bytes.set(bytes.get() + count as u64);
        Ok(count)
    }
}

impl Meter {
    /// How much of the whole was read, percent; `None` where the whole is not known.
    pub(super) fn percent(&self) -> Option<u64> {
        let whole = self.whole.filter(|&whole| whole > 0)?;
        let share = u128::from(self.bytes.get()) * 100 / u128::from(whole);
        // a file that grows is read as far as it was when it was opened, and further
        u64::try_from(share.min(100)).ok()
    }
}
