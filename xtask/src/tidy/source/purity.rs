//! Pure crates cannot name a clock, a socket, a thread or a randomly ordered map: they are `no_std`
//! outside tests, and nothing in them brings `std` back.

use crate::tidy::complaint::Complaint;
use crate::tidy::source::rust_text::{Source, has_word};

/// Rooms that decide and never act.
const PURE: [&str; 6] = ["wire", "icap", "semantics", "extend", "policy", "measure"];

const HEAD: &str = "#![cfg_attr(not(test), no_std)]";

pub(crate) fn check(source: &Source<'_>) -> Vec<Complaint> {
    let path = &source.file.path;
    let Some(inside) = PURE
        .iter()
        .find_map(|room| path.strip_prefix(&format!("crates/{room}/")))
    else {
        return Vec::new();
    };
    let mut complaints = Vec::new();
    if inside == "src/lib.rs" && first_code(source) != Some(HEAD) {
        let what = "a pure crate that is not `no_std`";
        complaints.push(Complaint::new(
            path,
            1,
            what,
            format!("begin the file with `{HEAD}`"),
        ));
    }
    let code = source.lines().filter(|(_, _, is_test)| !is_test);
    complaints.extend(
        code.filter(|(_, code, _)| names_std(code))
            .map(|(number, _, _)| {
                let instead =
                    "use core or alloc, or take the value as an argument from the crate that acts";
                Complaint::new(path, number, "`std` in a pure crate", instead)
            }),
    );
    complaints
}

fn first_code<'a>(source: &'a Source<'_>) -> Option<&'a str> {
    source
        .code
        .iter()
        .map(|line| line.trim())
        .find(|line| !line.is_empty())
}

fn names_std(code: &str) -> bool {
    let path = code
        .match_indices("std::")
        .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    let code = code.trim();
    path || (code.contains("extern crate") && has_word(code, "std")) || code.starts_with("use std;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;
    use crate::tidy::tree::File;

    fn check_text(path: &str, text: &str, expected: &[(usize, &str)]) {
        let file = File::new(path, text);
        expect(&check(&Source::new(&file, false)), expected);
    }

    #[test]
    fn pure_crate_without_the_no_std_attribute_is_refused() {
        let without = "//! Docs.\nextern crate alloc;\n";
        check_text("crates/wire/src/lib.rs", without, &[(1, "not `no_std`")]);
        check_text("crates/wire/src/head.rs", without, &[]);
        check_text("crates/proxy/src/lib.rs", without, &[]);
    }

    #[test]
    fn no_std_attribute_may_precede_or_follow_the_docs() {
        check_text(
            "crates/policy/src/lib.rs",
            "#![cfg_attr(not(test), no_std)]\n//! Docs.\n",
            &[],
        );
        check_text(
            "crates/policy/src/lib.rs",
            "//! Docs.\n\n#![cfg_attr(not(test), no_std)]\n",
            &[],
        );
    }

    #[test]
    fn std_outside_tests_is_refused() {
        let path = "crates/semantics/src/time.rs";
        check_text(
            path,
            "use core::fmt;\nuse std::time::Instant;\n",
            &[(2, "`std`")],
        );
        check_text(path, "fn f() -> ::std::io::Error {}\n", &[(1, "`std`")]);
        check_text(path, "#[macro_use] extern crate std;\n", &[(1, "`std`")]);
    }

    #[test]
    fn std_in_tests_comments_and_strings_is_accepted() {
        let path = "crates/measure/src/time.rs";
        check_text(path, "/// unlike `std::time`\nfn f() {} // std::io\n", &[]);
        check_text(
            path,
            "#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}\n",
            &[],
        );
        check_text(path, "use my_std::x;\nconst S: &str = \"std::x\";\n", &[]);
    }
}
