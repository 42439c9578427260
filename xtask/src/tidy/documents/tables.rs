//! A table of a document is that of the newest record.

use crate::failure::Failure;
use crate::tidy::complaint::Complaint;
use crate::tidy::tree::Tree;

/// `with_newest` answers a document's path and text with the text that it should have.
pub(in crate::tidy) fn check(
    tree: &Tree,
    with_newest: impl Fn(&str, &str) -> Result<String, Failure>,
) -> Result<Vec<Complaint>, Failure> {
    let mut complaints = Vec::new();
    let documents = tree
        .files()
        .iter()
        .filter(|file| file.path.ends_with(".md"));
    for file in documents {
        let new = with_newest(&file.path, &file.text)?;
        let differs = file
            .lines()
            .zip(new.lines())
            .find(|((_, old), new)| old != new);
        if let Some(((number, _), _)) = differs.filter(|_| new != file.text) {
            complaints.push(Complaint::new(
                &file.path,
                number,
                "the table is not that of the newest record",
                "run `cargo xtask tables`",
            ));
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;
    use crate::tidy::tree::File;

    #[test]
    fn outdated_table_in_a_document_is_refused() {
        let tree = Tree::new(vec![
            File::new("a.md", "one\nold\n"),
            File::new("b.md", "old\n"),
        ]);
        let new = |path: &str, text: &str| {
            Ok(match path {
                "a.md" => text.replace("old", "new"),
                _ => text.to_owned(),
            })
        };
        let complaints = check(&tree, new).expect("no record is read");
        expect(&complaints, &[(2, "not that of the newest record")]);
    }
}
