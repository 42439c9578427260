//! The example of `docs/store-format.md` is what the code writes.

use super::{
    BodyId, NewExtent, NewRecord, PAGE_BYTES, StoreId, Volume, encode_embedded, verify_record,
};
use weir_policy::Digest;

const DOCUMENT: &str = include_str!("../../../../docs/store-format.md");

fn example() -> &'static str {
    let (_, rest) = DOCUMENT
        .split_once("<!-- example:begin -->\n```text\n")
        .expect("an example");
    rest.split_once("```").expect("its end").0
}

#[test]
fn documented_record_example_matches_the_encoded_bytes() {
    let volume = Volume {
        store: StoreId(*b"0123456789abcdef"),
        directory: 0,
    };
    let new = NewRecord {
        key: Digest(0x1111_1111_1111_1111, 0x2222_2222_2222_2222),
        generation: 7,
        purged: 5,
        meta: b"head",
    };
    let extent = NewExtent {
        from: 0,
        content: &[b"hello, disk\n"],
    };
    let (seal, at) = (volume.segment(1), PAGE_BYTES as u64);
    let bytes = encode_embedded(seal, at, &new, BodyId(7), &[extent]).unwrap();
    verify_record(&bytes, seal, at).unwrap();
    assert_eq!(dump(&bytes, at), example());
}

/// As `hexdump -C` prints it.
fn dump(bytes: &[u8], at: u64) -> String {
    let lines = (at..).step_by(16).zip(bytes.chunks(16));
    lines.fold(String::new(), |text, (at, line)| {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_shown = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        let shown = line.iter().map(|byte| {
            if is_shown(byte) {
                char::from(*byte)
            } else {
                '.'
            }
        });
        text + &format!(
            "{at:08x}  {}  |{}|\n",
            hex.join(" "),
            shown.collect::<String>()
        )
    })
}
