use super::*;
use proptest::prelude::*;

fn line(down_bits_per_s: Option<u64>, delay_ms: f64, loss: f64) -> Line {
    let rules = Link {
        down_bits_per_s,
        up_bits_per_s: down_bits_per_s,
        delay_ms,
        loss,
    };
    Line::new(&rules, Chance::new(7, 7))
}

/// Reads pieces of these sizes, each as soon as the link lets it after its pause; arrivals and
/// bytes.
fn read(line: &mut Line, pieces: &[(usize, u64)]) -> Vec<(u64, usize)> {
    let mut flow = Flow::default();
    let mut now_us = 0;
    let mut arrivals = Vec::new();
    for &(bytes, pause_us) in pieces {
        now_us = (now_us + pause_us).max(line.may_read_at_us(flow));
        let bytes = bytes.min(line.quantum_bytes());
        arrivals.push((line.receive(&mut flow, now_us, bytes, true), bytes));
    }
    arrivals
}

#[test]
fn link_without_rules_adds_no_delay() {
    let mut line = line(None, 0.0, 0.0);
    assert_eq!(
        line.connect(5),
        SetUp {
            knock_at_us: 5,
            ready_at_us: 5
        }
    );
    assert_eq!(line.send(5, 100_000), 5);
    let mut flow = Flow::default();
    assert_eq!(line.receive(&mut flow, 9, 100_000, true), 9);
    assert!(line.may_read_at_us(flow) <= 9);
}

#[test]
fn link_delay_applies_to_connection_set_up_request_and_response() {
    let mut line = line(None, 40.0, 0.0);
    let set_up = line.connect(1000);
    assert_eq!((set_up.knock_at_us, set_up.ready_at_us), (41_000, 81_000));
    assert_eq!(line.send(81_000, 300), 121_000);
    assert_eq!(
        line.receive(&mut Flow::default(), 121_000, 300, false),
        161_000
    );
}

#[test]
fn data_arrives_only_after_its_transmission_time_at_the_link_rate() {
    let mut line = line(Some(28_800), 0.0, 0.0);
    let mut flow = Flow::default();
    // 1440 bytes at 3600 bytes a second
    assert_eq!(line.receive(&mut flow, 0, 1440, true), 400_000);
    assert_eq!(line.may_read_at_us(flow), 400_000);
    // another connection of the same client waits for the same wire
    assert_eq!(line.may_read_at_us(Flow::default()), 400_000);
    assert_eq!(line.send(0, 360), 100_000);
}

#[test]
fn lateness_of_reads_is_compensated_up_to_a_limit() {
    // 1440 bytes take 400 ms: read each time 9 ms late, and once for all 250 ms late
    let mut line = line(Some(28_800), 0.0, 0.0);
    let mut flow = Flow::default();
    let mut arrived_us = line.receive(&mut flow, 0, 1440, true);
    for _ in 0..10 {
        let now_us = arrived_us + 9000;
        let from_us = line.went_on_at_us(flow, now_us);
        assert_eq!(from_us, arrived_us);
        arrived_us = line.receive(&mut flow, from_us, 1440, true);
    }
    assert_eq!(arrived_us, 11 * 400_000);
    let now_us = arrived_us + 250_000;
    let from_us = line.went_on_at_us(flow, now_us);
    assert_eq!(from_us, now_us - MADE_GOOD_US);
    // one that is in time continues then
    assert_eq!(line.went_on_at_us(flow, arrived_us), arrived_us);
}

#[test]
fn lost_packet_delays_only_its_own_connection() {
    let mut line = line(None, 10.0, 1.0);
    let mut flow = Flow::default();
    assert_eq!(line.receive(&mut flow, 0, 1460, true), 30_000);
    assert_eq!(line.may_read_at_us(flow), 20_000);
    assert_eq!(line.may_read_at_us(Flow::default()), 0);
    let mut last = Flow::default();
    assert_eq!(line.receive(&mut last, 0, 1460, false), 230_000);
}

#[test]
fn packet_loss_frequency_matches_the_configured_rate() {
    let mut line = line(None, 10.0, 0.02);
    let lost = (0..50_000)
        .filter(|_| line.is_lost(PACKET_BYTES.into()))
        .count();
    assert!((900..1100).contains(&lost), "{lost} of 50000");
    let pieces = (0..10_000)
        .filter(|_| line.is_lost(10 * usize::from(PACKET_BYTES)))
        .count();
    // 1 - 0.98^10 = 0.183
    assert!((1700..1960).contains(&pieces), "{pieces} of 10000");
}

proptest! {
    #[test]
    fn link_never_exceeds_its_rate_in_any_window(
        bits_per_s in 8_000..200_000_000_u64,
        loss in prop::sample::select(vec![0.0, 0.1]),
        pieces in prop::collection::vec((1..70_000_usize, 0..50_000_u64), 2..80),
    ) {
        let mut line = line(Some(bits_per_s), 20.0, loss);
        let arrivals = read(&mut line, &pieces);
        for from in 0..arrivals.len() {
            let mut bytes = 0;
            for until in from + 1..arrivals.len() {
                bytes += arrivals[until].1;
                let window_us = arrivals[until].0 - arrivals[from].0;
                let carried = (window_us + 1) as f64 * (bits_per_s / 8) as f64 / 1e6;
                prop_assert!(bytes as f64 <= carried + 1.0, "{bytes} bytes in {window_us} us");
            }
        }
    }

    #[test]
    fn mean_rate_is_within_two_percent_of_the_configured_rate(bits_per_s in 8_000..400_000_000_u64) {
        let mut line = line(Some(bits_per_s), 20.0, 0.0);
        let quantum = line.quantum_bytes();
        let arrivals = read(&mut line, &vec![(quantum, 0); 400]);
        let bytes: usize = arrivals[1..].iter().map(|(_, bytes)| bytes).sum();
        let seconds = (arrivals[399].0 - arrivals[0].0) as f64 / 1e6;
        let rate = bytes as f64 / seconds;
        let wanted = bits_per_s as f64 / 8.0;
        prop_assert!((rate / wanted - 1.0).abs() < 0.02, "{rate} instead of {wanted}");
    }
}
