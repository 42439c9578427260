//! Any bytes, and traces with other bits here and there, for the reader of traces.

mod trace_invariants;

use proptest::prelude::*;
use std::io::Write;
use std::sync::LazyLock;
use trace_invariants::{VERSION_1, check, damaged, example, unsealed};
use weir_trace::{Column, Columns, Reader, Row, VERSION};

static SEALED: LazyLock<Vec<u8>> = LazyLock::new(example);
static UNSEALED: LazyLock<Vec<u8>> = LazyLock::new(|| unsealed(example()));

#[test]
fn intact_trace_passes_the_reader_invariants_sealed_and_unsealed() {
    for bytes in [&SEALED, &UNSEALED] {
        assert_eq!(open(bytes).row_count(), 25);
        check(bytes);
    }
    assert_ne!(*SEALED, *UNSEALED, "the seal is still on it");
}

fn open(bytes: &[u8]) -> Reader {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).expect("it is written");
    Reader::from_file(file, "cannot read trace".to_owned()).expect("it is opened")
}

fn rows(reader: &Reader) -> Vec<Row> {
    let rows = reader.rows(Columns::ALL);
    rows.map(|row| row.expect("a row")).collect()
}

#[test]
fn trace_of_version_1_is_read_without_the_columns_of_later_versions() {
    check(VERSION_1);
    let (old, new) = (open(VERSION_1), open(&SEALED));
    assert_eq!((old.meta().version, new.meta().version), (1, VERSION));
    for column in Column::ALL {
        let is_later = matches!(column, Column::node_choice | Column::next_hop_choice);
        assert_eq!(old.has(*column), !is_later, "{}", column.name());
    }
    let mut expected = rows(&new);
    assert!(expected.iter().any(|row| row.next_hop_choice.is_some()));
    for row in &mut expected {
        row.next_hop_choice = None;
    }
    assert_eq!(rows(&old), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        has_magic in any::<bool>(),
    ) {
        let magic = if has_magic { &b"PAR1"[..] } else { &[] };
        check(&[magic, &bytes, magic].concat());
    }

    #[test]
    fn damaged_trace_is_read_or_refused_without_a_panic(
        changes in proptest::collection::vec((any::<usize>(), 1_u8..=255), 1..6),
        is_sealed in any::<bool>(),
        end in 0_usize..400,
    ) {
        let bytes = if is_sealed { SEALED.clone() } else { UNSEALED.clone() };
        // most of the damage where it hurts: the footer is at the end
        let footer = bytes.len().saturating_sub(FOOTER_BYTES);
        let changes = changes.into_iter().map(|(place, flip)| match place % 2 {
            0 => (place, flip),
            _ => (footer + place / 2 % FOOTER_BYTES, flip),
        });
        let mut bytes = damaged(bytes, changes);
        // one in twenty is cut off
        bytes.truncate(bytes.len().saturating_sub(end.saturating_sub(380)));
        check(&bytes);
    }
}

/// About what the footer takes: three row groups of fifty columns.
const FOOTER_BYTES: usize = 12_000;
