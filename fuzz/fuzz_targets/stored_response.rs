//! Invariant: whatever stands in a store beside content is refused or read; what was read as a
//! response is written and read again as the same one, and its head can be sent: it ends in a field
//! line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_policy::{Now, Tick};
use weir_semantics::Timestamp;
use weir_store::StoredContent;
use weir_store::record::{Record, encode};

fuzz_target!(|input: &[u8]| {
    let now = Now {
        wall: Timestamp(1_767_225_600),
        tick: Tick(5_000),
    };
    let Ok(record) = Record::decode(input, now) else {
        return;
    };
    match record {
        Record::Rules(rules) => {
            assert_eq!(rules.encode(), input);
        }
        Record::Response(record) => {
            assert!(record.head.ends_with(b"\r\n") && !record.head.ends_with(b"\r\n\r\n"));
            let vary = record.vary.clone();
            let response = record.clone().with_body(StoredContent::default());
            let target = record.target.as_deref();
            let meta = encode(&response, vary.as_ref(), target, now);
            let again = Record::decode(&meta, now);
            let Ok(Record::Response(again)) = again else {
                panic!("{again:?}");
            };
            assert_eq!(again.head, record.head);
            assert_eq!(again.vary, record.vary);
            assert_eq!(again.target, record.target);
            assert_eq!(again.facts.current_age(now), record.facts.current_age(now));
        }
    }
});
