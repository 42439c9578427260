//! The certificate that all servers of the benchmark have.

use crate::proxy::template::Words;
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::command::output;
use xtask::failure::{During, Failure};

/// Makes a certificate with a key on P-256 in this directory, and sets the words `CERTIFICATE`,
/// `KEY`, and `BOTH` for a file with both.
///
/// # Errors
/// `openssl` fails, or a file cannot be written.
pub(crate) fn make(directory: &Path, words: &mut Words) -> Result<(), Failure> {
    fs::create_dir_all(directory).during(format_args!("make `{}`", directory.display()))?;
    let [certificate, key, both] =
        ["certificate.pem", "key.pem", "both.pem"].map(|name| directory.join(name));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "30"]);
    command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.args(["-subj", "/CN=localhost"]);
    command.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    command
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate);
    output(&mut command)?;
    let read = |path: &Path| fs::read(path).during(format_args!("read `{}`", path.display()));
    let text = [read(&certificate)?, read(&key)?].concat();
    fs::write(&both, text).during(format_args!("write `{}`", both.display()))?;
    for (word, path) in [("CERTIFICATE", certificate), ("KEY", key), ("BOTH", both)] {
        words.set(word, path.display());
    }
    Ok(())
}
