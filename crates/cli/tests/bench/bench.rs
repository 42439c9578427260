//! The program, and the record it leaves.

use super::support::PATIENCE;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;
use tempfile::TempDir;

/// A small Wisconsin benchmark that takes a second.
pub(crate) const SMALL: &[&str] = &[
    "wpb",
    "--scale",
    "0.1",
    "--clients",
    "8",
    "--set",
    "origin.latency=constant(10ms)",
];

/// A folder to run it in.
#[derive(Debug)]
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .arg("bench")
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .output()
            .expect("the binary was built with this test")
    }

    /// `weir bench run` with these arguments, and `record.json`.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str], exit: i32) -> (Value, String) {
        let mut all = vec!["run"];
        all.extend(arguments);
        all.extend(["--out", "record.json"]);
        let output = self.output(&all);
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(output.status.code(), Some(exit), "{said}");
        (self.record("record.json"), said)
    }

    /// `weir bench run` with these arguments, which ends before it begins: no record, exit code 3.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let mut all = vec!["run"];
        all.extend(arguments);
        all.extend(["--out", "record.json"]);
        let output = self.output(&all);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(!self.file("record.json").exists(), "{said}");
        said
    }

    #[track_caller]
    pub(crate) fn record(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.file(name)).expect("a record");
        serde_json::from_str(&text).expect("it is JSON")
    }
}

/// One that runs beside us, and what it says on stderr.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that holds `part`.
    #[track_caller]
    pub(crate) fn wait_for(&self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(error) => panic!("it never said `{part}`: {error}"),
            }
        }
    }

    /// Waits for its end, and returns the exit code and what it said since the last wait.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let until = Instant::now() + PATIENCE;
        let mut said = String::new();
        // stderr ends with the process
        while let Ok(line) = self
            .lines
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            said.push_str(&line);
            said.push('\n');
        }
        assert!(Instant::now() < until, "it does not end: {said}");
        let status = self.child.wait().expect("it can be waited for");
        (status.code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number of the record, by its JSON pointer.
#[track_caller]
pub(crate) fn number(record: &Value, pointer: &str) -> u64 {
    record
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no number at {pointer}"))
}

/// 1 - origin requests / client requests, in percent.
#[track_caller]
#[expect(clippy::cast_precision_loss, reason = "a few hundred requests")]
pub(crate) fn hit_percent(record: &Value, phase: &str) -> f64 {
    let client = number(record, &format!("{phase}/client/requests"));
    let origin = number(record, &format!("{phase}/origin/requests"));
    100.0 * (1.0 - origin as f64 / client as f64)
}
