//! The statistics of one thread of clients: requests and outcomes, by phase and by second.

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use weir_measure::record::WrongResponse;
use weir_workload::{Method, PhasePlan, RequestType, Site};

use super::agent::Order;
use super::{ClientLimits, ClientResult, Refusal};
use crate::check::{Conclusion, Examination, refusal};
use crate::mark::Id;
use crate::tally::{
    ErrorKind, LATE_US, LONGEST_US, LinkTime, Outcome, PhaseTally, RequestKind, Sample, SecondTally,
};

/// A transaction that has ended. Times are in microseconds since the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction<'t> {
    pub(super) agent: u32,
    pub(super) order: &'t Order,
    pub(super) examination: &'t Examination,
    /// Could a cache without limits have answered it?
    pub(super) could_hit: bool,
    pub(super) started_us: u64,
    /// When it was sent, by the wall clock that clients and origin share; microseconds since 1970.
    pub(super) sent_wall_us: u64,
    pub(super) connect_us: Option<u64>,
    pub(super) head_us: Option<u64>,
    pub(super) ended_us: u64,
}

impl Transaction<'_> {
    /// Did the origin begin what came after this request was sent? If the response is another
    /// request's, this one was collapsed with it.
    fn has_waited_for_another(&self) -> bool {
        let answered = self.examination.answered;
        answered
            .and_then(|answered| answered.begun_us)
            .is_some_and(|begun_us| begun_us > self.sent_wall_us)
    }
}

/// The statistics of one thread.
#[derive(Debug)]
pub(super) struct Statistics {
    result: ClientResult,
    limits: ClientLimits,
    /// Of so many transactions one becomes a sample; 0: none.
    sample_every: u64,
    /// Transactions until the next sample.
    until_sample: u64,
    /// Numbers of requests, by phase.
    numbers: Vec<u64>,
    second: SecondTally,
    second_times: Histogram<u64>,
    connections_open: u64,
    queued: u64,
    cpu_at_second_s: f64,
}

impl Statistics {
    pub(super) fn new(phases: &[PhasePlan], sample_every: u32, limits: ClientLimits) -> Self {
        let tallies = phases
            .iter()
            .map(|phase| PhaseTally::new(&phase.name, phase.is_measured));
        Self {
            result: ClientResult {
                phases: tallies.collect(),
                ..ClientResult::default()
            },
            limits,
            sample_every: u64::from(sample_every),
            until_sample: u64::from(sample_every),
            numbers: vec![0; phases.len()],
            second: SecondTally::default(),
            second_times: Histogram::new_with_bounds(1, LONGEST_US, 2).expect(
                "the bounds are at least a factor of two apart, and five digits are allowed",
            ),
            connections_open: 0,
            queued: 0,
            cpu_at_second_s: cpu_s(),
        }
    }

    fn phase(&mut self, phase: u8) -> &mut PhaseTally {
        &mut self.result.phases[usize::from(phase)]
    }

    /// A mark for a request of this phase, never given before.
    pub(super) fn id(&mut self, phase: u8, share: u32) -> Id {
        let number = &mut self.numbers[usize::from(phase)];
        *number += 1;
        Id {
            phase,
            share,
            number: *number - 1,
        }
    }

    /// A request is due.
    pub(super) fn due(&mut self, order: &Order) {
        self.second.offered += 1;
        self.phase(order.ask.phase).offered += 1;
    }

    /// Its start was scheduled, and the generator came to it now.
    pub(super) fn came_to(&mut self, scheduled_us: u64, now_us: u64) {
        let late_us = now_us.saturating_sub(scheduled_us);
        let health = &mut self.result.health;
        health.scheduled += 1;
        health.late += u64::from(late_us > LATE_US);
        health.late_max_us = health.late_max_us.max(late_us);
    }

    /// The link of a client is not used any more.
    pub(super) fn link_used(&mut self, time: &LinkTime) {
        self.result.health.link_used(time);
    }

    /// One more waits for a connection, so many with its agent.
    pub(super) fn waits(&mut self, in_queue: usize) {
        self.queued += 1;
        let in_queue = u32::try_from(in_queue).unwrap_or(u32::MAX);
        self.result.health.queue_max = self.result.health.queue_max.max(in_queue);
    }

    /// One that waited does so no more.
    pub(super) fn waits_no_more(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    /// A request is begun, for the first time.
    pub(super) fn begun(&mut self, order: &Order, is_reused: bool, now_us: u64) {
        self.second.requests += 1;
        self.second.phase = order.ask.phase;
        let phase = self.phase(order.ask.phase);
        phase.from_us = Some(phase.from_us.unwrap_or(now_us).min(now_us));
        phase.counts.client.requests += 1;
        phase.counts.client.connections_reused += u64::from(is_reused);
        if let Method::Post { content_bytes } = order.ask.method {
            phase.counts.sent_content_bytes += u64::from(content_bytes);
        }
    }

    /// A request met a connection that was closing, and is begun again.
    pub(super) fn repeated(&mut self, order: &Order) {
        self.phase(order.ask.phase).counts.repeated += 1;
    }

    /// A connection was set up, in so many microseconds. `is_slow`: the first packet of it was
    /// lost.
    pub(super) fn connected(&mut self, order: &Order, took_us: u64, is_slow: bool) {
        let phase = self.phase(order.ask.phase);
        phase.counts.client.connections_opened += 1;
        phase.counts.connections_slow += u64::from(is_slow);
        phase.response_time.connect.record(took_us);
    }

    /// A socket is open, or is so no more.
    pub(super) fn opened(&mut self) {
        self.connections_open += 1;
        let health = &mut self.result.health;
        health.connections_max = health.connections_max.max(self.connections_open);
    }

    /// See [`opened`](Self::opened).
    pub(super) fn closed(&mut self) {
        self.connections_open -= 1;
    }

    /// A request that will never be sent, or not again.
    pub(super) fn not_sent(&mut self, order: &Order, kind: ErrorKind, now_us: u64) {
        if kind == ErrorKind::QueueFull {
            self.result.health.queue_full += 1;
        }
        self.second.errors += 1;
        let phase = self.phase(order.ask.phase);
        phase.until_us = phase.until_us.max(now_us);
        // one that was to be sent again was begun before
        phase.counts.client.requests += u64::from(!order.is_repeated);
        phase.counts.enter(Outcome::Error(kind), 0);
    }

    /// A transaction has ended.
    pub(super) fn ended(
        &mut self,
        transaction: Transaction<'_>,
        conclusion: Conclusion,
        site: &Site,
    ) {
        let Transaction {
            order, examination, ..
        } = transaction;
        let response_us = transaction.ended_us.saturating_sub(order.scheduled_us);
        let outcome = conclusion.outcome;
        let is_collapsed = transaction.has_waited_for_another();
        let phase = &mut self.result.phases[usize::from(order.ask.phase)];
        phase.until_us = phase.until_us.max(transaction.ended_us);
        phase.counts.enter(outcome, examination.received);
        let kind = RequestKind::of(&order.ask);
        phase.counts.enter_kind(kind, outcome);
        phase.counts.client.collapsed += u64::from(outcome == Outcome::Hit && is_collapsed);
        if transaction.could_hit {
            phase.counts.client.could_hit += 1;
            phase.counts.client.could_hit_content_bytes += examination.received;
        }
        phase.counts.condition_ignored += u64::from(conclusion.condition_ignored);
        phase.counts.reload_ignored +=
            u64::from(order.ask.kind == RequestType::Reload && outcome == Outcome::Hit);
        if let Some(check) = conclusion.cross_check {
            phase.counts.enter_cross_check(check);
        }
        if outcome == Outcome::Error(ErrorKind::OutOfSockets) {
            self.result.health.out_of_sockets += 1;
        }
        let is_response = !matches!(outcome, Outcome::Error(_) | Outcome::Aborted);
        if is_response {
            phase.response_time.all.record(response_us);
            let clamped = response_us.clamp(1, LONGEST_US);
            self.second_times.saturating_record(clamped);
        }
        match outcome {
            Outcome::Hit => phase.response_time.hit.record(response_us),
            Outcome::Validated | Outcome::Forwarded => phase.response_time.miss.record(response_us),
            _ => {}
        }
        if let Some(mismatch) = &conclusion.mismatch {
            phase.counts.enter_wrong(mismatch.kind);
        }
        self.count_second(outcome, examination.received, conclusion.mismatch.is_some());
        self.sample(transaction, &conclusion);
        self.keep_refusal(transaction, outcome);
        self.keep_wrong_response(transaction, conclusion, site);
    }

    fn count_second(&mut self, outcome: Outcome, content_bytes: u64, is_wrong: bool) {
        let second = &mut self.second;
        second.content_bytes += content_bytes;
        second.wrong += u64::from(is_wrong);
        match outcome {
            Outcome::Error(_) => second.errors += 1,
            Outcome::Aborted => {}
            _ => second.responses += 1,
        }
        if matches!(outcome, Outcome::Hit | Outcome::Validated) {
            second.hit_content_bytes += content_bytes;
        }
        second.hits += u64::from(outcome == Outcome::Hit);
    }

    fn sample(&mut self, transaction: Transaction<'_>, conclusion: &Conclusion) {
        if self.sample_every == 0 {
            return;
        }
        self.until_sample -= 1;
        if self.until_sample > 0 {
            return;
        }
        self.until_sample = self.sample_every;
        if self.result.samples.len() >= self.limits.samples_max {
            // this one falls between the last that is kept and the next
            return self.thin_samples();
        }
        let Transaction {
            order, examination, ..
        } = transaction;
        self.result.samples.push(Sample {
            phase: order.ask.phase,
            agent: transaction.agent,
            target: order.ask.target,
            method: match order.ask.method {
                Method::Get => "GET",
                Method::Head => "HEAD",
                Method::Post { .. } => "POST",
            },
            scheduled_us: order.scheduled_us,
            started_us: transaction.started_us,
            connect_us: transaction.connect_us,
            head_us: transaction.head_us,
            ended_us: transaction.ended_us,
            status: examination.status,
            content_bytes: examination.received,
            outcome: conclusion.outcome,
            is_wrong: conclusion.mismatch.is_some(),
        });
    }

    /// Drops every second sample, and takes half as many from now on: what is left is as even over
    /// the run as before.
    fn thin_samples(&mut self) {
        let before = self.result.samples.len();
        let mut place = 0;
        self.result.samples.retain(|_| {
            place += 1;
            (before - place).is_multiple_of(2)
        });
        let dropped = before - self.result.samples.len() + 1;
        self.result.health.samples_dropped += dropped as u64;
        self.sample_every *= 2;
    }

    /// The first one is kept: of many that are alike it says why.
    fn keep_refusal(&mut self, transaction: Transaction<'_>, outcome: Outcome) {
        let is_refusal = matches!(
            outcome,
            Outcome::Error(ErrorKind::Status4xx | ErrorKind::Status5xx | ErrorKind::StatusOther)
        );
        if is_refusal && self.result.first_refusal.is_none() {
            self.result.first_refusal = Some(Refusal {
                at_us: transaction.ended_us,
                words: refusal(&transaction.examination.head),
            });
        }
    }

    fn keep_wrong_response(
        &mut self,
        transaction: Transaction<'_>,
        conclusion: Conclusion,
        site: &Site,
    ) {
        let Some(mismatch) = conclusion.mismatch else {
            return;
        };
        if self.result.wrong_responses.len() >= self.limits.wrong_responses_max {
            self.result.health.wrong_responses_dropped += 1;
            return;
        }
        let (examination, phase) = (transaction.examination, transaction.order.ask.phase);
        let request = examination.request();
        let (mut id, mut path) = (Vec::new(), Vec::new());
        request.id.write(&mut id);
        site.write_path(request.target, &mut path);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.result.wrong_responses.push(WrongResponse {
            kind: mismatch.kind.to_string(),
            at_s: transaction.ended_us as f64 / 1e6,
            phase: self.result.phases[usize::from(phase)].name.clone(),
            id: text(&id),
            server: request.target.server,
            number: request.target.number,
            path: text(&path),
            version: examination.version(),
            offset: mismatch.offset,
            detail: mismatch.what,
            head: text(&examination.head),
        });
    }

    /// A second is over; what it amounts to.
    pub(super) fn turn_second(&mut self) -> &SecondTally {
        let cpu_s = cpu_s();
        let cpu_share = cpu_s - self.cpu_at_second_s;
        self.cpu_at_second_s = cpu_s;
        self.result.health.cpu_s += cpu_share;
        self.close_second(cpu_share);
        let place = self.result.series.len() - 1;
        &self.result.series[place]
    }

    fn close_second(&mut self, cpu_share: f64) {
        let pairs = self.second_times.iter_recorded();
        let response_time_us = pairs
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
            .collect();
        self.second_times.reset();
        let (at_s, phase) = (self.second.at_s, self.second.phase);
        let mut second = std::mem::take(&mut self.second);
        second.connections_open = self.connections_open;
        second.queued = self.queued;
        second.cpu_share = cpu_share;
        second.response_time_us = response_time_us;
        self.result.series.push(second);
        self.second.at_s = at_s + 1;
        self.second.phase = phase;
    }

    /// Ends the statistics. The rest of a second is the last one of the series, and does not count
    /// for the generator's health.
    pub(super) fn close(mut self) -> ClientResult {
        let cpu_share = cpu_s() - self.cpu_at_second_s;
        self.close_second(cpu_share);
        self.result
    }
}

/// CPU time of this thread, in seconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::SentRequest;
    use weir_semantics::Timestamp;
    use weir_workload::{Scenario, Target, WorkloadRequest};

    fn order(number: u64) -> Order {
        Order {
            ask: WorkloadRequest::plain(0, Target { server: 0, number }),
            scheduled_us: number,
            is_repeated: false,
        }
    }

    fn end(statistics: &mut Statistics, number: u64, outcome: Outcome) {
        let order = order(number);
        let request = SentRequest {
            target: order.ask.target,
            kind: order.ask.kind,
            method: order.ask.method,
            abort_at: None,
            id: statistics.id(0, 0),
            at: Timestamp(0),
            modified_since: None,
        };
        let examination = Examination::new(request, Vec::new());
        statistics.due(&order);
        statistics.begun(&order, false, number);
        let transaction = Transaction {
            agent: 0,
            order: &order,
            examination: &examination,
            could_hit: outcome == Outcome::Hit,
            started_us: number,
            sent_wall_us: number,
            connect_us: None,
            head_us: None,
            ended_us: number + 7,
        };
        let conclusion = Conclusion {
            outcome,
            mismatch: None,
            cross_check: None,
            condition_ignored: false,
        };
        let scenario = Scenario::built_in("wpb").expect("it is built in");
        statistics.ended(transaction, conclusion, &Site::new(&scenario, 0));
    }

    fn statistics(sample_every: u32, samples_max: usize) -> Statistics {
        let phase = PhasePlan {
            name: "only".to_owned(),
            is_measured: true,
            ends_at_us: None,
            lasts_us: None,
        };
        let limits = ClientLimits {
            samples_max,
            ..ClientLimits::default()
        };
        Statistics::new(&[phase], sample_every, limits)
    }

    #[test]
    fn request_samples_are_bounded_and_evenly_spaced_over_the_run() {
        let mut statistics = statistics(2, 10);
        for number in 0..1000 {
            end(&mut statistics, number, Outcome::Hit);
        }
        let result = statistics.close();
        let at: Vec<u64> = result
            .samples
            .iter()
            .map(|sample| sample.scheduled_us)
            .collect();
        assert!((5..=10).contains(&at.len()), "{at:?}");
        let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "{at:?}");
        assert!(at[at.len() - 1] > 800, "{at:?}");
        assert!(result.health.samples_dropped > 0);
    }

    #[test]
    fn errors_and_aborts_have_no_response_time() {
        let mut statistics = statistics(0, 10);
        for (number, outcome) in (0..).zip([
            Outcome::Hit,
            Outcome::Forwarded,
            Outcome::NotModified { by_origin: false },
            Outcome::Error(ErrorKind::Timeout),
            Outcome::Aborted,
        ]) {
            end(&mut statistics, number, outcome);
        }
        let order = order(9);
        statistics.due(&order);
        statistics.not_sent(&order, ErrorKind::QueueFull, 20);
        let result = statistics.close();
        let phase = &result.phases[0];
        assert!(phase.counts.is_balanced() && phase.offered == 6);
        let times = &phase.response_time;
        let counts = [times.all.count(), times.hit.count(), times.miss.count()];
        assert_eq!(counts, [3, 1, 1]);
        let by_kind = phase.counts.client.by_kind.values();
        let by_kind: Vec<_> = by_kind.map(|side| (side.requests, side.hits)).collect();
        assert_eq!(by_kind, [(5, 1)]);
        assert_eq!(phase.counts.client.could_hit, 1);
        assert_eq!(times.all.max_us(), Some(7));
        assert_eq!((phase.from_us, phase.until_us), (Some(0), 20));
        assert_eq!(result.health.queue_full, 1);
        let second = &result.series[0];
        let counted = (
            second.offered,
            second.requests,
            second.responses,
            second.errors,
        );
        assert_eq!(counted, (6, 5, 3, 2));
        assert!(result.samples.is_empty());
    }
}
