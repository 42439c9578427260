use super::*;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use proptest::prelude::*;

fn urgency(number: usize) -> Urgency {
    Urgency::new(number).unwrap()
}

#[test]
fn stream_adds_nothing_while_more_urgent_content_waits() {
    let mut order = SendOrder::default();
    order.add(urgency(3), 10);
    assert!(order.may_add(urgency(0)) && order.may_add(urgency(3)));
    assert!(!order.may_add(urgency(4)) && !order.may_add(urgency(7)));
    order.add(urgency(1), 5);
    assert_eq!(order.least(), urgency(1));
    order.leave(urgency(1), 5);
    assert_eq!(order.least(), urgency(3));
    order.leave(urgency(3), 10);
    assert!(order.may_add(urgency(7)));
    order.add(urgency(0), 1);
    order.ignore();
    assert!(order.may_add(urgency(7)));
}

/// A stream of the model: what it has to send, and whether its client takes it.
#[derive(Clone, Debug)]
struct Stream {
    urgency: Urgency,
    left: usize,
    waiting: usize,
    is_stopped: bool,
}

/// What a stream has waiting at most.
const STREAM_MAX: usize = 2;

fn stream() -> impl Strategy<Value = Stream> {
    (0..Urgency::COUNT, 1..20_usize, any::<bool>()).prop_map(|(number, left, is_stopped)| Stream {
        urgency: urgency(number),
        left,
        waiting: 0,
        is_stopped,
    })
}

proptest! {
    /// The connection takes one piece after the other from the streams with content, in turn. What
    /// can be sent is sent in any case; a piece never overtakes more urgent content that waits; and
    /// where all streams are equally urgent none is more than a few pieces behind another. Of those
    /// that others are more urgent than, who is woken first has more for as long as they go first.
    #[test]
    fn urgent_content_goes_first_equal_streams_share_and_none_starves(
        mut streams in proptest::collection::vec(stream(), 1..8),
        classes in prop_oneof![Just(1), 1..=Urgency::COUNT],
        turns in proptest::collection::vec(0..8_usize, 0..64),
    ) {
        for stream in &mut streams {
            stream.urgency = urgency(stream.urgency.index() % classes);
        }
        let mut order = SendOrder::default();
        let mut line: VecDeque<usize> = VecDeque::new();
        let mut sent: Vec<usize> = Vec::from([0; 8]);
        let can_send = |stream: &Stream| !stream.is_stopped && stream.left > 0;
        let mut turns = turns.into_iter().chain(core::iter::repeat(0));
        while streams.iter().any(|it| can_send(it) || it.waiting > 0) {
            let count = streams.len();
            let first = turns.next().unwrap_or_default();
            for step in 0..count {
                let at = (first + step) % count;
                let stream = &mut streams[at];
                while can_send(stream)
                    && stream.waiting < STREAM_MAX
                    && order.may_add(stream.urgency)
                {
                    order.add(stream.urgency, 1);
                    stream.left -= 1;
                    if stream.waiting == 0 {
                        line.push_back(at);
                    }
                    stream.waiting += 1;
                }
            }
            let at = line.pop_front().expect("what can be sent is offered");
            let stream = &mut streams[at];
            stream.waiting -= 1;
            order.leave(stream.urgency, 1);
            sent[at] += 1;
            if stream.waiting > 0 {
                line.push_back(at);
            }
            for (other, stream) in streams.iter().enumerate() {
                if classes == 1 && can_send(stream) {
                    prop_assert!(sent[at] <= sent[other] + 2 * STREAM_MAX);
                }
            }
        }
        prop_assert_eq!(order, SendOrder::default());
        for stream in &streams {
            prop_assert!(stream.is_stopped || stream.left == 0);
        }
    }
}
