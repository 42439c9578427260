//! A terminal of a known size, by tmux.

use super::PATIENCE;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;

/// A terminal in which a program runs, and then `cat`, so that it stays; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Tmux {
    folder: TempDir,
}

/// Waits for a line, so that nothing is written before it is listened to; then runs the program,
/// and says what is left of the terminal.
const SCRIPT: &str = r#"read line
sh -c 'echo $$ > pid; exec "$@"' sh "$@" 2> errors
echo "ended $?"
stty -a > modes
cat
"#;

impl Tmux {
    /// Runs `program` with `arguments` in a terminal of so many columns and rows.
    pub(crate) fn run(columns: u16, rows: u16, program: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("script"), SCRIPT).expect("a file");
        let tmux = Self { folder };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let mut start = vec!["new-session", "-d", "-x", &columns, "-y", &rows];
        start.extend(["sh", "script", program]);
        start.extend(arguments);
        tmux.tmux(&start);
        tmux.tmux(&["pipe-pane", "cat > raw"]);
        tmux.keys(&["Enter"]);
        tmux
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-S", "socket", "-f", "/dev/null"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("TMUX")
            .output()
            .expect("tmux is there: cargo xtask need tmux");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A file that the script or the program has written.
    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(name)).unwrap_or_default()
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.file(name)).into_owned()
    }

    /// Presses keys, by their names.
    pub(crate) fn keys(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys);
        self.tmux(&arguments);
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(Instant::now() < until, "never {what}:\n{screen}");
        }
    }

    /// Waits until all of these are on the screen.
    #[track_caller]
    pub(crate) fn until_all(&self, parts: &[&str]) -> String {
        self.until(&parts.join(", "), |screen| {
            parts.iter().all(|part| screen.contains(part))
        })
    }

    /// Waits until the program has ended with `exit`, and expects that the terminal is as it was.
    #[track_caller]
    pub(crate) fn expect_end(&self, exit: i32) {
        let ended = format!("ended {exit}");
        self.until_all(&[&ended]);
        let flags = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(flags.trim(), "0 1", "alternate screen and cursor");
        let until = Instant::now() + PATIENCE;
        let modes = loop {
            let modes = self.text("modes");
            if modes.contains("echo") || Instant::now() > until {
                break modes;
            }
        };
        let has = |mode: &str| modes.split_whitespace().any(|word| word == mode);
        assert!(has("icanon") && has("echo") && has("isig"), "{modes}");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ended_already = Command::new("tmux")
            .args(["-S", "socket", "kill-server"])
            .current_dir(self.folder.path())
            .output();
    }
}
