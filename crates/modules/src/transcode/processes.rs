//! The processes that convert images: of this program, with the lowest priority. The program has
//! them run when it is idle, if it can ([`crate::run_helper`]).

use super::collector::Held;
use super::convert::convert;
use super::job::{Work, read_answer, read_job, write_answer, write_job};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::panic::catch_unwind;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// The argument by which this program is one of the processes.
pub(crate) const HELPER: &str = "image-helper";

/// Images that wait for a process, for each of them. More pass as they are.
const QUEUE_LENGTH_MAX: usize = 4;

/// How long a process may take for an image before it is replaced.
const JOB_TIMEOUT: Duration = Duration::from_secs(20);

/// How long no new process is started after one has failed, at first and at most.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The lowest priority, where the system has nothing below it.
const NICE: i32 = 19;

/// Runs this program as one of the processes: converts what it is sent on its standard input, which
/// is a socket, until that ends.
///
/// # Errors
///
/// The socket fails, or is none.
pub(crate) fn serve() -> io::Result<()> {
    // without it, the system shares the processor evenly
    let _ = rustix::process::nice(NICE);
    let stream = io::stdin().as_fd().try_clone_to_owned()?;
    let mut stream = UnixStream::from(stream);
    while let Some((work, content)) = read_job(&mut stream)? {
        let converted = catch_unwind(|| convert(&content, &work)).ok().flatten();
        let smaller = converted.filter(|it| it.len() < content.len());
        write_answer(&mut stream, &smaller.unwrap_or_default())?;
    }
    Ok(())
}

/// How a process is started.
pub(super) type Launch = fn() -> Command;

/// This program, also after another one was put in its place.
pub(super) fn this_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(HELPER).process_group(0);
    command
}

/// The processes of one module. They are started when they are first needed, and end with it.
pub(super) struct Processes {
    count: usize,
    launch: Launch,
    queue: OnceLock<SyncSender<Job>>,
    /// How many processes were started.
    pub(super) started: Arc<AtomicU64>,
}

struct Job {
    work: Work,
    content: Arc<Held>,
    slot: Arc<Mutex<Slot>>,
}

#[derive(Default)]
struct Slot {
    /// `Some` once the job is done: the new content, if there is one.
    result: Option<Option<Vec<u8>>>,
    waker: Option<Waker>,
}

/// An image that is being converted. Dropping it gives it up, if no process has begun it.
pub(super) struct Conversion(Arc<Mutex<Slot>>);

impl Conversion {
    /// Ready with the new content, or none if the image is left as it is.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = slot.result.take() {
            return Poll::Ready(result);
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Processes {
    pub(super) fn new(count: usize, launch: Launch) -> Self {
        Self {
            count,
            launch,
            queue: OnceLock::new(),
            started: Arc::default(),
        }
    }

    /// Has an image converted; `None` if too many wait.
    pub(super) fn convert(&self, work: Work, content: Arc<Held>) -> Option<Conversion> {
        let slot = Arc::default();
        let job = Job {
            work,
            content,
            slot: Arc::clone(&slot),
        };
        let queue = self.queue.get_or_init(|| self.start());
        queue.try_send(job).ok()?;
        Some(Conversion(slot))
    }

    fn start(&self) -> SyncSender<Job> {
        let (queue, jobs) = sync_channel(self.count * QUEUE_LENGTH_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..self.count {
            let mut supervisor = Supervisor {
                launch: self.launch,
                process: None,
                pause: PAUSE_MIN,
                not_before: None,
                started: Arc::clone(&self.started),
            };
            let jobs = Arc::clone(&jobs);
            let thread = thread::Builder::new().name("image-helper".to_owned());
            // without a thread, the queue is full or closed: images pass as they are
            let _ = thread.spawn(move || supervisor.run(&jobs));
        }
        queue
    }
}

/// One process, from its thread.
struct Supervisor {
    launch: Launch,
    process: Option<Process>,
    pause: Duration,
    not_before: Option<Instant>,
    started: Arc<AtomicU64>,
}

impl Supervisor {
    fn run(&mut self, jobs: &Mutex<Receiver<Job>>) {
        loop {
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = next else { return };
            // otherwise its request does not wait for it any more
            if Arc::strong_count(&job.slot) == 1 {
                continue;
            }
            let result = self.convert(&job);
            let mut slot = job.slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.result = Some(result);
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
    }

    fn convert(&mut self, job: &Job) -> Option<Vec<u8>> {
        if self.not_before.is_some_and(|it| Instant::now() < it) {
            return None;
        }
        match self.exchange(job) {
            Ok(content) => {
                (self.pause, self.not_before) = (PAUSE_MIN, None);
                Some(content).filter(|it| !it.is_empty())
            }
            Err(_) => {
                self.process = None;
                self.not_before = Some(Instant::now() + self.pause);
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                None
            }
        }
    }

    fn exchange(&mut self, job: &Job) -> io::Result<Vec<u8>> {
        let process = match &mut self.process {
            Some(process) => process,
            none => {
                let process = Process::start((self.launch)())?;
                self.started.fetch_add(1, Relaxed);
                none.insert(process)
            }
        };
        write_job(&mut process.stream, &job.work, job.content.bytes())?;
        read_answer(&mut process.stream, job.content.bytes().len())
    }
}

struct Process {
    child: Child,
    stream: UnixStream,
}

impl Process {
    fn start(mut command: Command) -> io::Result<Self> {
        let (stream, theirs) = UnixStream::pair()?;
        stream.set_read_timeout(Some(JOB_TIMEOUT))?;
        stream.set_write_timeout(Some(JOB_TIMEOUT))?;
        let child = command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, stream })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::convert::tests::jpeg;
    use super::*;
    use std::future::poll_fn;
    use std::sync::mpsc;

    const WORK: Work = Work {
        quality: 75,
        width_max: 0,
        pixels_max: 1_000_000,
    };

    /// This test's program, which runs [`image_helper`] alone then.
    pub(in super::super) fn test_program() -> Command {
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["transcode::processes::tests::image_helper", "--exact"])
            .env("WEIR_IMAGE_HELPER", "1");
        command
    }

    /// The other side of the tests below; it does nothing in their own process.
    #[test]
    fn image_helper() {
        if std::env::var_os("WEIR_IMAGE_HELPER").is_some() {
            serve().expect("a socket");
        }
    }

    /// Waits for a conversion on this thread.
    fn wait(conversion: &Conversion) -> Option<Vec<u8>> {
        let (sender, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Wake(sender)));
        let mut cx = Context::from_waker(&waker);
        let mut polled = std::pin::pin!(poll_fn(|cx| conversion.poll(cx)));
        loop {
            if let Poll::Ready(result) = polled.as_mut().poll(&mut cx) {
                return result;
            }
            woken
                .recv_timeout(Duration::from_secs(30))
                .expect("an answer");
        }
    }

    struct Wake(mpsc::Sender<()>);

    impl std::task::Wake for Wake {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn image_is_converted_by_another_process_and_a_bad_one_is_left() {
        let processes = Processes::new(1, test_program);
        let convert = |content: Vec<u8>| {
            let conversion = processes
                .convert(WORK, Held::uncharged(&content))
                .expect("room");
            wait(&conversion)
        };
        let webp = convert(jpeg(200, 100)).expect("it is smaller");
        assert!(webp.starts_with(b"RIFF") && &webp[8..12] == b"WEBP");
        assert_eq!(convert(b"no image".to_vec()), None);
        assert!(convert(jpeg(200, 100)).is_some());
        assert_eq!(processes.started.load(Relaxed), 1);
    }

    #[test]
    fn image_passes_as_it_is_if_no_process_can_be_had() {
        for launch in [(|| Command::new("/nowhere/program")) as Launch, || {
            Command::new("true")
        }] {
            let processes = Processes::new(1, launch);
            for _ in 0..3 {
                let content = Held::uncharged(&jpeg(200, 100));
                let conversion = processes.convert(WORK, content).expect("room");
                assert_eq!(wait(&conversion), None);
            }
            // the next ones are started after a pause
            assert!(processes.started.load(Relaxed) <= 1);
        }
    }

    #[test]
    fn no_more_images_wait_than_the_queue_has_room_for() {
        // it never answers
        let processes = Processes::new(1, || {
            let mut command = Command::new("sleep");
            command.arg("60");
            command
        });
        let convert = || processes.convert(WORK, Held::uncharged(b"image"));
        let waiting: Vec<_> = (0..50).filter_map(|_| convert()).collect();
        // those that wait, and perhaps the one that is in the process
        assert!((QUEUE_LENGTH_MAX..=QUEUE_LENGTH_MAX + 1).contains(&waiting.len()));
        assert!(convert().is_none());
    }
}
