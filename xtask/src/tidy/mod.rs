//! `cargo xtask tidy`: the rules of the house that the compiler does not know.
//!
//! Every rule is a pure function from text to complaints, in a file of its own with good and bad
//! input beside it; this file reads the repository and applies them.

mod complaint;
mod crates;
mod documents;
mod source;
mod tree;

use complaint::Complaint;
use crates::{arrows, circles, features, folders, licences, metadata};
use documents::{changelog, index, links, records};
use source::{calls, columns, length, purity, rust_text, vocabulary, whitespace, words};
use tree::Tree;
use xtask::failure::Failure;
use xtask::root;

/// Reads the repository, prints a line for each complaint.
///
/// # Errors
/// Says how many complaints there are, or what could not be read.
pub(crate) fn run() -> Result<(), Failure> {
    let directory = root::directory();
    let tree = Tree::read(&directory)?;
    let metadata = metadata::read()?;
    let mut complaints = complaints_about_files(&tree);
    complaints.extend(arrows::check(tree.text("ARCHITECTURE.md"), &metadata));
    complaints.extend(records::check(
        &tree,
        records::commits_at,
        records::is_in_history,
    )?);
    complaints.extend(index::check(&tree));
    complaints.extend(changelog::check(tree.text("CHANGELOG.md")));
    complaints.extend(features::check(
        &features::read(&[])?,
        &features::read(&["--package", "weir-cli"])?,
    ));
    complaints.extend(features::check(
        &features::read(&["--workspace", "--features", "weir-cli/wasm"])?,
        &features::read(&["--package", "weir-cli", "--features", "wasm"])?,
    ));
    complaints.extend(licences::check(tree.text("deny.toml"), &metadata));
    complaints.extend(links::check(&tree, |path| directory.join(path).exists()));
    let circles = circles::largest(&rust_text::sources(tree.files()));
    complaints.extend(circles::check(&circles));
    complaints.extend(folders::check(tree.files()));
    complaints.sort();
    for circle in &circles {
        println!("{}", circle.line());
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => {
            println!(
                "tidy: {} files, nothing to complain about",
                tree.files().len()
            );
            Ok(())
        }
        1 => Err(Failure::Refused("tidy has 1 complaint".to_owned())),
        n => Err(Failure::Refused(format!("tidy has {n} complaints"))),
    }
}

fn complaints_about_files(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.files() {
        complaints.extend(length::check(file));
        complaints.extend(columns::check(file));
        complaints.extend(whitespace::check(file));
        complaints.extend(words::check(file));
        complaints.extend(vocabulary::check_prose(file));
    }
    for source in rust_text::sources(tree.files()) {
        complaints.extend(purity::check(&source));
        complaints.extend(calls::check(&source));
        complaints.extend(vocabulary::check_names(&source));
    }
    complaints
}
