//! Reads that the system does side by side while one thread waits for all of them.

use super::{File, Memory};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// One transfer of a read.
#[derive(Debug)]
pub struct Transfer {
    /// Comes back with what came of it. Less than the batch's size, and no other transfer's that is
    /// under way.
    pub token: usize,
    /// What is read.
    pub file: Arc<dyn File>,
    /// Past the page cache, with the alignments of [`File::read_at_direct`].
    pub is_direct: bool,
    /// Where it goes.
    pub memory: Memory,
    /// Which part of the memory's room.
    pub into: Range<usize>,
    /// Where in the file it begins.
    pub offset: u64,
}

/// The result of a transfer.
#[derive(Debug)]
pub struct TransferResult {
    /// The transfer's.
    pub token: usize,
    /// With what was read.
    pub memory: Memory,
    /// As of [`File::read_at`] or [`File::read_at_direct`].
    pub result: io::Result<usize>,
}

/// Transfers under way, begun and waited for by the thread that made it.
///
/// It does not leave that thread: the kernel interrupts the one that made a ring when the ring
/// ends, and an interrupted call with a time limit, of a socket for example, fails.
pub trait Batch: Debug {
    /// Has a transfer done. It begins with the next [`Self::wait`], together with others.
    fn begin(&mut self, transfer: Transfer);

    /// Waits until a transfer has ended, it was interrupted, or `longest` is over. What has ended
    /// is added to `came`.
    ///
    /// # Errors
    /// What the system says: nothing will come of what is under way, nor of anything that is begun
    /// later.
    fn wait(&mut self, longest: Duration, came: &mut Vec<TransferResult>) -> io::Result<()>;

    /// What ends [`Self::wait`].
    fn interrupter(&self) -> Arc<dyn Interrupter>;
}

/// Wakes the thread that waits for a batch.
pub trait Interrupter: Send + Sync + Debug {
    /// Ends a wait. If no thread waits, the next wait ends at once.
    fn interrupt(&self);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::files::simulated::SimulatedFiles;
    use crate::files::{Access, DIRECT_BYTES, Files, SystemFiles};
    use std::io::{PipeReader, PipeWriter, Write as _};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    /// A file system with batches, and what must be kept while its files are used: the kernel's
    /// where it has them for us.
    pub(crate) fn systems() -> Vec<(Arc<dyn Files>, tempfile::TempDir)> {
        let simulated: Arc<dyn Files> = Arc::new(SimulatedFiles::new(1));
        let kernel: Arc<dyn Files> = Arc::new(SystemFiles);
        let has_ring = kernel_batch(1).is_some();
        let systems = [Some(simulated), has_ring.then_some(kernel)].into_iter();
        systems
            .flatten()
            .map(|files| (files, tempfile::tempdir().unwrap()))
            .collect()
    }

    /// A batch of the kernel. Where it has no `io_uring` for us, the test is reported as ignored:
    /// on a line of its own, as the test harness does it, so that `cargo xtask ci` sees it.
    pub(crate) fn kernel_batch(max: usize) -> Option<Box<dyn Batch>> {
        let batch = SystemFiles.batch(max);
        if batch.is_none() {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            let line = format!("\ntest {name} ... ignored, the kernel gives no io_uring\n");
            // not by a macro, whose output is shown of failed tests only
            io::stdout().write_all(line.as_bytes()).unwrap();
        }
        batch
    }

    /// A file whose reads hang until something is written to the other end.
    #[derive(Debug)]
    pub(crate) struct BlockingFile(Arc<std::fs::File>);

    impl BlockingFile {
        pub(crate) fn file() -> (Arc<dyn File>, PipeWriter) {
            let (reader, writer): (PipeReader, _) = std::io::pipe().unwrap();
            let file = std::fs::File::from(OwnedFd::from(reader));
            (Arc::new(Self(Arc::new(file))), writer)
        }
    }

    impl File for BlockingFile {
        fn read_at(&self, bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
            io::Read::read(&mut &*self.0, bytes)
        }

        fn read_at_now(&self, _bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }

        fn read_at_direct(&self, _bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn write_at(&self, _pieces: &[&[u8]], _offset: u64) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn allocate(&self, _len: u64) -> io::Result<()> {
            Ok(())
        }

        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn truncate(&self, _len: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn system(&self) -> Option<&Arc<std::fs::File>> {
            Some(&self.0)
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    const FILE_BYTES: usize = 64 * DIRECT_BYTES;

    fn byte(at: u64) -> u8 {
        (at ^ (at >> 8)).to_le_bytes()[0]
    }

    fn file(files: &dyn Files, directory: &Path) -> Arc<dyn File> {
        let content: Vec<u8> = (0..FILE_BYTES as u64).map(byte).collect();
        let path = directory.join("file");
        let file = files.open(&path, Access::Create).unwrap();
        assert_eq!(file.write_at(&[&content], 0).unwrap(), content.len());
        file.sync().unwrap();
        file
    }

    fn transfer(file: &Arc<dyn File>, token: usize, offset: u64, len: usize) -> Transfer {
        let mut memory = Memory::default();
        memory.room(len);
        Transfer {
            token,
            file: Arc::clone(file),
            is_direct: token.is_multiple_of(2),
            memory,
            into: 0..len,
            offset,
        }
    }

    /// Waits until so many have ended.
    fn wait(batch: &mut dyn Batch, count: usize) -> Vec<TransferResult> {
        let mut came = Vec::new();
        while came.len() < count {
            batch.wait(LONG, &mut came).unwrap();
        }
        came
    }

    #[test]
    fn concurrent_transfers_each_return_their_own_bytes() {
        for (files, directory) in systems() {
            let file = file(&*files, directory.path());
            let mut batch = files.batch(32).unwrap();
            for round in 0..3_u64 {
                let place = |token: usize| (token as u64 * 2 + round) * DIRECT_BYTES as u64;
                for token in 0..32 {
                    batch.begin(transfer(&file, token, place(token), DIRECT_BYTES));
                }
                let mut came = wait(&mut *batch, 32);
                came.sort_by_key(|one| one.token);
                for (token, one) in came.into_iter().enumerate() {
                    assert_eq!(one.token, token);
                    let there = FILE_BYTES as u64 - place(token).min(FILE_BYTES as u64);
                    let count = one.result.unwrap();
                    assert_eq!(count as u64, there.min(DIRECT_BYTES as u64));
                    let expected: Vec<u8> = (place(token)..).map(byte).take(count).collect();
                    assert!(
                        one.memory.bytes(&(0..count)) == expected,
                        "{token} {files:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn transfer_into_part_of_a_buffer_leaves_the_rest_unchanged() {
        for (files, directory) in systems() {
            let file = file(&*files, directory.path());
            let mut batch = files.batch(1).unwrap();
            batch.begin(Transfer {
                into: 100..300,
                is_direct: false,
                ..transfer(&file, 0, 4000, 300)
            });
            let came = wait(&mut *batch, 1).remove(0);
            assert_eq!(came.result.unwrap(), 200);
            let expected: Vec<u8> = (4000..4200).map(byte).collect();
            assert_eq!(came.memory.bytes(&(100..300)), expected);
            assert_eq!(came.memory.bytes(&(0..100)), [0; 100]);
        }
    }

    #[test]
    fn interrupt_before_or_during_a_batch_wait_ends_the_wait() {
        for (files, _directory) in systems() {
            let mut batch = files.batch(1).unwrap();
            let mut came = Vec::new();
            // before the wait, twice over; and during it
            for _ in 0..2 {
                batch.interrupter().interrupt();
                batch.interrupter().interrupt();
                batch.wait(LONG, &mut came).unwrap();
            }
            let interrupter = batch.interrupter();
            let thread = std::thread::spawn(move || interrupter.interrupt());
            batch.wait(LONG, &mut came).unwrap();
            thread.join().unwrap();
            assert!(came.is_empty());
        }
    }

    #[test]
    fn batch_wait_without_events_ends_at_its_timeout() {
        for (files, _directory) in systems() {
            let mut batch = files.batch(1).unwrap();
            let mut came = Vec::new();
            for _ in 0..3 {
                batch.wait(Duration::from_millis(1), &mut came).unwrap();
            }
            assert!(came.is_empty());
        }
    }

    #[test]
    fn transfer_of_a_file_unknown_to_the_kernel_fails_as_unsupported() {
        if let Some(mut batch) = kernel_batch(2) {
            let file = file(&SimulatedFiles::new(1), Path::new("/"));
            for token in [0, 1] {
                batch.begin(transfer(&file, token, 0, 10));
                let came = wait(&mut *batch, 1).remove(0);
                let error = came.result.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::Unsupported);
                assert_eq!(came.token, token);
            }
        }
    }

    #[test]
    fn hanging_transfer_delays_neither_other_transfers_nor_the_drop_of_the_batch() {
        if let Some(mut batch) = kernel_batch(4) {
            let directory = tempfile::tempdir().unwrap();
            let file = file(&SystemFiles, directory.path());
            let (hanging, mut writer) = BlockingFile::file();
            batch.begin(transfer(&hanging, 3, u64::MAX, 10));
            for _ in 0..10 {
                batch.begin(transfer(&file, 1, 0, 10));
                assert_eq!(wait(&mut *batch, 1).remove(0).token, 1);
            }
            io::Write::write_all(&mut writer, b"late").unwrap();
            let came = wait(&mut *batch, 1).remove(0);
            assert_eq!(came.memory.bytes(&(0..came.result.unwrap())), b"late");
            batch.begin(transfer(&hanging, 3, u64::MAX, 10));
            batch
                .wait(Duration::from_millis(1), &mut Vec::new())
                .unwrap();
            drop(batch);
            drop(hanging);
        }
    }
}
