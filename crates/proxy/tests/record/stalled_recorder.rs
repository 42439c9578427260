//! A recorder that does not keep up.

use crate::support::{RawClient, Running, ScriptedOrigin};
use std::sync::mpsc::{self, Receiver, Sender};
use weir_measure::{Metric, Unrecorded};
use weir_proxy::record::{Finished, QUEUE_MAX, Recorder, Tally};

/// A recorder that stands still at its first request until it is let go.
struct Still {
    /// Says that the first is there.
    begun: Sender<()>,
    go: Option<Receiver<()>>,
    taken: Sender<u32>,
}

impl Recorder for Still {
    fn take(&mut self, finished: &Finished, tally: &Tally) {
        if let Some(go) = self.go.take() {
            self.begun.send(()).expect("the test waits");
            go.recv().expect("it is let go");
        }
        tally.recorded();
        self.taken.send(finished.sequence).expect("the test waits");
    }

    fn tick(&mut self, _: &Tally) {}

    fn end(&mut self, _: &Tally) {}
}

#[test]
fn stalled_recorder_blocks_no_request_and_dropped_ones_are_counted() {
    const TOO_MANY: usize = 100;
    let origin = ScriptedOrigin::new();
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let (taken, all_taken) = mpsc::channel();
    let recorder = Still {
        begun,
        go: Some(may_go),
        taken,
    };
    let proxy = Running::forward_recorded(Box::new(recorder), |_| {});
    let url = format!("http://{}/", origin.address());
    let request = format!("GET {url} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.address());
    let mut client = proxy.client();
    client.send(&request);
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\nx";
    let (_hop, _) = origin.answer(answer);
    assert_eq!(client.read_response().status(), 200);
    has_begun.recv().expect("it was told");
    // one is in its hands, the queue is empty: from here on it fills
    let count = QUEUE_MAX + TOO_MANY;
    let mut sender = RawClient::from_stream(client.stream.try_clone().expect("a socket"));
    let sending = std::thread::spawn(move || sender.send(request.repeat(count)));
    for _ in 0..count {
        assert!(client.read_response().is_hit());
    }
    sending.join().expect("sent");
    let dropped = Metric::Unrecorded(Unrecorded::QueueFull);
    assert_eq!(proxy.count(dropped), TOO_MANY as u64);
    assert_eq!(proxy.count(Metric::RecordQueued), QUEUE_MAX as u64);
    assert_eq!(proxy.count(Metric::Recorded), 0);
    go.send(()).expect("it waits");
    drop(client);
    assert!(proxy.stop().join().expect("no panic"), "something was cut");
    // the end waits until all is written that was taken
    let sequences: Vec<u32> = all_taken.try_iter().collect();
    let expected: Vec<u32> = (1..).take(QUEUE_MAX + 1).collect();
    assert!(sequences == expected, "{} were told", sequences.len());
}
