//! h2spec, which tests how servers keep to RFC 9113 and RFC 7541: fetched as a Go module and built
//! under `target/`. `peers/h2spec/go.mod` has its version, and that of all that it needs.

use crate::command::output;
use crate::failure::{During, Failure};
use crate::{need, root};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The package of the program.
const PACKAGE: &str = "github.com/summerwind/h2spec/cmd/h2spec";

/// Builds it, and returns its path. Once it is built this takes a second.
///
/// # Errors
/// There is no Go, a module cannot be fetched, or the program cannot be built.
pub fn build() -> Result<PathBuf, Failure> {
    need::go()?;
    let place = root::target().join("h2spec");
    std::fs::create_dir_all(&place).during(format_args!("make `{}`", place.display()))?;
    let built = place.join("h2spec");
    let mut go = Command::new(need::find("go").unwrap_or_else(|| "go".into()));
    go.args(["build", "-trimpath", "-o"])
        .arg(&built)
        .arg(PACKAGE)
        .current_dir(root::directory().join("peers/h2spec"))
        .env("GOWORK", "off")
        // no C compiler is needed
        .env("CGO_ENABLED", "0")
        .env_remove("GOFLAGS")
        .stderr(Stdio::inherit());
    output(&mut go)?;
    Ok(built)
}
