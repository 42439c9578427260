//! Rules of the operator that a hit is measured beside: of hosts, and of paths alone, which are the
//! dear ones.

use std::fmt::Write as _;

/// `count` rules as tables of a configuration. The last one is for `path`, if there is one; the
/// others are for no target that is requested: four in ten for a host, two for hosts below a name,
/// three for paths with a prefix, one for paths that fit a glob.
pub(super) fn tables(count: u16, path: Option<&str>) -> String {
    let others = count.saturating_sub(u16::from(path.is_some()));
    let mut tables = String::new();
    for number in 0..others {
        let matcher = match number % 10 {
            0..4 => format!("host = [\"host-{number}.test\"]"),
            4..6 => format!("host = [\"*.domain-{number}.test\"]"),
            6..9 => format!("path = [\"/folder-{number}/files\"]"),
            _ => format!("path = [\"/**/archive-{number}/**.deb\"]"),
        };
        table(&mut tables, &matcher);
    }
    if let Some(path) = path {
        table(&mut tables, &format!("path = [\"{path}\"]"));
    }
    tables
}

fn table(tables: &mut String, matcher: &str) {
    // writing to a string cannot fail
    let _ = writeln!(
        tables,
        "[[rule]]\n{matcher}\nlifetime = {{ default = \"1h\" }}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_rules_are_made_of_which_one_is_for_the_path() {
        let check = |count: u16, path: Option<&str>, expected: usize| {
            let text = tables(count, path);
            assert_eq!(text.matches("[[rule]]").count(), expected, "{text}");
            let of_path = text.matches("path = [\"/here\"]").count();
            assert_eq!(of_path, usize::from(path.is_some()), "{text}");
        };
        check(0, None, 0);
        check(1, Some("/here"), 1);
        check(100, None, 100);
        check(100, Some("/here"), 100);
    }
}
