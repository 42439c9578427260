//! The process of a module, from the proxy.

use super::announcement::{ANNOUNCEMENT_BYTES_MAX, Announcement};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Read as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use weir_extend::Options;

/// How long a module may take to be loaded. To compile a large filter takes half of it.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a process may take to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes that are kept of what a process writes on its standard error.
const SAID_BYTES_MAX: usize = 4 * 1024;

/// How this program is started as the process of a module.
pub trait Launch: Send + Sync {
    /// The command of a process that calls [`run`](super::run) for a module of `kind` with
    /// `options`, on a `socket`. What it is configured by can be written into `directory`.
    ///
    /// # Errors
    ///
    /// That cannot be written.
    fn command(
        &self,
        kind: &str,
        options: &Options,
        directory: &Path,
        socket: &Path,
    ) -> io::Result<Command>;

    /// A process has written a line.
    fn log(&self, line: &str);
}

/// A process that was started. It is killed when it is dropped, unless it has ended.
#[derive(Debug)]
pub(super) struct Child {
    child: std::process::Child,
    /// Readable when it has ended.
    ended: OwnedFd,
    said: ChildStderr,
    stdout: ChildStdout,
    /// What it said and was not taken, whole lines and a part of one.
    text: Vec<u8>,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The process has ended.
    Ended,
    /// It has said something.
    Said,
    /// The proxy does not want it any more.
    Stop,
}

impl Child {
    pub(super) fn spawn(mut command: Command) -> io::Result<Self> {
        // a signal from the terminal is for the proxy, which ends it in its time
        command.process_group(0);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(stdout), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or(io::ErrorKind::InvalidData)?;
        let ended = match pidfd_open(id, PidfdFlags::empty()) {
            Ok(ended) => ended,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.into());
            }
        };
        Ok(Self {
            child,
            ended,
            said,
            stdout,
            text: Vec::new(),
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for what it announces, unless `stop` is closed before; why there is nothing.
    pub(super) fn announcement(
        &mut self,
        stop: Option<BorrowedFd<'_>>,
    ) -> Result<Announcement, String> {
        let until = Instant::now() + START_TIMEOUT;
        let mut line = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = vec![
                PollFd::new(&self.stdout, PollFlags::IN),
                PollFd::new(&self.said, PollFlags::IN),
            ];
            fds.extend(stop.iter().map(|stop| PollFd::new(stop, PollFlags::IN)));
            let count = wait(&mut fds, Some(left)).map_err(|error| error.to_string())?;
            let is_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if count == 0 {
                return Err(format!(
                    "it does not start within {} s",
                    START_TIMEOUT.as_secs()
                ));
            }
            if is_ready.get(2) == Some(&true) {
                return Err("it is not wanted any more".to_owned());
            }
            if is_ready[1] {
                self.hear();
            }
            if !is_ready[0] {
                continue;
            }
            let mut buffer = [0; 1024];
            let read = self.stdout.read(&mut buffer).unwrap_or(0);
            line.extend_from_slice(&buffer[..read]);
            if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&line[..end]);
                return Announcement::read(&line)
                    .ok_or_else(|| "it says nothing of use".to_owned());
            }
            if read == 0 || line.len() > ANNOUNCEMENT_BYTES_MAX {
                return Err(self.last_words());
            }
        }
    }

    /// Waits until something happens.
    pub(super) fn wait(&self, stop: BorrowedFd<'_>) -> Wake {
        let mut fds = [
            PollFd::new(&stop, PollFlags::IN),
            PollFd::new(&self.ended, PollFlags::IN),
            PollFd::new(&self.said, PollFlags::IN),
        ];
        match wait(&mut fds, None) {
            Ok(_) if !fds[0].revents().is_empty() => Wake::Stop,
            Ok(_) if fds[2].revents().contains(PollFlags::IN) => Wake::Said,
            _ => Wake::Ended,
        }
    }

    /// Takes what it has said; the whole lines of it.
    pub(super) fn lines(&mut self) -> Vec<String> {
        self.hear();
        let mut lines = Vec::new();
        while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line[..end]).into_owned());
        }
        lines
    }

    /// Reads once from its standard error. Of a line that is too long the beginning is dropped.
    /// How many bytes there were.
    fn hear(&mut self) -> usize {
        let mut buffer = [0; 1024];
        let count = self.said.read(&mut buffer).unwrap_or(0);
        self.text.extend_from_slice(&buffer[..count]);
        let surplus = self.text.len().saturating_sub(SAID_BYTES_MAX);
        self.text.drain(..surplus);
        count
    }

    fn has_said(&self) -> bool {
        let mut fds = [PollFd::new(&self.said, PollFlags::IN)];
        matches!(wait(&mut fds, Some(Duration::ZERO)), Ok(1..))
    }

    /// Why it has ended, as far as it can be known.
    pub(super) fn last_words(&mut self) -> String {
        let _ = self.child.kill();
        let status = self.child.wait();
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        // a process of the module's own may have the other end still: no waiting for its end
        while self.has_said() && self.hear() > 0 {}
        let text = String::from_utf8_lossy(&self.text);
        let said = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let said: Vec<&str> = said.collect();
        match said.as_slice() {
            [] => format!("it ended ({status})"),
            said => format!("it ended ({status}): {}", said.join(" ")),
        }
    }

    /// Has it end, and waits for that.
    pub(super) fn end(mut self) {
        drop(self.child.stdin.take());
        let mut fds = [PollFd::new(&self.ended, PollFlags::IN)];
        let _ = wait(&mut fds, Some(END_TIMEOUT));
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for one of `fds`; how many there are.
pub(super) fn wait(fds: &mut [PollFd<'_>], time: Option<Duration>) -> io::Result<usize> {
    let until = time.map(|time| Instant::now() + time);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(fds, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            polled => return polled.map_err(io::Error::from),
        }
    }
}
