//! Response times of other requests beside hostile filters: their p99 at most doubles.
//!
//! By `make hostile-filters` on a quiet machine: it measures times, which tests of a busy machine
//! must not. It prints a table.

#[path = "live/bed.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod bed;
#[path = "live/http.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod http;
#[path = "live/text.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod text;

use bed::{Bed, get, text as text_option};
use std::io::Write as _;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use text::{TextFilter, callback, data, heads_only};

/// Requests whose times are taken, for each filter.
const REQUESTS: usize = 20_000;

/// Other requests for each one of the filter: one that has ended answers at once, and must not have
/// more requests than one that works, or the load of its client would be measured.
const OTHERS: usize = 10;

/// Times below this are not told apart: a thread that is scheduled late takes as long.
const RESOLUTION: Duration = Duration::from_micros(250);

/// Filters that fail or take more than they may, by what they do.
fn filters() -> Vec<(&'static str, String)> {
    let on_request = |body: &str| callback("proxy_on_request_headers", body);
    let ticking = "(func (export \"proxy_on_configure\") (param i32 i32) (result i32)
            (drop (call $proxy_set_tick_period_milliseconds (i32.const 1))) (i32.const 1))
         (func (export \"proxy_on_tick\") (param i32) (local $count i32)
            (loop $more
                (local.set $count (i32.add (local.get $count) (i32.const 1)))
                (br_if $more (i32.lt_u (local.get $count) (i32.const 1000)))))";
    let fields = format!(
        "{}{}",
        data(100, "x-a"),
        callback(
            "proxy_on_response_headers",
            "(local $count i32)
             (loop $more
                (drop (call $proxy_add_header_map_value (i32.const 2) (i32.const 100)
                    (i32.const 3) (i32.const 100) (i32.const 3)))
                (local.set $count (i32.add (local.get $count) (i32.const 1)))
                (br_if $more (i32.lt_u (local.get $count) (i32.const 1000000))))
             (i32.const 0)"
        )
    );
    let memory = on_request(
        "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
         unreachable",
    );
    let nothing = on_request("(i32.const 0)");
    vec![
        ("nothing", nothing),
        (
            "endless loop",
            on_request("(loop $l (br $l)) (i32.const 0)"),
        ),
        ("endless memory", memory),
        ("trap", on_request("unreachable")),
        ("a million fields", fields),
        ("ticks of 1 ms", ticking.to_owned()),
    ]
}

/// Times of requests that do not pass the filter, while others do all the time.
fn p99_beside(body: &str) -> Duration {
    let file = TextFilter::new(body);
    let options = [heads_only(), vec![("memory", text_option("16MiB"))]].concat();
    let mut table = file.table(&options);
    table.path = "/f".parse().expect("a path");
    table.deadline = "10ms".parse().expect("a span");
    let bed = Bed::new(vec![table]);
    assert_eq!(bed.get("/other").status(), 200);
    let mut times = Vec::with_capacity(REQUESTS);
    let (turn, turns) = sync_channel(1);
    std::thread::scope(|scope| {
        let bed = &bed;
        scope.spawn(move || {
            let mut client = bed.client();
            while turns.recv().is_ok() {
                client.ask(get("/f", ""));
            }
        });
        let mut client = bed.client();
        let request = get("/other", "");
        for number in 0..REQUESTS {
            if number.is_multiple_of(OTHERS) {
                // none while the filter still works on the one before
                let _ = turn.try_send(());
            }
            let begun = Instant::now();
            assert_eq!(client.ask(&request).status(), 200);
            times.push(begun.elapsed());
        }
        drop(turn);
    });
    times.sort_unstable();
    times[REQUESTS * 99 / 100]
}

#[test]
fn p99_of_others_at_most_doubles_beside_hostile_filters() {
    let mut baseline = None;
    let mut failed = Vec::new();
    for (what, body) in filters() {
        let p99 = p99_beside(&body);
        let baseline = *baseline.get_or_insert(p99);
        let _ = writeln!(std::io::stderr(), "{what:<20} p99 {p99:?}");
        if p99 > (2 * baseline).max(RESOLUTION) {
            failed.push(what);
        }
    }
    assert!(
        failed.is_empty(),
        "p99 more than doubles beside: {failed:?}"
    );
}
