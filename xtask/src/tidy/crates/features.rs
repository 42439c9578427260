//! The program alone is built with the same features of its dependencies as the default members of
//! the workspace, which `cargo build` builds; with filters in WebAssembly, as all members.
//!
//! Cargo unites the features of the chosen packages. If one member enables more features of a
//! dependency than the program does, then `make run` after `cargo build --release` compiles that
//! dependency, and everything above it, once more.

use crate::tidy::complaint::Complaint;
use std::collections::BTreeSet;
use xtask::command::output;
use xtask::failure::Failure;
use xtask::root;

/// Lines of `cargo tree`: package, version and features of everything that the chosen packages are
/// built from.
pub(in crate::tidy) fn read(chosen: &[&str]) -> Result<BTreeSet<String>, Failure> {
    let mut command = root::cargo();
    command
        .args(["tree", "--locked", "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p} {f}"]);
    let text = output(command.args(chosen))?;
    // `(*)`: the package is shown above
    let lines = text
        .lines()
        .map(|line| line.trim_end_matches(" (*)").trim());
    let packages = lines.filter(|line| !line.is_empty());
    Ok(packages.map(str::to_owned).collect())
}

/// Complains about a package of `program` that is not in `workspace` with the same features.
pub(in crate::tidy) fn check(
    workspace: &BTreeSet<String>,
    program: &BTreeSet<String>,
) -> Vec<Complaint> {
    let complaint = |line: &String| {
        let what =
            format!("`weir-cli` alone is built with `{line}`, the workspace with other features");
        let instead = "name all features of this dependency under [workspace.dependencies]";
        Complaint::new("Cargo.toml", 1, what, instead)
    };
    program.difference(workspace).map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;

    fn lines(lines: &[&str]) -> BTreeSet<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn dependency_with_more_features_in_the_workspace_is_refused() {
        let program = lines(&["a v1.0.0 std", "b v1.0.0"]);
        let workspace = lines(&["a v1.0.0 std", "b v1.0.0", "c v2.0.0 x"]);
        expect(&check(&workspace, &program), &[]);
        let more = lines(&["a v1.0.0 more,std", "b v1.0.0"]);
        expect(&check(&more, &program), &[(1, "`a v1.0.0 std`")]);
    }
}
