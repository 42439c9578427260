//! Which responses are written to disk, live: all, those asked for again, small ones.

use super::{Parts, wait_until_loaded};
use crate::support::{Config, Weir};

/// Ends the process and starts another: what is a hit then was on disk.
fn restart(mut weir: Weir, config: &Config) -> Weir {
    assert!(weir.stop().success());
    let weir = Weir::serve(config);
    wait_until_loaded(&weir);
    weir
}

#[test]
fn second_request_admission_writes_only_responses_requested_twice() {
    let parts = Parts::new();
    let config = parts.config().set("disk.admission", "\"second-request\"");
    let weir = Weir::serve(&config);
    // the large ones are too large for memory
    let (small, large) = (
        ["/once?size=5000", "/twice?size=5000"],
        ["/once?size=3000000", "/twice?size=3000000"],
    );
    for target in [small, large].concat() {
        parts.get(&weir, target);
    }
    for target in [small[1], large[1]] {
        let url = format!("http://{}{target}", super::HOST);
        weir.ask("POST", &format!("/purge?url={url}")).expect(200);
        assert!(!parts.get(&weir, target).1.is_hit());
        assert!(parts.get(&weir, target).1.is_hit());
    }
    let weir = restart(weir, &config);
    assert_eq!(weir.metrics().count("weir_disk_entries"), 2);
    for target in [small[1], large[1]] {
        assert!(parts.get(&weir, target).1.is_hit(), "{target}");
        assert_eq!(parts.origin.asked(target), 2);
    }
    for target in [small[0], large[0]] {
        assert!(!parts.get(&weir, target).1.is_hit(), "{target}");
    }
}

#[test]
fn response_up_to_the_size_limit_is_written_and_a_larger_one_is_not() {
    let parts = Parts::new();
    let small = parts
        .config()
        .set("disk.admission", "\"small\"")
        .set("disk.admission_largest", "\"10KiB\"");
    let all = parts.config().set("disk.largest_response", "\"2MiB\"");
    for (name, config, limit) in [("small", small, 10 << 10), ("all", all, 2 << 20)] {
        let target = |size: u32| format!("/{name}?size={size}");
        let weir = Weir::serve(&config);
        for size in [1, limit, limit + 1, 3_000_000] {
            parts.get(&weir, &target(size));
        }
        let weir = restart(weir, &config);
        for size in [1, limit] {
            assert!(parts.get(&weir, &target(size)).1.is_hit(), "{name} {size}");
        }
        for size in [limit + 1, 3_000_000] {
            assert!(!parts.get(&weir, &target(size)).1.is_hit(), "{name} {size}");
        }
    }
}
