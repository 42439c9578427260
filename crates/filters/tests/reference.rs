//! Documents are what the code says. `WEIR_BLESS=1` writes the reference of filters anew.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn reference_of_filters_is_printed_from_the_code() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/filters.md"
    );
    let expected = weir_filters::reference();
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(path, &expected).expect("written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/reference/filters.md is out of date; write it with WEIR_BLESS=1"
    );
}

#[test]
fn native_module_of_the_tutorial_is_the_example_that_is_compiled() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file");
    let tutorial = read("docs/extend.md");
    let code = tutorial.split("```rust\n").nth(1).expect("a block of code");
    let code = code.split("```").next().expect("its end");
    assert!(
        read("crates/modules/examples/greeting.rs").starts_with(code),
        "docs/extend.md differs from crates/modules/examples/greeting.rs"
    );
}
