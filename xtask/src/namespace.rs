//! A network of its own on this machine.

pub mod ethernet;

use crate::command::output;
use crate::failure::{During, Failure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};

/// Whether this process may make one. Without root, the test that runs is reported as ignored: on
/// a line of its own, as the test harness does it, so that `cargo xtask ci` sees it.
///
/// # Panics
/// Nothing can be printed.
#[must_use]
pub fn is_permitted() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        let line = format!("\ntest {name} ... ignored, not root\n");
        // not by a macro, whose output is shown of failed tests only
        let mut out = std::io::stdout();
        out.write_all(line.as_bytes()).expect("an open output");
    }
    is_root
}

/// Interfaces, routes and ports apart from the machine's; removed when no process is in it and this
/// value is dropped.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// # Errors
    /// It takes root, or the same privileges.
    pub fn make() -> Result<Self, Failure> {
        // a process that is in a new one for a moment: an open file keeps it
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo there; read -r _"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .during("start `unshare`")?;
        let mut said = String::new();
        if let Some(output) = holder.stdout.take() {
            BufReader::new(output)
                .read_line(&mut said)
                .during("hear from `unshare`")?;
        }
        let file = File::open(format!("/proc/{}/ns/net", holder.id()));
        drop(holder.stdin.take());
        holder.wait().during("wait for `unshare`")?;
        if said.trim() != "there" {
            return Err(Failure::Outside(
                "a network namespace cannot be made: not root?".to_owned(),
            ));
        }
        let namespace = Self {
            file: file.during("open a network namespace")?,
        };
        namespace.ip("link set lo up")?;
        // what one run learns of the path must not help the next
        namespace.set("net/ipv4/tcp_no_metrics_save", "1")?;
        Ok(namespace)
    }

    /// Runs something in a thread that is in it; sockets and programs made there stay in it.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn inside<T: Send>(&self, what: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        let run = || {
            move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                .during("enter a network namespace")?;
            Ok(what())
        };
        std::thread::scope(|scope| scope.spawn(run).join())
            .map_err(|_| Failure::Outside("what ran in a network namespace broke".to_owned()))?
    }

    /// A command that runs the command behind it in here.
    ///
    /// A child of a thread that is in here would be too, but gets SIGTERM when that thread ends.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net={}", self.path())]
    }

    /// The same for programs that take the file of a namespace.
    fn path(&self) -> String {
        let (process, file) = (std::process::id(), self.file.as_raw_fd());
        format!("/proc/{process}/fd/{file}")
    }

    /// A link of two Ethernet interfaces: `name` here and `far_name` in `far`, both down.
    ///
    /// # Errors
    /// One of the names is there already.
    pub fn link(&self, name: &str, far: &Self, far_name: &str) -> Result<(), Failure> {
        let far = far.path();
        self.ip(&format!(
            "link add {name} type veth peer name {far_name} netns {far}"
        ))
    }

    /// Writes a setting of its kernel, as `net/ipv4/ip_forward`.
    ///
    /// # Errors
    /// There is none of this name, or it does not take the value.
    pub fn set(&self, setting: &str, value: &str) -> Result<(), Failure> {
        self.inside(|| std::fs::write(format!("/proc/sys/{setting}"), value))?
            .during(format_args!("set {setting}"))
    }

    /// Runs `ip` with these words.
    ///
    /// # Errors
    /// As [`output`].
    pub fn ip(&self, words: &str) -> Result<(), Failure> {
        let mut command = Command::new("ip");
        command.args(words.split_whitespace());
        self.inside(|| output(&mut command))?.map(drop)
    }
}
