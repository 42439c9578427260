//! Runs the real binary and compares exit code, stdout and stderr together with a file.
//!
//! With `WEIR_BLESS=1` the files are written instead of compared; read the difference before you
//! keep it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the snapshots.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// Runs `weir` with `arguments` in `folder`, so that messages hold no path of this machine.
pub(crate) fn weir(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("RUST_BACKTRACE")
        .env("NO_COLOR", "1")
        // no proxy runs there
        .env("XDG_RUNTIME_DIR", "/nowhere")
        .output()
        .expect("the binary was built with this test")
}

/// Exit code, stdout and stderr as one text.
pub(crate) fn whole(output: &Output) -> String {
    let code = output.status.code().expect("not killed by a signal");
    format!(
        "exit {code}\n--- stdout\n{}--- stderr\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    )
}

/// Compares with the file, or writes it; a difference is added to `differences`.
pub(crate) fn compare(file: &Path, found: &str, differences: &mut Vec<String>) {
    if std::env::var_os("WEIR_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(file, found).expect("the snapshot can be written");
        return;
    }
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    if expected != found {
        differences.push(format!(
            "{}\n=== expected\n{expected}=== found\n{found}",
            file.display()
        ));
    }
}

/// Fails with all differences at once.
pub(crate) fn finish(differences: &[String]) {
    assert!(
        differences.is_empty(),
        "{}\n({} snapshots differ; WEIR_BLESS=1 writes them anew)",
        differences.join("\n"),
        differences.len()
    );
}
