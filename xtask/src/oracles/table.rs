//! Tables in Markdown.

use std::collections::BTreeMap;

/// A row: cells by the name of their column.
pub(crate) type Row<'a> = BTreeMap<&'a str, &'a str>;

/// The rows of the first table whose columns begin with `columns`; empty if there is none.
pub(crate) fn find<'a>(text: &'a str, columns: &[&str]) -> Vec<Row<'a>> {
    let mut lines = text.lines();
    let head = lines
        .by_ref()
        .map(cells)
        .find(|cells| cells.starts_with(columns));
    let Some(head) = head else {
        return Vec::new();
    };
    let is_row = |line: &&str| line.starts_with('|');
    // the first is the line that divides
    let rows = lines.take_while(is_row).skip(1);
    rows.map(|line| head.iter().copied().zip(cells(line)).collect())
        .collect()
}

/// The cells of a line, which is a row.
pub(crate) fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').unwrap_or_default();
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "| trace | key |\n|---|---|\n| z | 0 |\n\n| trace | lines |\n|---|---|\n| a | 1 |\n| b | 2 |\nend\n| c | 3 |\n";

    #[test]
    fn rows_are_found_only_in_the_table_with_the_given_heading() {
        let rows = find(TEXT, &["trace", "lines"]);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1]["trace"], "b");
        assert_eq!(rows[1]["lines"], "2");
        assert!(find(TEXT, &["lines"]).is_empty());
    }
}
