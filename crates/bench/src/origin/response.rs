//! From a request to a response that is ready to be sent: what the site says is right, and what the
//! scenario spoils of it.

use std::os::fd::RawFd;
use std::time::Duration;

use tokio::time::Instant;
use weir_semantics::{Method, line_named};
use weir_wire::{RequestHead, Version};
use weir_workload::{Content, FaultKind, Http, Target};

use super::answer::{self, Answer, ResponseFormat, Source};
use super::by_target::{FetchLog, ResponseSpec, TALLY};
use super::counts::PhaseCounts;
use super::id_set::IdStatus;
use super::impairment::{self, Impairment, InjectedFault, RequestContext};
use super::listen::addressing::ServerChoice;
use super::pace::Pace;
use super::request_facts::{self, RequestFacts};
use super::response_writer::ResponseWriter;
use super::transmission::{ConnectionAction, Transmission};
use super::worker::{Worker, wall, wall_us};

/// What is known of a request's connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionFacts {
    pub(super) choice: ServerChoice,
    /// Requests on it, this one included.
    pub(super) requests: u64,
    /// Is it good for no more?
    pub(super) is_last: bool,
    pub(super) socket: RawFd,
    /// The fetch before it, whose bytes may be on their way still.
    pub(super) fetch: Option<usize>,
}

/// Makes the response, and counts request and response.
pub(super) fn make(
    worker: &Worker,
    request: &RequestFacts,
    head: &RequestHead<'_, '_>,
    made: ConnectionFacts,
) -> ResponseWriter {
    let shared = &worker.shared;
    if request.is_probe {
        return probed(worker, request);
    }
    if let Some(fetch_log) = &shared.fetch_log {
        return by_target(worker, request, head, fetch_log, made);
    }
    let (sight, phase) = shared.see(request.id);
    let mut counts = worker.counts();
    let counts = counts.phase(phase);
    count_request(counts, request, sight, made);
    let keeps = shared.scenario.origin.keep_alive && request.keeps && !made.is_last;
    let reply = Reply {
        worker,
        request,
        phase,
        is_first: made.requests == 1,
        keeps,
    };
    if !matches!(request.method, Method::Get | Method::Head | Method::Post) {
        return reply.plain(
            405,
            "only GET, HEAD and POST are answered\n",
            Duration::ZERO,
            counts,
        );
    }
    let found = request_facts::path(head.target)
        .and_then(|path| made.choice.split(path))
        .and_then(|(server, path)| shared.site.parse_path(server, path));
    match found {
        Some(target) => reply.of_site(target, head, counts),
        None => {
            let text = format!("{} is no path of the scenario's site\n", head.target);
            reply.plain(404, &text, Duration::ZERO, counts)
        }
    }
}

/// The response to a request that shows whether the origin can be reached. Nothing is
/// counted.
fn probed(worker: &Worker, request: &RequestFacts) -> ResponseWriter {
    let reply = Reply {
        worker,
        request,
        phase: 0,
        is_first: true,
        keeps: false,
    };
    let mut uncounted = PhaseCounts::default();
    reply.plain(200, "", Duration::ZERO, &mut uncounted)
}

/// The response that the target describes, or the account of fetches. Nothing else is counted.
fn by_target(
    worker: &Worker,
    request: &RequestFacts,
    head: &RequestHead<'_, '_>,
    fetch_log: &FetchLog,
    made: ConnectionFacts,
) -> ResponseWriter {
    let unacknowledged_bytes = fetch_log.options.unacknowledged_bytes;
    if let Some(fetch) = made.fetch {
        fetch_log.with(|fetches| fetches.settle(fetch, unacknowledged_bytes));
    }
    let mut reply = Reply {
        worker,
        request,
        phase: 0,
        is_first: made.requests == 1,
        keeps: request.keeps,
    };
    let mut uncounted = PhaseCounts::default();
    let mut plain = |status, text: &str| reply.plain(status, text, Duration::ZERO, &mut uncounted);
    let target = request_facts::path(head.target).and_then(|path| str::from_utf8(path).ok());
    let target = target.unwrap_or_default();
    if let Some(prefix) = target.strip_prefix(TALLY) {
        return plain(200, &fetch_log.tally(prefix));
    }
    let Some(spec) = ResponseSpec::parse(target) else {
        return plain(404, "the target describes no response\n");
    };
    let source = Source::Spelling(target);
    let request = (request.method, head.fields);
    let answer = Answer::new(source, spec.described(), request, wall(spec.delay), true);
    let has_length = spec.has_length || answer.status != 200;
    reply.keeps &= has_length;
    let transmission = Transmission::whole(answer.to - answer.from, reply.keeps);
    let range = line_named(head.fields, "range");
    let fetch =
        fetch_log.with(|fetches| fetches.begin(&spec.path, range, answer.status, made.socket));
    ResponseWriter {
        fetch: Some(fetch),
        ..reply.send(
            &answer,
            transmission,
            spec.delay,
            spec.rate_bytes_per_s,
            has_length,
        )
    }
}

/// The response to what is no request; the connection ends behind it.
pub(super) fn refuse(worker: &Worker, status: u16, text: &str) -> ResponseWriter {
    let (_, phase) = worker.shared.see(None);
    let date = worker.date(wall(Duration::ZERO));
    let mut head = worker.head.take();
    head.clear();
    let format = ResponseFormat {
        version: version(worker),
        date: &date,
        is_conditional: false,
        has_length: true,
        keeps: false,
        begun_us: None,
    };
    let head_bytes = answer::write_plain(status, text, None, &format, &mut head);
    worker.counts().phase(phase).status(status);
    writer(head, head_bytes, phase, ConnectionAction::Close)
}

struct Reply<'a> {
    worker: &'a Worker,
    request: &'a RequestFacts,
    phase: u8,
    /// Is it the first request of the connection?
    is_first: bool,
    keeps: bool,
}

impl Reply<'_> {
    fn of_site(
        &self,
        target: Target,
        request: &RequestHead<'_, '_>,
        counts: &mut PhaseCounts,
    ) -> ResponseWriter {
        let shared = &self.worker.shared;
        let origin = &shared.scenario.origin;
        let now = Instant::now();
        let has_content = self.request.method != Method::Head;
        let context = RequestContext {
            id: self.request.id,
            target,
            bytes: if has_content {
                shared.site.length(target)
            } else {
                0
            },
            is_first: self.is_first,
            // of no interest without faults
            elapsed_s: if origin.faults.is_empty() {
                0.0
            } else {
                shared.elapsed_s(now)
            },
        };
        let impairment = Impairment::draw(origin, shared.seed, &context);
        if let Some(InjectedFault::Fault(FaultKind::Status(status), _)) = impairment.injected {
            counts.faulted.status += 1;
            return self.plain(status, "a fault of the scenario\n", impairment.wait, counts);
        }
        // what is right when it is sent, not when the request came
        let at = wall(impairment.wait);
        let request = (self.request.method, request.fields);
        let (source, about) = (
            Source::Site(&shared.site, target),
            shared.site.describe(target, at),
        );
        let answer = Answer::new(source, about, request, at, origin.conditional);
        counts.status(answer.status);
        let mut transmission = Transmission::whole(answer.to - answer.from, self.keeps);
        if let Some(injected) = impairment.injected.filter(|_| has_content) {
            transmission.inject(injected, counts);
        }
        let rate = impairment::rate_bytes_per_s(origin);
        self.send(&answer, transmission, impairment.wait, rate, true)
    }

    /// The response, to be sent after `wait`.
    fn send(
        &self,
        answer: &Answer<'_>,
        transmission: Transmission,
        wait: Duration,
        rate_bytes_per_s: Option<u64>,
        has_length: bool,
    ) -> ResponseWriter {
        let now = Instant::now();
        let date = self.worker.date(answer.at);
        // one that will be spoilt does not say so before
        let format = ResponseFormat {
            has_length,
            ..self.format(&date, wait)
        };
        let mut head = self.worker.head.take();
        head.clear();
        answer.write_head(self.request, &format, transmission.declared, &mut head);
        let head_bytes = head.len();
        let begins = (!wait.is_zero()).then(|| now + wait);
        let has_content = self.request.method != Method::Head;
        let sent = if has_content { transmission.sent } else { 0 };
        ResponseWriter {
            content: answer.content(),
            at: answer.from,
            to: answer.from + sent,
            begins,
            pace: rate_bytes_per_s.map(|rate| Pace::new(rate, begins.unwrap_or(now))),
            slow: transmission
                .slow
                .map(|(from, rate)| (answer.from + from, rate)),
            ..writer(head, head_bytes, self.phase, transmission.then)
        }
    }

    /// A response without content of the site's.
    fn plain(
        &self,
        status: u16,
        text: &str,
        wait: Duration,
        counts: &mut PhaseCounts,
    ) -> ResponseWriter {
        counts.status(status);
        let date = self.worker.date(wall(wait));
        let format = self.format(&date, wait);
        let mut head = self.worker.head.take();
        head.clear();
        let head_bytes = answer::write_plain(status, text, Some(self.request), &format, &mut head);
        let then = if self.keeps {
            ConnectionAction::Keep
        } else {
            ConnectionAction::Close
        };
        ResponseWriter {
            begins: (!wait.is_zero()).then(|| Instant::now() + wait),
            ..writer(head, head_bytes, self.phase, then)
        }
    }

    fn format<'d>(&self, date: &'d [u8; 29], wait: Duration) -> ResponseFormat<'d> {
        ResponseFormat {
            version: version(self.worker),
            date,
            is_conditional: self.worker.shared.scenario.origin.conditional,
            has_length: true,
            keeps: self.keeps,
            begun_us: self.request.id.map(|_| wall_us(wait)),
        }
    }
}

fn count_request(
    counts: &mut PhaseCounts,
    request: &RequestFacts,
    sight: IdStatus,
    made: ConnectionFacts,
) {
    counts.requests += 1;
    *match sight {
        IdStatus::First => &mut counts.distinct,
        IdStatus::Repeated => &mut counts.repeated,
        IdStatus::Outside => &mut counts.without_id,
    } += 1;
    match request.method {
        Method::Head => counts.head_requests += 1,
        Method::Post => counts.post_requests += 1,
        _ => {}
    }
    if made.requests == 1 {
        counts.connections_opened += 1;
    }
    counts.connection_requests_max = counts.connection_requests_max.max(made.requests);
}

fn version(worker: &Worker) -> Version {
    match worker.shared.scenario.origin.http {
        Http::Http10 => Version::Http10,
        Http::Http11 => Version::Http11,
    }
}

/// A response without content of the site's, to be sent at once.
fn writer(head: Vec<u8>, head_bytes: usize, phase: u8, then: ConnectionAction) -> ResponseWriter {
    ResponseWriter {
        head,
        head_bytes,
        head_sent: 0,
        content: Content::of(
            0,
            Target {
                server: 0,
                number: 0,
            },
            0,
        ),
        at: 0,
        to: 0,
        begins: None,
        pace: None,
        slow: None,
        then,
        phase,
        fetch: None,
        waits_since: None,
    }
}
