//! Everything we build from has a licence on the list in deny.toml and comes from a registry.
//!
//! The file has the format of the well-known tool, so that the tool can be run beside this check;
//! here only `licenses.allow` is read, and nothing has to be downloaded.

use crate::tidy::complaint::Complaint;
use crate::tidy::crates::metadata::Metadata;
use crate::tidy::source::spdx;
use serde::Deserialize;

const FILE: &str = "deny.toml";

#[derive(Debug, Deserialize)]
struct Deny {
    licenses: Licences,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
}

/// `text` is `None` when there is no such file.
pub(crate) fn check(text: Option<&str>, metadata: &Metadata) -> Vec<Complaint> {
    let deny: Deny = match text.map(toml::from_str) {
        Some(Ok(deny)) => deny,
        Some(Err(error)) => {
            let what = format!("cannot be read: {}", error.message());
            return vec![Complaint::new(FILE, 1, what, "correct it")];
        }
        None => {
            let instead = "write it, with the licences we accept in `licenses.allow`";
            return vec![Complaint::new(FILE, 1, "is missing", instead)];
        }
    };
    let mut complaints = Vec::new();
    for package in metadata.built() {
        let name = format!("`{} {}`", package.name, package.version);
        let source = package.source.as_deref();
        if source.is_some_and(|source| !source.starts_with("registry+")) {
            let what = format!("{name} does not come from a registry");
            let instead = "depend on a published version";
            complaints.push(Complaint::new("Cargo.lock", 1, what, instead));
        }
        let licence = package.license.as_deref().unwrap_or_default();
        if !spdx::is_accepted(licence, &deny.licenses.allow) {
            let what = format!("{name} has the licence `{licence}`, which is not on the list");
            let instead = "do without the package, or argue for the licence and add it here";
            complaints.push(Complaint::new(FILE, 1, what, instead));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::metadata::example;
    use super::*;
    use crate::tidy::complaint::expect;

    const LIST: &str = "[licenses]\nallow = [\"MIT\"]\n";

    fn check_package(licence: Option<&str>, source: Option<&str>, expected: &[(usize, &str)]) {
        let metadata = example(&[("a", licence, source, &[])]);
        expect(&check(Some(LIST), &metadata), expected);
    }

    #[test]
    fn unlisted_or_missing_licence_is_refused() {
        check_package(Some("MIT"), None, &[]);
        check_package(Some("MIT OR GPL-3.0-only"), Some("registry+x"), &[]);
        check_package(
            Some("GPL-3.0-only"),
            Some("registry+x"),
            &[(1, "`a 1.0.0` has the licence")],
        );
        check_package(None, Some("registry+x"), &[(1, "licence ``")]);
    }

    #[test]
    fn package_from_git_is_refused() {
        check_package(
            Some("MIT"),
            Some("git+x"),
            &[(1, "does not come from a registry")],
        );
    }

    #[test]
    fn missing_or_unreadable_licence_list_is_reported() {
        let metadata = example(&[]);
        expect(&check(None, &metadata), &[(1, "is missing")]);
        expect(
            &check(Some("[licenses]\n"), &metadata),
            &[(1, "cannot be read")],
        );
    }
}
