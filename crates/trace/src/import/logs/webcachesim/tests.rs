use crate::import::tests::{Open, all, everyway};
use crate::import::{Format, Hide};

#[test]
fn webcachesim_line_gives_time_target_and_size() {
    let found = everyway(b"109 26 1\n139\t3  200000000000 7.5 8\n\n139 26 1");
    let rows: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0].arrival_us, 109_000_000);
    assert_eq!(rows[0].target, Open.target(b"26"));
    assert_eq!(rows[2].target, rows[0].target);
    assert_eq!(rows[1].received_bytes, Some(200_000_000_000));
    assert_eq!((rows[1].method, rows[1].client), (None, None));
}

#[test]
fn damaged_line_is_reported_with_its_cause() {
    for (line, says) in [
        ("109 26", "three fields"),
        ("now 26 1", "time `now`"),
        ("109 x 1", "id `x`"),
        ("109 26 1k", "size `1k`"),
        ("109 26 -", "size `-`"),
    ] {
        let found = all(line.as_bytes(), Some(Format::Webcachesim));
        let damaged = found[0].as_ref().unwrap_err();
        assert!(damaged.to_string().contains(says), "{damaged}");
    }
}
