//! Every page in `docs/` stands in its index.

use crate::tidy::complaint::Complaint;
use crate::tidy::tree::Tree;

const INDEX: &str = "docs/README.md";

pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let index = tree.text(INDEX).unwrap_or_default();
    let pages = tree.files().iter().filter_map(|file| {
        let page = file.path.strip_prefix("docs/")?;
        (page.ends_with(".md") && file.path != INDEX).then_some(page)
    });
    let missing = pages.filter(|page| !index.contains(&format!("]({page})")));
    missing
        .map(|page| {
            let what = format!("the page `docs/{page}` is not in the index");
            Complaint::new(INDEX, 1, what, "add it where it should be read")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;
    use crate::tidy::tree::File;

    #[test]
    fn page_missing_from_the_index_is_refused() {
        let files = |index| {
            Tree::new(vec![
                File::new(INDEX, index),
                File::new("docs/a.md", ""),
                File::new("docs/b.md", ""),
                File::new("docs/data.txt", ""),
                File::new("README.md", ""),
            ])
        };
        expect(&check(&files("[a](a.md)\n")), &[(1, "`docs/b.md`")]);
        expect(&check(&files("[a](a.md) and [b](b.md)\n")), &[]);
    }
}
