//! A headless Chromium that is driven by its DevTools protocol over a pair of pipes.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A browser that has never run here takes seconds to start, and a loaded machine does the rest.
const LIMIT: Duration = Duration::from_secs(120);

/// The protocol is on descriptors 3 and 4, those of a shell's standard streams.
const WITH_PIPES: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null";

/// A browser with one page.
pub(crate) struct Chromium {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    sent: u64,
    /// What went wrong in the page: exceptions, refused loads, violations of its policy.
    complaints: Vec<String>,
    _profile: TempDir,
}

impl Chromium {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new("sh")
            .args(["-c", WITH_PIPES, "chromium"])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh");
        let stdin = child.stdin.take().expect("piped");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while stdout.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
                bytes.pop();
                let message = serde_json::from_slice(&bytes).expect("JSON");
                if sender.send(message).is_err() {
                    return;
                }
                bytes.clear();
            }
        });
        let mut browser = Self {
            child,
            stdin,
            messages,
            session: String::new(),
            sent: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", target);
        attached["sessionId"]
            .as_str()
            .expect("a session")
            .clone_into(&mut browser.session);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    /// Carries out a command of the protocol; its result.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let text = format!("{message}\0");
        self.stdin.write_all(text.as_bytes()).expect("it runs");
        let until = Instant::now() + LIMIT;
        loop {
            let answer = self.message(until);
            if answer["id"] == json!(self.sent) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The next message; what it complains about is kept.
    fn message(&mut self, until: Instant) -> Value {
        let rest = until.saturating_duration_since(Instant::now());
        let message = match self.messages.recv_timeout(rest) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("the browser does not answer"),
            Err(RecvTimeoutError::Disconnected) => panic!("the browser has ended"),
        };
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(message["params"].to_string());
            }
            Some("Log.entryAdded") => {
                let entry = &message["params"]["entry"];
                if entry["level"] == "error" {
                    self.complaints.push(entry.to_string());
                }
            }
            _ => {}
        }
        message
    }

    /// Opens an address.
    pub(crate) fn open(&mut self, url: &str) {
        let opened = self.call("Page.navigate", json!({ "url": url }));
        assert!(opened["errorText"].is_null(), "{opened}");
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        answer["result"]["value"].clone()
    }

    /// The same as text.
    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression holds in the page: it is evaluated again and again.
    pub(crate) fn until(&mut self, expression: &str) {
        let until = Instant::now() + LIMIT;
        // the page may be another one by then, without a body
        let careful = format!(
            "(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"
        );
        while self.value(&careful) != json!(true) {
            if Instant::now() > until {
                let shown = self.text("document.body.innerText");
                panic!("never `{expression}` in:\n{shown}\n{:?}", self.complaints);
            }
        }
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "code": key });
            if key == "Enter" {
                event["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// The size of the window, and whether the user prefers dark pages.
    pub(crate) fn look(&mut self, (width, height): (u32, u32), is_dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        );
    }

    /// Takes a picture of the whole page, for people to look at; where it is.
    pub(crate) fn picture(&mut self, folder: &Path, name: &str) -> PathBuf {
        self.capture(folder, name, true)
    }

    /// Takes a picture of what the window shows; where it is.
    pub(crate) fn view(&mut self, folder: &Path, name: &str) -> PathBuf {
        self.capture(folder, name, false)
    }

    fn capture(&mut self, folder: &Path, name: &str, is_whole: bool) -> PathBuf {
        use base64::Engine as _;
        let how = json!({ "format": "png", "captureBeyondViewport": is_whole });
        let picture = self.call("Page.captureScreenshot", how);
        let data = picture["data"].as_str().expect("a picture");
        let data = base64::engine::general_purpose::STANDARD.decode(data);
        let path = folder.join(format!("{name}.png"));
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(&path, data.expect("base64")).expect("a file");
        path
    }

    /// What the page and the browser complained about so far.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // all that happened before this answer
        self.value("0");
        self.complaints.clone()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended = self.child.wait();
    }
}
