//! Calls that have no place: printing from a library, sleeping in a test.

use crate::tidy::complaint::Complaint;
use crate::tidy::source::rust_text::{Source, has_word, is_word_at};

const PRINTING: [&str; 4] = ["println!", "eprintln!", "print!", "eprint!"];
const SLEEPING: [&str; 3] = ["sleep", "sleep_until", "sleep_ms"];

pub(crate) fn check(source: &Source<'_>) -> Vec<Complaint> {
    let path = &source.file.path;
    let may_print = may_print(path);
    let mut complaints = Vec::new();
    for (number, code, is_test) in source.lines() {
        if !may_print && let Some(call) = PRINTING.iter().find(|call| has_macro(code, call)) {
            let what = format!("`{call}` outside the command line");
            let instead =
                "return the value and let crates/cli print it; a test says it in its assertion";
            complaints.push(Complaint::new(path, number, what, instead));
        }
        if is_test && SLEEPING.iter().any(|name| calls(code, name)) {
            let instead = "wait on a barrier, a counter or the manual clock";
            complaints.push(Complaint::new(path, number, "a test that sleeps", instead));
        }
    }
    complaints
}

/// Terminals belong to `cli`, `testbed` and `xtask`; a build script talks to cargo by printing.
fn may_print(path: &str) -> bool {
    path.starts_with("crates/cli/src/")
        || path.starts_with("crates/testbed/")
        || path.starts_with("xtask/")
        || path.ends_with("/build.rs")
        || path.contains("/examples/")
}

fn has_macro(code: &str, call: &str) -> bool {
    let name = call.trim_end_matches('!');
    code.match_indices(call)
        .any(|(at, _)| is_word_at(code, at, name))
}

fn calls(code: &str, name: &str) -> bool {
    has_word(code, name)
        && code.match_indices(name).any(|(at, _)| {
            is_word_at(code, at, name)
                && code[at + name.len()..].trim_start().starts_with('(')
                // the host of a test defines what its module may call
                && !code[..at].trim_end().ends_with("fn")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;
    use crate::tidy::tree::File;

    fn check_text(path: &str, text: &str, expected: &[(usize, &str)]) {
        let file = File::new(path, text);
        let whole_is_test = path.contains("/tests/");
        expect(&check(&Source::new(&file, whole_is_test)), expected);
    }

    #[test]
    fn printing_outside_the_command_line_is_refused() {
        let text = "fn f() {\n    eprintln!(\"skipped\");\n}\n";
        check_text("crates/proxy/src/worker.rs", text, &[(2, "`eprintln!`")]);
        check_text("crates/proxy/tests/live.rs", text, &[(2, "`eprintln!`")]);
        check_text("crates/cli/src/main.rs", text, &[]);
        check_text("xtask/src/main.rs", text, &[]);
        check_text("crates/proxy/build.rs", text, &[]);
    }

    #[test]
    fn other_macros_comments_and_strings_are_accepted() {
        let text = "// println!\nfn f() { writeln!(out, \"println!\"); my_print!(); }\n";
        check_text("crates/proxy/src/worker.rs", text, &[]);
    }

    #[test]
    fn sleep_in_a_test_is_refused() {
        let text =
            "fn f() {\n    std::thread::sleep(d);\n    tokio::time::sleep_until (t).await;\n}\n";
        let expected = [(2, "sleeps"), (3, "sleeps")];
        check_text("crates/proxy/tests/live.rs", text, &expected);
        check_text("crates/proxy/src/worker.rs", text, &[]);
        check_text(
            "crates/proxy/tests/live.rs",
            "fn f() { asleep(); no_sleep(); }\nfn sleep(&self) {}\n",
            &[],
        );
    }
}
