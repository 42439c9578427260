//! Threads that block on the device: one thread for all reads if the system reads concurrently
//! (`io_uring`), else a few threads with one read each.
//!
//! Waking a thread costs more than a short read does, and one that is reading already will soon
//! have time for the next. So a read that comes while others are under way wakes a thread only
//! where more than [`READS_A_THREAD`] wait for each of those that read, or, with one thread for
//! all, more than are under way. A thread without work, or the one thread for all reads, polls
//! every [`WATCH`] and takes reads that still wait: so a read that is slow or never ends delays no
//! other.

mod in_progress;

use crate::ReadError;
use crate::directory::reads::buffer::Buffer;
use crate::files::{Batch, Interrupter};
use crate::lock::lock;
pub(crate) use in_progress::ReadsInProgress;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// A read that works on [`Buffer::with`]; it returns `true` if it has ended, or no request waits
/// for it. Otherwise it is called again when the bytes that it needs were read.
type Job = Box<dyn FnMut() -> bool + Send>;

/// Reads that may wait for each thread that reads before another one is woken. Measured on an SSD
/// with hits of 12 KB on one core: 2 takes a tenth off the CPU time of a hit, 1 gains nothing.
const READS_A_THREAD: usize = 2;

/// The longest time that a read waits behind a slow one while a thread has nothing to do. A wake-up
/// in that time costs a thousandth of a core.
const WATCH: Duration = Duration::from_millis(2);

/// The longest time that a thread waits that is woken for everything there is to do.
const REST: Duration = Duration::from_secs(1);

/// Reads side by side, a directory: more than a device's queue takes without making each of them
/// longer. Each has memory of its own: 16 to 240 KiB, which counts for the connection that waits
/// for it, or up to 1 MiB of content that is to be in memory, of which little is read at once.
pub(crate) const READS_AT_ONCE_MAX: usize = 32;

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Threads that read, or reads that one thread has under way.
    busy: usize,
    /// Threads that have nothing to do.
    idle: usize,
    /// Of those, the ones that look again soon without being woken.
    watching: usize,
    /// The one thread for all waits and has not been called.
    is_waiting_in_kernel: bool,
    is_closed: bool,
}

impl Waiting {
    /// Whether to wake a thread for the waiting reads.
    fn wants_another(&self) -> bool {
        self.idle > 0 && (self.watching == 0 || self.jobs.len() > self.busy * READS_A_THREAD)
    }

    /// Whether to wake the one thread for all.
    fn wants_interrupt(&self) -> bool {
        self.is_waiting_in_kernel && self.busy < READS_AT_ONCE_MAX && self.jobs.len() > self.busy
    }
}

pub(crate) struct Pool {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    /// Calls the one thread for all.
    interrupter: OnceLock<Arc<dyn Interrupter>>,
    /// Reads that may wait.
    max: usize,
    /// There are no threads: the caller reads.
    is_stepped: bool,
}

impl Pool {
    pub(crate) fn new(max: usize, is_stepped: bool) -> Self {
        Self {
            waiting: Mutex::default(),
            ready: Condvar::new(),
            interrupter: OnceLock::new(),
            max,
            is_stepped,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// Has `read` done: it is called until it has something to say. A read whose future was dropped
    /// is skipped.
    pub(crate) fn submit<T, F>(
        &self,
        read: F,
    ) -> impl Future<Output = Result<T, ReadError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn() -> Option<Result<T, ReadError>> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let mut sender = Some(sender);
        let job = move || {
            // the future may have been dropped meanwhile
            if sender.as_ref().is_none_or(oneshot::Sender::is_closed) {
                return true;
            }
            let Some(done) = read() else { return false };
            if let Some(sender) = sender.take() {
                drop(sender.send(done));
            }
            true
        };
        let refused = self.enqueue(Box::new(job)).err();
        async move {
            match refused {
                Some(error) => Err(error),
                None => receiver.await.unwrap_or(Err(ReadError::Closed)),
            }
        }
    }

    fn enqueue(&self, job: Job) -> Result<(), ReadError> {
        if self.is_stepped {
            Buffer::finish(job);
            return Ok(());
        }
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Err(ReadError::Closed);
        }
        if waiting.jobs.len() >= self.max {
            return Err(ReadError::Busy);
        }
        waiting.jobs.push_back(job);
        let (wants_another, wants_interrupt) = (waiting.wants_another(), waiting.wants_interrupt());
        waiting.is_waiting_in_kernel &= !wants_interrupt;
        drop(waiting);
        if wants_another {
            self.ready.notify_one();
        }
        if wants_interrupt {
            self.call();
        }
        Ok(())
    }

    fn call(&self) {
        if let Some(interrupter) = self.interrupter.get() {
            interrupter.interrupt();
        }
    }

    /// Reads until the store is closed: all reads side by side in this thread if the system has a
    /// `batch` for that. Else, and when the batch fails, one read after the other, in `threads`
    /// threads; `on_threads` is called with their number first.
    pub(crate) fn serve(
        &self,
        batch: Option<Box<dyn Batch>>,
        (name, threads): (&str, usize),
        on_threads: impl FnOnce(usize),
    ) {
        if batch.is_some_and(|batch| self.run_batch(batch).is_ok()) {
            return;
        }
        std::thread::scope(|scope| {
            let more = (1..threads).map_while(|_| {
                let thread = std::thread::Builder::new().name(name.to_owned());
                thread.spawn_scoped(scope, || self.run()).ok()
            });
            on_threads(1 + more.count());
            self.run();
        });
    }

    /// What each thread does until the store is closed.
    fn run(&self) {
        let mut waiting = self.lock();
        loop {
            if waiting.is_closed {
                return;
            }
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.busy += 1;
                drop(waiting);
                Buffer::finish(job);
                waiting = self.lock();
                waiting.busy -= 1;
            } else {
                waiting = self.rest(waiting);
            }
        }
    }

    /// What the one thread for all does until the store is closed.
    ///
    /// # Errors
    /// The batch failed, and with it the reads in progress.
    fn run_batch(&self, batch: Box<dyn Batch>) -> io::Result<()> {
        let _fault = Fault(self);
        let interrupter = self.interrupter.set(batch.interrupter());
        debug_assert!(interrupter.is_ok(), "one thread only");
        let mut reads = ReadsInProgress::new(batch, READS_AT_ONCE_MAX);
        let mut jobs = Vec::new();
        while let Some(longest) = self.take(&reads, &mut jobs) {
            if jobs.is_empty()
                && let Err(error) = reads.wait(longest)
            {
                self.lock().busy = 0;
                return Err(error);
            }
            for job in jobs.drain(..) {
                reads.begin(job);
            }
        }
        Ok(())
    }

    /// Takes what waits and has room; if that is nothing, says for how long it may be waited for.
    /// `None`: the store is closed.
    fn take(&self, reads: &ReadsInProgress, jobs: &mut Vec<Job>) -> Option<Duration> {
        let mut waiting = self.lock();
        let count = waiting.jobs.len().min(reads.free());
        jobs.extend(waiting.jobs.drain(..count));
        waiting.busy = reads.under_way();
        waiting.is_waiting_in_kernel = count == 0;
        let is_open = !waiting.is_closed;
        let longest = if waiting.busy == 0 { REST } else { WATCH };
        is_open.then_some(longest)
    }

    /// Waits until there is a job, or for [`WATCH`] while other threads read.
    fn rest<'p>(&'p self, mut waiting: MutexGuard<'p, Waiting>) -> MutexGuard<'p, Waiting> {
        waiting.idle += 1;
        let watches = waiting.busy > 0 && waiting.watching == 0;
        let mut waiting = if watches {
            waiting.watching += 1;
            let (mut waiting, _) = self
                .ready
                .wait_timeout(waiting, WATCH)
                .unwrap_or_else(PoisonError::into_inner);
            waiting.watching -= 1;
            waiting
        } else {
            self.ready
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner)
        };
        waiting.idle -= 1;
        waiting
    }

    /// Reads that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().jobs.len()
    }

    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        waiting.jobs.clear();
        drop(waiting);
        self.ready.notify_all();
        self.call();
    }
}

/// Ends all reads if their thread panics: waiting reads fail, and later ones are refused.
struct Fault<'p>(&'p Pool);

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::reads::buffer::{BufferState, Span};
    use crate::files::batch_tests::{BlockingFile, kernel_batch, systems};
    use crate::files::simulated::SimulatedFiles;
    use crate::files::{Access, File, Files, SystemFiles, TransferResult};
    use std::io::Write as _;
    use std::path::Path;
    use weir_policy::page_cache::ReadPath;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    }

    #[test]
    fn read_beyond_the_queue_limit_is_refused_as_busy() {
        let pool = Arc::new(Pool::new(1, false));
        let first = pool.submit(|| Some(Ok(1)));
        let second = pool.submit(|| Some(Ok(2)));
        assert_eq!(pool.waiting(), 1);
        assert_eq!(runtime().block_on(second), Err(ReadError::Busy));
        let thread = std::thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.run()
        });
        assert_eq!(runtime().block_on(first), Ok(1));
        assert_eq!(pool.waiting(), 0);
        pool.close();
        thread.join().unwrap();
        assert_eq!(
            runtime().block_on(pool.submit(|| Some(Ok(3)))),
            Err(ReadError::Closed)
        );
    }

    #[test]
    fn read_behind_a_hanging_read_completes_on_another_thread() {
        let pool = Arc::new(Pool::new(10, false));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let pool = Arc::clone(&pool);
                std::thread::spawn(move || pool.run())
            })
            .collect();
        let runtime = runtime();
        for _ in 0..20 {
            // threads have read before, and rest in whatever way they do
            assert_eq!(runtime.block_on(pool.submit(|| Some(Ok(0)))), Ok(0));
            let (release, held) = std::sync::mpsc::channel::<()>();
            let hangs = pool.submit(move || {
                held.recv().unwrap();
                Some(Ok(1))
            });
            for number in 2..5 {
                let behind = pool.submit(move || Some(Ok(number)));
                assert_eq!(runtime.block_on(behind), Ok(number));
            }
            release.send(()).unwrap();
            assert_eq!(runtime.block_on(hangs), Ok(1));
        }
        pool.close();
        for thread in threads {
            thread.join().unwrap();
        }
    }

    /// A pool of one thread for all.
    fn batched(
        batch: impl FnOnce() -> Box<dyn Batch> + Send + 'static,
        max: usize,
    ) -> (Arc<Pool>, std::thread::JoinHandle<()>) {
        let pool = Arc::new(Pool::new(max, false));
        let thread = std::thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.serve(Some(batch()), ("reader", 2), |_| {})
        });
        (pool, thread)
    }

    /// Reads the first byte of a file.
    fn read_byte(pool: &Pool, file: &Arc<dyn File>) -> impl Future<Output = Result<u8, ReadError>> {
        let span = Span {
            file: Arc::clone(file),
            offset: 0,
            len: 1,
            end: 1,
            read_path: ReadPath::Through,
        };
        pool.submit(move || {
            Buffer::with(|buffer| match buffer.take(span.clone(), Result::ok) {
                BufferState::Pending => None,
                BufferState::Failed => Some(Err(ReadError::Device)),
                BufferState::Bytes(_) => Some(Ok(buffer.bytes(&(0..1))[0])),
            })
        })
    }

    /// A file of one byte.
    fn file_of(files: &dyn Files, directory: &Path, byte: u8) -> Arc<dyn File> {
        let path = directory.join(byte.to_string());
        let file = files.open(&path, Access::Create).unwrap();
        assert_eq!(file.write_at(&[&[byte]], 0).unwrap(), 1);
        file
    }

    #[test]
    fn more_reads_than_the_concurrency_limit_each_return_their_own_bytes() {
        for (files, directory) in systems() {
            let its = Arc::clone(&files);
            let batch = move || its.batch(READS_AT_ONCE_MAX).unwrap();
            let (pool, thread) = batched(batch, 1000);
            let bytes = 0..=u8::MAX;
            let all: Vec<_> = bytes
                .clone()
                .map(|byte| file_of(&*files, directory.path(), byte))
                .collect();
            for _ in 0..3 {
                let reads: Vec<_> = all.iter().map(|file| read_byte(&pool, file)).collect();
                for (read, byte) in reads.into_iter().zip(bytes.clone()) {
                    assert_eq!(runtime().block_on(read), Ok(byte));
                }
            }
            // one by one, each wakes the thread
            for (file, byte) in all.iter().zip(bytes) {
                assert_eq!(runtime().block_on(read_byte(&pool, file)), Ok(byte));
            }
            pool.close();
            thread.join().unwrap();
        }
    }

    #[test]
    fn batch_thread_completes_other_reads_and_the_close_while_one_read_hangs() {
        if kernel_batch(1).is_none() {
            return;
        }
        let batch = || SystemFiles.batch(READS_AT_ONCE_MAX).unwrap();
        let (pool, thread) = batched(batch, 1000);
        let directory = tempfile::tempdir().unwrap();
        let file = file_of(&SystemFiles, directory.path(), 7);
        let (hanging, mut writer) = BlockingFile::file();
        let hangs = read_byte(&pool, &hanging);
        for _ in 0..20 {
            let behind: Vec<_> = (0..5).map(|_| read_byte(&pool, &file)).collect();
            for read in behind {
                assert_eq!(runtime().block_on(read), Ok(7));
            }
        }
        writer.write_all(&[9]).unwrap();
        assert_eq!(runtime().block_on(hangs), Ok(9));
        // nor does the end
        let hangs = read_byte(&pool, &hanging);
        assert_eq!(runtime().block_on(read_byte(&pool, &file)), Ok(7));
        pool.close();
        thread.join().unwrap();
        assert_eq!(runtime().block_on(hangs), Err(ReadError::Closed));
    }

    #[test]
    fn panicking_read_fails_itself_and_all_later_reads_as_closed() {
        let files = SimulatedFiles::new(1);
        let (pool, thread) = batched(move || files.batch(1).unwrap(), 1000);
        let read = || {
            runtime().block_on(
                pool.submit(|| -> Option<Result<(), ReadError>> { panic!("a fault of ours") }),
            )
        };
        assert_eq!(read(), Err(ReadError::Closed));
        assert!(thread.join().is_err());
        assert_eq!(read(), Err(ReadError::Closed));
    }

    /// A batch that the system takes away.
    #[derive(Debug)]
    struct Failing(Arc<dyn Interrupter>);

    impl Batch for Failing {
        fn begin(&mut self, _transfer: crate::files::Transfer) {}

        fn wait(&mut self, _longest: Duration, _came: &mut Vec<TransferResult>) -> io::Result<()> {
            Err(io::ErrorKind::Other.into())
        }

        fn interrupter(&self) -> Arc<dyn Interrupter> {
            Arc::clone(&self.0)
        }
    }

    #[test]
    fn reads_continue_on_several_threads_after_the_batch_fails() {
        let files = SimulatedFiles::new(1);
        let interrupter = files.batch(1).unwrap().interrupter();
        let pool = Arc::new(Pool::new(1000, false));
        let (sender, threads) = std::sync::mpsc::channel();
        let thread = std::thread::spawn({
            let pool = Arc::clone(&pool);
            move || {
                let batch: Box<dyn Batch> = Box::new(Failing(interrupter));
                let on_threads = |count| sender.send(count).unwrap();
                pool.serve(Some(batch), ("reader", 3), on_threads);
            }
        });
        let file = file_of(&files, Path::new("/"), 7);
        assert_eq!(threads.recv(), Ok(3));
        for _ in 0..10 {
            assert_eq!(runtime().block_on(read_byte(&pool, &file)), Ok(7));
        }
        pool.close();
        thread.join().unwrap();
    }

    #[test]
    fn batch_thread_is_woken_only_if_more_reads_wait_than_are_in_progress() {
        let check = |is_waiting_in_kernel, busy, reads: usize, expected| {
            let mut waiting = Waiting {
                busy,
                is_waiting_in_kernel,
                ..Waiting::default()
            };
            for _ in 0..reads {
                waiting.jobs.push_back(Box::new(|| true));
            }
            assert_eq!(
                waiting.wants_interrupt(),
                expected,
                "{is_waiting_in_kernel} {busy} {reads}"
            );
        };
        check(true, 0, 1, true);
        check(true, 1, 1, false);
        check(true, 1, 2, true);
        check(true, READS_AT_ONCE_MAX, 1000, false);
        // it is at work, or was called
        check(false, 0, 1, false);
    }

    #[test]
    fn idle_thread_is_woken_if_none_polls_or_over_two_reads_per_busy_one_wait() {
        let check = |busy, idle, watching, reads: usize, expected| {
            let mut waiting = Waiting {
                busy,
                idle,
                watching,
                ..Waiting::default()
            };
            for _ in 0..reads {
                waiting.jobs.push_back(Box::new(|| true));
            }
            assert_eq!(
                waiting.wants_another(),
                expected,
                "{busy} {idle} {watching} {reads}"
            );
        };
        // no thread reads
        check(0, 4, 0, 1, true);
        // one thread reads, and another one polls
        check(1, 3, 1, 1, false);
        check(1, 3, 1, 2, false);
        check(1, 3, 1, 3, true);
        check(2, 2, 1, 4, false);
        check(2, 2, 1, 5, true);
        // no thread polls
        check(1, 3, 0, 1, true);
        // there is no thread to wake
        check(4, 0, 0, 100, false);
    }

    #[test]
    fn cancelled_read_is_not_executed() {
        let pool = Arc::new(Pool::new(2, false));
        drop(pool.submit(|| -> Option<Result<(), ReadError>> { panic!("was done") }));
        let second = pool.submit(|| Some(Ok(2)));
        let thread = std::thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.run()
        });
        assert_eq!(runtime().block_on(second), Ok(2));
        pool.close();
        thread.join().unwrap();
    }
}
