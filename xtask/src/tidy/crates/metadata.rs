//! What `cargo metadata` says about this workspace and everything it is built from on this kind of
//! machine.

use serde::Deserialize;
use std::process::Command;
use xtask::command::{json, output};
use xtask::failure::Failure;
use xtask::root;

/// The part of the answer that the rules read.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    id: String,
    /// SPDX expression; `None` when the package names none.
    pub(crate) license: Option<String>,
    /// `None` for a package of this repository.
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` is a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
    /// Set for a package of this repository.
    pub(crate) path: Option<String>,
}

impl Metadata {
    /// Packages of this repository.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }

    /// Packages that are really built here, members and dependencies alike.
    pub(crate) fn built(&self) -> impl Iterator<Item = &Package> {
        let is_node = |id: &String| self.resolve.nodes.iter().any(|node| node.id == *id);
        self.packages
            .iter()
            .filter(move |package| is_node(&package.id))
    }
}

/// Runs cargo for the platform of this machine only: nothing is downloaded for others.
pub(crate) fn read() -> Result<Metadata, Failure> {
    let mut command = root::cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]);
    json(command.args(["--filter-platform", &host()?]))
}

fn host() -> Result<String, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = output(Command::new(rustc).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Failure::Outside("rustc -vV names no host".to_owned()))
}

/// For the tests of the rules: `(name, licence, source, [(dependency, kind)])`; all without a
/// source are members.
#[cfg(test)]
pub(in crate::tidy) fn example(packages: &[ExamplePackage<'_>]) -> Metadata {
    let ids = |only_members: bool| {
        let chosen = packages
            .iter()
            .filter(move |package| !only_members || package.2.is_none());
        chosen.map(|package| package.0.to_owned())
    };
    let dependency = |&(name, kind): &(&str, Option<&str>)| Dependency {
        name: name.to_owned(),
        kind: kind.map(str::to_owned),
        path: name.starts_with("weir-").then(|| "somewhere".to_owned()),
    };
    Metadata {
        workspace_members: ids(true).collect(),
        resolve: Resolve {
            nodes: ids(false).map(|id| Node { id }).collect(),
        },
        packages: packages
            .iter()
            .map(|(name, license, source, dependencies)| Package {
                name: (*name).to_owned(),
                version: "1.0.0".to_owned(),
                id: (*name).to_owned(),
                license: license.map(str::to_owned),
                source: source.map(str::to_owned),
                dependencies: dependencies.iter().map(dependency).collect(),
            })
            .collect(),
    }
}

#[cfg(test)]
pub(super) type ExamplePackage<'a> = (
    &'a str,
    Option<&'a str>,
    Option<&'a str>,
    &'a [(&'a str, Option<&'a str>)],
);
