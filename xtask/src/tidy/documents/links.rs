//! A relative link in a document leads to a file that is there.

use crate::tidy::complaint::Complaint;
use crate::tidy::tree::{File, Tree};

/// `exists` answers for paths relative to the root.
pub(crate) fn check(tree: &Tree, exists: impl Fn(&str) -> bool) -> Vec<Complaint> {
    let documents = tree
        .files()
        .iter()
        .filter(|file| file.path.ends_with(".md"));
    let complaints = documents.flat_map(|file| check_file(file, &exists));
    complaints.collect()
}

fn check_file(file: &File, exists: &impl Fn(&str) -> bool) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut in_code = false;
    for (number, line) in file.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let prose = without_code(line);
        for target in targets(&prose).filter(|target| is_relative(target)) {
            let path = target.split('#').next().unwrap_or_default();
            let found = resolve(&file.path, path).is_some_and(|path| exists(&path));
            if !path.is_empty() && !found {
                let what = format!("the link `{target}` leads nowhere");
                complaints.push(file.complaint(number, what, "correct or remove it"));
            }
        }
    }
    complaints
}

/// The line with `code spans` blanked out.
fn without_code(line: &str) -> String {
    let blank = |(index, part): (usize, &str)| match index % 2 {
        0 => part.to_owned(),
        _ => " ".repeat(part.len()),
    };
    line.split('`').enumerate().map(blank).collect()
}

/// Targets of `[text](target)` and of `[label]: target`.
fn targets(prose: &str) -> impl Iterator<Item = &str> {
    let ends = prose.split("](").skip(1);
    let inline = ends.filter_map(|rest| rest.split([')', ' ']).next());
    let label = prose.trim_start().strip_prefix('[');
    let reference = label.and_then(|rest| rest.split_once("]: "));
    inline.chain(reference.and_then(|(_, target)| target.split_whitespace().next()))
}

fn is_relative(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    let has_scheme = scheme.is_some_and(|scheme| scheme.chars().all(char::is_alphanumeric));
    !has_scheme && !target.starts_with('/')
}

/// `path` as seen from the directory of `from`; `None` when it points outside the repository.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;

    fn check_text(path: &str, text: &str, expected: &[(usize, &str)]) {
        let tree = Tree::new(vec![File::new(path, text)]);
        let exists = |path: &str| ["README.md", "docs", "docs/a.md", "LICENSE-MIT"].contains(&path);
        expect(&check(&tree, exists), expected);
    }

    #[test]
    fn link_to_a_missing_file_is_refused() {
        check_text(
            "README.md",
            "x\n[a](docs/b.md) and [b](docs/a.md)\n",
            &[(2, "`docs/b.md`")],
        );
        check_text(
            "docs/a.md",
            "[a](../README.md#top)\n[b](README.md)\n",
            &[(2, "`README.md`")],
        );
        check_text(
            "docs/a.md",
            "[a](../../outside.md)\n",
            &[(1, "`../../outside.md`")],
        );
        check_text("README.md", "[label]: docs/b.md\n", &[(1, "`docs/b.md`")]);
    }

    #[test]
    fn external_links_anchors_and_code_are_not_checked() {
        check_text(
            "README.md",
            "[a](https://example.com/x) [b](#section) [c](docs/)\n",
            &[],
        );
        check_text("README.md", "```\n[a](no.md)\n```\nand `[a](no.md)`\n", &[]);
        check_text(
            "README.md",
            "- [ ] an open box\n[a](mailto:a@example.com)\n",
            &[],
        );
    }
}
