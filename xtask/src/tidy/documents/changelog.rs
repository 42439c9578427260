//! CHANGELOG.md has a place for the next line.

use crate::tidy::complaint::Complaint;

const FILE: &str = "CHANGELOG.md";

/// `text` is `None` when there is no such file.
pub(crate) fn check(text: Option<&str>) -> Option<Complaint> {
    let complaint = |what, instead| Some(Complaint::new(FILE, 1, what, instead));
    let Some(text) = text else {
        return complaint("is missing", "write it, with a section `## Unreleased`");
    };
    let is_section = |line: &str| {
        let title = line.strip_prefix("## ").unwrap_or_default();
        title.trim().trim_matches(['[', ']']) == "Unreleased"
    };
    if text.lines().any(is_section) {
        return None;
    }
    let instead = "add `## Unreleased` above the newest release";
    complaint("there is no section for changes to come", instead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;

    fn check_text(text: Option<&str>, expected: &[(usize, &str)]) {
        let complaints: Vec<Complaint> = check(text).into_iter().collect();
        expect(&complaints, expected);
    }

    #[test]
    fn changelog_without_an_unreleased_section_is_refused() {
        check_text(Some("# Changelog\n\n## Unreleased\n"), &[]);
        check_text(Some("# Changelog\n\n## [Unreleased]\n"), &[]);
        check_text(
            Some("# Changelog\n\nUnreleased\n## 0.1.0\n"),
            &[(1, "no section")],
        );
        check_text(None, &[(1, "is missing")]);
    }
}
