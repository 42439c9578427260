//! A network of its own on this machine.

use crate::process::ioctl;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use xtask::command::output;
use xtask::failure::{During, Failure};

/// `O_NONBLOCK`
const NON_BLOCKING: rustix::fs::OFlags = rustix::fs::OFlags::NONBLOCK;

/// Interfaces, routes and ports apart from the machine's; removed when no process is in it and this
/// value is dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: File,
}

impl Namespace {
    /// # Errors
    /// It takes root, or the same privileges.
    pub(crate) fn make() -> Result<Self, Failure> {
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
        namespace
            .inside(|| std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"))?
            .during("switch off TCP's memory of paths")?;
        Ok(namespace)
    }

    /// Runs something in a thread that is in it; sockets and programs made there stay in it.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub(crate) fn inside<T: Send>(&self, what: impl FnOnce() -> T + Send) -> Result<T, Failure> {
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
    pub(crate) fn command(&self) -> Vec<String> {
        let (process, file) = (std::process::id(), self.file.as_raw_fd());
        vec![
            "nsenter".to_owned(),
            format!("--net=/proc/{process}/fd/{file}"),
        ]
    }

    /// An interface that is one end of a link between two addresses; packets are read from and
    /// written to the file.
    pub(crate) fn interface(
        &self,
        name: &str,
        here: Ipv4Addr,
        there: Ipv4Addr,
    ) -> Result<File, Failure> {
        let device = self.inside(|| {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .custom_flags(NON_BLOCKING.bits().cast_signed());
            let device = options.open("/dev/net/tun")?;
            ioctl::become_interface(&device, name)?;
            std::io::Result::Ok(device)
        })?;
        let device = device.during("make a TUN interface")?;
        self.ip(&format!("addr add {here} peer {there} dev {name}"))?;
        // a program that reads in turns must not lose what arrives between them
        self.ip(&format!("link set dev {name} txqueuelen 20000 up"))?;
        Ok(device)
    }

    fn ip(&self, words: &str) -> Result<(), Failure> {
        let mut command = Command::new("ip");
        command.args(words.split_whitespace());
        self.inside(|| output(&mut command))?.map(drop)
    }
}
