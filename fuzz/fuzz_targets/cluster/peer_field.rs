//! Invariant: a value of `Weir-Peer` is refused, or what was read is written so that the same is
//! read again; a value of `Cache-Status` that is a list of at least one member says hit or not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_semantics::{PeerReport, PeerRequest, is_hit, is_node_name};

fuzz_target!(|value: &[u8]| {
    let mut out = Vec::new();
    if let Some(request) = PeerRequest::read(value) {
        assert!(is_node_name(request.node));
        request.write(&mut out);
        assert_eq!(PeerRequest::read(&out), Some(request));
    }
    out.clear();
    if let Some(report) = PeerReport::read(value) {
        assert!(is_node_name(report.node));
        report.write(&mut out);
        assert_eq!(PeerReport::read(&out), Some(report));
    }
    let _ = is_hit(value);
});
