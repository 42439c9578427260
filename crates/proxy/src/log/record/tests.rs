//! The queue's limits, and its end.

use super::*;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::{Receiver, Sender};

/// Something that happened, with so many bytes of heads.
fn finished(sequence: u32, heads_bytes: usize) -> Finished {
    Finished {
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        connection: 0,
        sequence,
        arrival_us: 0,
        reached: PhaseTimes::NONE,
        first_byte_us: None,
        last_byte_us: 0,
        next_hop: None,
        status: None,
        received_bytes: 0,
        next_hop_bytes: 0,
        request_content_bytes: None,
        end: End::Whole,
        is_persistent: false,
        node_choice: None,
        next_hop_choice: None,
        verdict: "hit",
        targeted: std::sync::Arc::default(),
        authority: None,
        request_bytes: heads_bytes,
        heads: vec![0; heads_bytes].into(),
    }
}

/// Takes nothing until it is released; reports what it took, and that it ended.
struct Held {
    go: Option<Receiver<()>>,
    said: Sender<Option<u32>>,
}

impl Recorder for Held {
    fn take(&mut self, finished: &Finished, tally: &Tally) {
        if let Some(go) = self.go.take() {
            self.said.send(Some(0)).expect("the test listens");
            go.recv().expect("the test lets go");
        }
        tally.recorded();
        let sequence = Some(finished.sequence);
        self.said.send(sequence).expect("the test listens");
    }

    fn tick(&mut self, _: &Tally) {}

    fn end(&mut self, _: &Tally) {
        self.said.send(None).expect("the test listens");
    }
}

fn held() -> (Record, Sender<()>, Receiver<Option<u32>>) {
    let (go, may_go) = mpsc::channel();
    let (said, heard) = mpsc::channel();
    let go_first = Some(may_go);
    let record = Record::start(Box::new(Held { go: go_first, said }));
    (record.expect("a thread"), go, heard)
}

#[test]
fn record_beyond_the_queue_byte_limit_is_dropped_and_counted() {
    let (record, go, heard) = held();
    record.tell(finished(1, 1));
    // it was taken from the queue
    assert_eq!(heard.recv(), Ok(Some(0)));
    let large = HEADS_BYTES_MAX;
    let fit = u32::try_from(QUEUE_BYTES_MAX / large).expect("few");
    for sequence in 2..2 + fit {
        record.tell(finished(sequence, large));
    }
    let count = |why| record.tally().count(why);
    assert_eq!(count(Unrecorded::QueueFull), 0);
    record.tell(finished(0, 1));
    assert_eq!(count(Unrecorded::QueueFull), 1);
    record.tell(finished(0, large + 1));
    assert_eq!(count(Unrecorded::TooLarge), 1);
    go.send(()).expect("it waits");
    record.close();
    let expected: Vec<_> = (1..2 + fit).map(Some).chain([None]).collect();
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), expected);
    let mut snapshot = weir_measure::Snapshot::sum([]);
    record.tally().count_in(&mut snapshot);
    assert_eq!(snapshot.get(weir_measure::Metric::RecordQueued), 0);
    assert_eq!(
        snapshot.get(weir_measure::Metric::Recorded),
        u64::from(fit) + 1
    );
}

#[test]
fn end_of_the_record_comes_once_after_the_last_request() {
    let (record, go, heard) = held();
    go.send(()).expect("it waits");
    for sequence in 1..=10 {
        record.tell(finished(sequence, 100));
    }
    record.close();
    record.close();
    drop(record);
    let said: Vec<_> = heard.try_iter().collect();
    let expected: Vec<_> = (0..=10).map(Some).chain([None]).collect();
    assert_eq!(said, expected);
}

#[test]
fn first_and_last_byte_times_change_only_with_content() {
    let mut unwanted = ContentTimes::new(false);
    unwanted.reach(1);
    assert_eq!(unwanted.first_last(), None);
    let mut moments = ContentTimes::new(true);
    moments.reach(0);
    assert_eq!(moments.first_last(), None);
    moments.reach(1);
    let first = moments.first_last().expect("some left");
    moments.reach(1);
    assert_eq!(moments.first_last(), Some(first));
    moments.reach(2);
    let second = moments.first_last().expect("more left");
    assert_eq!(second.0, first.0);
    assert!(second.1 >= first.1);
}
