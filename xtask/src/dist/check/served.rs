//! A proxy of an archive, while it runs.

use super::require;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::command::{json, output};
use xtask::failure::{During, Failure};

/// What clients got of the store, in bytes.
const SAVED: &str = "bytes.content-from-store";

/// The numbers are those of seconds that have ended.
const PATIENCE: Duration = Duration::from_secs(30);

/// It is killed when dropped.
pub(super) struct Served {
    child: Child,
    address: SocketAddr,
    /// Of its admin interface.
    admin: SocketAddr,
}

impl Served {
    /// Starts it, and waits until it has said where it listens.
    pub(super) fn start(command: &mut Command) -> Result<Self, Failure> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.during("start the proxy")?;
        let Some(stderr) = child.stderr.take() else {
            return Err(Failure::Outside("stderr is not piped".to_owned()));
        };
        let mut served = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let mut said = Vec::new();
        for line in lines.by_ref() {
            let is_last = line.starts_with("  try ");
            said.push(line);
            if is_last {
                break;
            }
        }
        let (Some(address), Some(admin)) = (at(&said, "forward"), at(&said, "admin")) else {
            return Err(Failure::Refused(format!(
                "it does not start: {}",
                said.join("\n")
            )));
        };
        (served.address, served.admin) = (address, admin);
        // what it says later must not fill the pipe
        std::thread::spawn(move || lines.for_each(drop));
        Ok(served)
    }

    /// Requests the page of an origin; the `Cache-Status` of the response.
    pub(super) fn get(&self, origin: SocketAddr) -> Result<String, Failure> {
        let mut curl = Command::new("curl");
        curl.args(["-q", "-sS", "-D-", "--max-time", "30"])
            .args(["-x", &format!("http://{}", self.address)])
            .arg(format!("http://{origin}/page"));
        let text = output(&mut curl)?;
        let is_whole = text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\nhello\n");
        require(is_whole, || format!("not the page: {text}"))?;
        let lines = text.lines();
        let mut field = lines.filter_map(|line| line.strip_prefix("Cache-Status: "));
        Ok(field.next().unwrap_or_default().trim().to_owned())
    }

    /// Waits until the page of the admin interface, which shows `/live`, has saved bytes.
    pub(super) fn wait_until_saved(&self) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let mut curl = Command::new("curl");
            curl.args(["-q", "-sS", "--max-time", "30"]);
            let live: Value = json(curl.arg(format!("http://{}/live", self.admin)))?;
            let names = live["series"].as_array().into_iter().flatten();
            let mut numbers = names.zip(live["sample"]["totals"].as_array().into_iter().flatten());
            let stored = numbers.find(|(series, _)| series["name"] == SAVED);
            if stored.is_some_and(|(_, total)| total.as_f64() > Some(0.0)) {
                return Ok(());
            }
        }
        Err(Failure::Refused("the page shows nothing saved".to_owned()))
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits; it must end well.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        let id = self.id().to_string();
        output(Command::new("kill").args(["-TERM", &id]))?;
        let status = self.child.wait().during("wait for the proxy")?;
        require(status.success(), || format!("the proxy ended: {status}"))
    }
}

/// The address behind a word of the start message: `  forward  http://127.0.0.1:3128`.
fn at(said: &[String], word: &str) -> Option<SocketAddr> {
    let mut rest = said
        .iter()
        .filter_map(|line| line.trim().strip_prefix(word));
    rest.find_map(|rest| {
        let url = rest.split_whitespace().next()?;
        url.strip_prefix("http://")?.parse().ok()
    })
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}
