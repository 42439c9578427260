//! The reference of filters is what the code says: `WEIR_BLESS=1` writes it anew.

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
