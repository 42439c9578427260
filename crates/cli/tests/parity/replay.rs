//! A simulated run made to happen to the proxy: what the world did is done again, at the same times
//! and in the same order; what the simulator decided is looked for.

use crate::asking::{has, known_date, known_tag, request};
use crate::coverage::Coverage;
use crate::difference::Difference;
use crate::live::Live;
use crate::log::check_log;
use crate::message::Head;
use crate::origin::{Answer, answer, breaks_off_after, identity_in};
use crate::script::Script;
use crate::trace::{START_S, Trace};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_measure::{Aborted, Label as _, Metric, OpenReason};
use weir_policy::fetch::ByteSpan;
use weir_semantics::{Timestamp, parse_http_date};
use weir_sim::journal::{Question, What};
use weir_trace::{RequestBit, Row, TraceMethod};

/// Runs a trace through both.
pub(crate) fn replay(
    trace: &Trace,
    patience: Duration,
    coverage: &mut Coverage,
) -> Result<(), Difference> {
    let script = Script::of(trace)?;
    let mut replay = Replay {
        trace,
        live: Live::start(&trace.conditions, trace.begin_ms(), patience),
        transfers: BTreeMap::new(),
        hop_of: BTreeMap::new(),
        client_of: BTreeMap::new(),
        judged: BTreeMap::new(),
        left_early: 0,
    };
    for (place, happening) in script.happenings.iter().enumerate() {
        replay
            .pass_until(happening.at_ms)
            .and_then(|()| replay.step(&script, place))
            .map_err(|what| Difference::new(row_of(&replay, happening.what), what))
            .map_err(|difference| difference.after(&script.happenings[..=place]))?;
        coverage.happened(happening.what);
    }
    let all = |what: String| Difference::new(None, what).after(&script.happenings);
    replay.check_end(&script).map_err(all)?;
    let log = replay.live.stop().map_err(all)?;
    check_log(&log, &script).map_err(|difference| difference.after(&script.happenings))?;
    coverage.ran(&script);
    Ok(())
}

struct Replay<'a> {
    trace: &'a Trace,
    live: Live,
    /// By their numbers.
    transfers: BTreeMap<u64, Transfer>,
    /// The proxy's connections to servers, by the simulator's numbers.
    hop_of: BTreeMap<u32, usize>,
    /// The clients' connections, by rows.
    client_of: BTreeMap<u64, u32>,
    /// How often it was judged so.
    judged: BTreeMap<&'static str, u64>,
    /// Clients that left before they had everything.
    left_early: u64,
}

/// A transfer from a server.
struct Transfer {
    row: u64,
    hop: usize,
    question: Question,
    answer: Answer,
    cut_at: Option<u64>,
    sent: u64,
    /// We have closed its connection.
    is_broken: bool,
}

type Step = Result<(), String>;

impl Replay<'_> {
    fn row(&self, number: u64) -> &Row {
        &self.trace.rows[usize::try_from(number).expect("few")]
    }

    fn step(&mut self, script: &Script, place: usize) -> Step {
        match script.happenings[place].what {
            What::Request {
                row,
                connection,
                is_new,
            } => self.ask(row, connection, is_new),
            What::Follows { row } => self.see_waiting(row),
            What::Asked {
                row,
                transfer,
                connection,
                is_new,
                question,
            } => self.see_asked(row, transfer, (connection, is_new), question),
            What::Head { transfer, status } => {
                let with = script.content_with_head(place);
                self.send_head(transfer, status, with)
            }
            What::Content {
                transfer,
                bytes,
                readers,
            } => self.send_content(transfer, bytes, readers),
            What::Broken { transfer } => self.break_off(transfer),
            What::Given { row, bytes } => self.see_given(row, bytes),
            What::Judged { transfer, word } => self.see_judged(transfer, word),
            What::Ended {
                transfer,
                is_reusable,
            } => self.see_ended(transfer, is_reusable),
            What::Left {
                row,
                is_early,
                is_cut,
            } => self.leave(row, is_early, is_cut),
            What::Done {
                row,
                bytes,
                is_reusable,
                ..
            } => self.see_done(row, bytes, is_reusable),
        }
    }

    /// Time goes on, once the proxy has done what shows in nothing that is looked for.
    fn pass_until(&mut self, at_ms: u64) -> Step {
        if at_ms > self.live.at_ms() {
            self.settle()?;
            self.live.stand_at(at_ms);
        }
        Ok(())
    }

    /// A client sends its request.
    fn ask(&mut self, row: u64, connection: u32, is_new: bool) -> Step {
        if is_new {
            self.live.connect(connection);
        }
        let server = self.row(row).server.unwrap_or(0);
        let text = request(row, self.row(row), &self.live.authority(server));
        let Some(client) = self.live.clients.get_mut(&connection) else {
            return Err(format!(
                "the client of row {row} has no connection {connection}"
            ));
        };
        if client.wire.is_closed {
            return Err(format!(
                "the proxy has closed the client's connection that row {row} should be asked on"
            ));
        }
        client.head = None;
        client.content.clear();
        client.wire.send(text.as_bytes());
        self.client_of.insert(row, connection);
        Ok(())
    }

    fn see_waiting(&mut self, row: u64) -> Step {
        let waits = self
            .live
            .wait_for(|live| live.count(Metric::FollowersWaiting) > 0);
        waits.ok_or_else(|| {
            format!(
                "row {row} should wait for another one's response; {}",
                self.doing(row)
            )
        })?;
        self.settle()
    }

    /// The proxy asks a server.
    fn see_asked(
        &mut self,
        row: u64,
        transfer: u64,
        (connection, is_new): (u32, bool),
        question: Question,
    ) -> Step {
        let found = self.live.wait(|live| {
            let is_it = |head: &Head| head.row() == Some(row);
            let place = live
                .hops
                .iter()
                .position(|hop| hop.asked.as_ref().is_some_and(is_it))?;
            Some((
                place,
                live.hops[place].asked.take()?,
                live.hops[place].requests,
            ))
        });
        let Some((hop, head, requests)) = found else {
            return Err(format!(
                "the next hop should be asked for row {row}, {question:?}; {}",
                self.doing(row)
            ));
        };
        if is_new != (requests == 1) {
            let (ours, theirs) = if is_new {
                ("a new connection", "one that was there")
            } else {
                ("a connection that was there", "a new one")
            };
            return Err(format!(
                "row {row} should be forwarded on {ours}, and is on {theirs}"
            ));
        }
        if is_new {
            self.hop_of.insert(connection, hop);
        } else if self.hop_of.get(&connection) != Some(&hop) {
            return Err(format!("row {row} is forwarded on another idle connection"));
        }
        self.check_question(row, &head, question)?;
        let length = self.trace.length_of(self.row(row));
        let answer = answer(self.row(row), length, &head);
        let is_part = matches!(question, Question::Part(_)) && answer.status == 206;
        let cut_at = breaks_off_after(self.row(row), &answer, is_part);
        let transfer_under_way = Transfer {
            row,
            hop,
            question,
            answer,
            cut_at,
            sent: 0,
            is_broken: false,
        };
        self.transfers.insert(transfer, transfer_under_way);
        Ok(())
    }

    fn check_question(&self, number: u64, head: &Head, question: Question) -> Step {
        let row = self.row(number);
        let fields = ["if-none-match", "if-modified-since", "range", "if-range"];
        let found = fields.map(|name| head.field(name).map(str::to_owned));
        let method = row.method.unwrap_or(TraceMethod::Get).as_str();
        let is_right = match question {
            Question::AsSent => {
                let range = row.range_first.map(|first| {
                    let last = row
                        .range_last
                        .map_or_else(String::new, |last| last.to_string());
                    format!("bytes={first}-{last}")
                });
                let tag = has(row, RequestBit::IfNoneMatch).then(|| known_tag(row));
                let since = has(row, RequestBit::IfModifiedSince).then(|| known_date(row));
                found == [tag, since, range, None] && head.method() == method
            }
            Question::Validation => {
                let validates = found[0].is_some() || found[1].is_some();
                validates && found[2].is_none() && head.method() == method
            }
            Question::Refresh => found[2].is_none() && head.method() == "GET",
            Question::Part(ByteSpan { from, to }) => {
                let last = (to != ByteSpan::OPEN).then(|| to - 1);
                head.range() == Some((from, last)) && found[3].is_some() && found[0].is_none()
            }
        };
        if is_right {
            return Ok(());
        }
        Err(format!(
            "for row {number} the next hop should be asked {question:?}, and is asked {found:?}, {}",
            head.method()
        ))
    }

    /// A server sends its response head, and content with it if there is some at the same time.
    fn send_head(&mut self, number: u64, status: u16, with: Option<u64>) -> Step {
        let Some(transfer) = self.transfers.get_mut(&number) else {
            return Err(format!("transfer {number} was not asked for"));
        };
        let answer = &transfer.answer;
        if answer.status != status {
            return Err(format!(
                "row {}: the simulator has the origin answer {status}, which in truth answers {}",
                transfer.row, answer.status
            ));
        }
        let mut bytes = answer.head.clone().into_bytes();
        let content = with.unwrap_or(0);
        bytes.extend_from_slice(part_of(&answer.content, 0, content)?);
        transfer.sent = content;
        let hop = transfer.hop;
        self.send(hop, &bytes)?;
        if with.is_none() {
            self.settle()?;
        }
        Ok(())
    }

    fn send_content(&mut self, number: u64, bytes: u64, readers: usize) -> Step {
        let before = self.live.count(Metric::BodyBytesFromNextHops);
        let Some(transfer) = self.transfers.get_mut(&number) else {
            return Err(format!("transfer {number} was not asked for"));
        };
        let content = part_of(&transfer.answer.content, transfer.sent, bytes)?.to_vec();
        let is_whole = bytes == transfer.answer.content.len() as u64;
        let (hop, question) = (transfer.hop, transfer.question);
        transfer.sent = bytes;
        if !content.is_empty() {
            self.send(hop, &content)?;
        }
        if content.is_empty() && readers == 0 {
            return self.settle();
        }
        let is_refresh = question == Question::Refresh;
        if readers == 0 && (is_whole || !is_refresh) && !content.is_empty() {
            // what is kept by the one who relays it is counted when it is over
            let expected = before + content.len() as u64;
            let counted = |live: &Live| live.count(Metric::BodyBytesFromNextHops) >= expected;
            let came = self.live.wait_for(counted);
            came.ok_or_else(|| {
                format!("transfer {number} should go on though nobody reads it, and is not taken")
            })?;
        }
        Ok(())
    }

    /// Sends bytes to the proxy, as fast as it takes them.
    fn send(&mut self, hop: usize, bytes: &[u8]) -> Step {
        if let Some(wire) = &mut self.live.hops[hop].wire {
            wire.send(bytes);
        }
        let sent = self.live.wait(|live| {
            let wire = live.hops[hop].wire.as_ref()?;
            wire.is_flushed().then_some(())
        });
        sent.ok_or_else(|| "the proxy does not take what comes from the next hop".to_owned())
    }

    fn break_off(&mut self, number: u64) -> Step {
        let Some(transfer) = self.transfers.get_mut(&number) else {
            return Err(format!("transfer {number} was not asked for"));
        };
        let is_head = transfer.sent == 0;
        if !is_head && transfer.cut_at != Some(transfer.sent) {
            return Err(format!(
                "row {}: the simulator has the origin break off after {} bytes, which in truth does so after {:?}",
                transfer.row, transfer.sent, transfer.cut_at
            ));
        }
        transfer.is_broken = true;
        let hop = transfer.hop;
        self.live.hops[hop].wire = None;
        self.settle()
    }

    fn see_given(&mut self, row: u64, bytes: u64) -> Step {
        let Some(connection) = self.client_of.get(&row).copied() else {
            return Err(format!("row {row} was not asked"));
        };
        let given = self.live.wait(|live| {
            let client = live.clients.get(&connection)?;
            (client.content.len() as u64 >= bytes).then_some(())
        });
        given.ok_or_else(|| {
            format!(
                "the client of row {row} should have {bytes} bytes by now; {}",
                self.doing(row)
            )
        })
    }

    fn see_judged(&mut self, transfer: u64, word: &'static str) -> Step {
        let count = self.judged.entry(word).or_insert(0);
        *count += 1;
        let expected = *count;
        let Some(fate) = Aborted::from_word(word) else {
            return Err(format!("`{word}` is no word of the counters"));
        };
        let metric = Metric::FetchesAbandoned(fate);
        if fate == Aborted::StopNotKept {
            self.nudge(transfer)?;
        }
        let judged = self.live.wait_for(|live| live.count(metric) >= expected);
        judged.ok_or_else(|| {
            let others = Aborted::ALL.iter().map(|fate| {
                let count = self.live.count(Metric::FetchesAbandoned(*fate));
                format!("{} {count}", fate.word())
            });
            let others: Vec<String> = others.collect();
            format!(
                "of transfer {transfer} should be said `{word}`; the counters say {}",
                others.join(", ")
            )
        })
    }

    /// Something more comes of a transfer: that it has no reader is noticed when there is something
    /// to take.
    fn nudge(&mut self, number: u64) -> Step {
        let Some(transfer) = self.transfers.get(&number) else {
            return Err(format!("transfer {number} was not asked for"));
        };
        let from = transfer.sent;
        let to = (from + 1000).min(transfer.answer.content.len() as u64);
        let (hop, content) = (
            transfer.hop,
            part_of(&transfer.answer.content, from, to)?.to_vec(),
        );
        self.send(hop, &content)
    }

    fn see_ended(&mut self, number: u64, is_reusable: bool) -> Step {
        let Some(transfer) = self.transfers.get(&number) else {
            return Err(format!("transfer {number} was not asked for"));
        };
        if is_reusable || transfer.is_broken {
            return Ok(());
        }
        let (hop, row) = (transfer.hop, transfer.row);
        let closed = self.live.wait(|live| {
            let wire = live.hops[hop].wire.as_ref();
            wire.is_none_or(|wire| wire.is_closed).then_some(())
        });
        closed.ok_or_else(|| {
            format!(
                "the connection that brings the response to row {row} should be closed, and is not"
            )
        })
    }

    /// A client leaves.
    fn leave(&mut self, row: u64, is_early: bool, is_cut: bool) -> Step {
        let Some(connection) = self.client_of.get(&row).copied() else {
            return Err(format!("row {row} was not asked"));
        };
        if is_cut && !is_early {
            self.see_closed(row, connection)?;
        } else if !is_early {
            self.see_whole(row)?;
        }
        if let Some(client) = self.live.clients.remove(&connection) {
            client.wire.reset();
        }
        if is_early {
            self.left_early += 1;
            let expected = self.left_early;
            let left = |live: &Live| live.count(Metric::ClientAborts) >= expected;
            self.live.wait_for(left).ok_or_else(|| {
                format!("the client of row {row} has left, and the proxy does not notice")
            })?;
        }
        self.settle()
    }

    /// The response to a row has come to its end.
    fn see_done(&mut self, row: u64, bytes: u64, is_reusable: bool) -> Step {
        let connection = self.client_of.get(&row).copied();
        let Some(connection) = connection.filter(|known| self.live.clients.contains_key(known))
        else {
            // it has left
            return Ok(());
        };
        if is_reusable {
            self.see_whole(row)?;
        } else {
            self.see_closed(row, connection)?;
        }
        self.check_content(row, connection, bytes)?;
        if !is_reusable {
            self.live.clients.remove(&connection);
        }
        self.client_of.remove(&row);
        Ok(())
    }

    /// The proxy has closed the connection of a client.
    fn see_closed(&mut self, row: u64, connection: u32) -> Step {
        let closed = self.live.wait(|live| {
            let client = live.clients.get(&connection)?;
            client.wire.is_closed.then_some(())
        });
        closed.ok_or_else(|| {
            format!(
                "the response to row {row} should be cut; {}",
                self.doing(row)
            )
        })
    }

    fn see_whole(&mut self, row: u64) -> Step {
        let Some(connection) = self.client_of.get(&row).copied() else {
            return Err(format!("row {row} was not asked"));
        };
        let is_bare = self.row(row).method == Some(TraceMethod::Head);
        let whole = self.live.wait(|live| {
            let client = live.clients.get(&connection)?;
            let expected = client.expected(is_bare)?;
            (client.content.len() as u64 >= expected).then_some(())
        });
        whole.ok_or_else(|| {
            format!(
                "the client of row {row} should have a whole response; {}",
                self.doing(row)
            )
        })
    }

    /// The content is that of one representation, and as much as it should be.
    fn check_content(&self, number: u64, connection: u32, bytes: u64) -> Step {
        let row = self.row(number);
        let client = &self.live.clients[&connection];
        let Some(head) = &client.head else {
            return Err(format!("row {number} has no response head"));
        };
        let is_ours = head.field("proxy-status").is_some();
        if is_ours {
            return Ok(());
        }
        let length = client.content.len() as u64;
        if length != bytes {
            return Err(format!(
                "row {number} should get {bytes} bytes of content, and gets {length} with {}",
                head.start_line()
            ));
        }
        let now = Timestamp(START_S);
        let modified = head.field("last-modified");
        let modified = modified.and_then(|text| parse_http_date(text.as_bytes(), now));
        let identity = identity_in(row, head, modified.map(|at| at.0));
        let from = head.content_range().map_or(0, |(first, _)| first);
        if client.content != identity.bytes(from, from + length) {
            return Err(format!(
                "row {number} gets content that is not what its head says: {head:?}"
            ));
        }
        Ok(())
    }

    /// What the proxy is doing about a row instead.
    fn doing(&self, row: u64) -> String {
        let mut seen = Vec::new();
        let client = self
            .client_of
            .get(&row)
            .and_then(|connection| self.live.clients.get(connection));
        if let Some(client) = client {
            let head = client.head.as_ref();
            let head = head.map(|head| {
                let status = head.field("cache-status").unwrap_or("");
                format!("{} {status}", head.start_line())
            });
            seen.push(format!(
                "its client has {head:?} and {} bytes, connection closed: {}",
                client.content.len(),
                client.wire.is_closed
            ));
        }
        for hop in &self.live.hops {
            if let Some(head) = &hop.asked {
                seen.push(format!("a next hop is asked {head:?}"));
            }
        }
        let waiting = self.live.count(Metric::FollowersWaiting);
        seen.push(format!("{waiting} wait for another one's"));
        seen.join("; ")
    }

    fn settle(&mut self) -> Step {
        let settled = self.live.settle();
        settled.ok_or_else(|| "the proxy does not answer any more".to_owned())
    }

    /// What is left, and what was opened.
    fn check_end(&mut self, script: &Script) -> Step {
        self.settle()?;
        if let Some(head) = self.live.hops.iter().find_map(|hop| hop.asked.as_ref()) {
            return Err(format!("a next hop is asked, and should not be: {head:?}"));
        }
        let opened: u64 = OpenReason::ALL
            .iter()
            .map(|why| self.live.count(Metric::NextHopOpens(*why)))
            .sum();
        let outcome = &script.outcome;
        let pairs = [
            (
                "stored responses",
                self.live.count(Metric::StoreEntries),
                outcome.stored,
            ),
            (
                "evictions",
                self.live.count(Metric::Evicted),
                outcome.evictions,
            ),
            (
                "connections to servers",
                opened,
                outcome.server_connections.opened,
            ),
        ];
        for (what, live, simulated) in pairs {
            if live != simulated {
                return Err(format!(
                    "{what} at the end: {live} live, {simulated} simulated"
                ));
            }
        }
        Ok(())
    }
}

fn part_of(content: &[u8], from: u64, to: u64) -> Result<&[u8], String> {
    let place = |at: u64| usize::try_from(at).expect("a length in memory");
    content.get(place(from)..place(to)).ok_or_else(|| {
        format!(
            "the simulator takes bytes {from} to {to} of content, which has {}",
            content.len()
        )
    })
}

fn row_of(replay: &Replay<'_>, what: What) -> Option<u64> {
    match what {
        What::Request { row, .. }
        | What::Follows { row }
        | What::Asked { row, .. }
        | What::Given { row, .. }
        | What::Left { row, .. }
        | What::Done { row, .. } => Some(row),
        What::Head { transfer, .. }
        | What::Content { transfer, .. }
        | What::Broken { transfer }
        | What::Judged { transfer, .. }
        | What::Ended { transfer, .. } => {
            replay.transfers.get(&transfer).map(|transfer| transfer.row)
        }
    }
}
