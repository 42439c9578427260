//! A client, which holds every response against the model.

use super::history::History;
use super::model::{End, Names, Outcome, State};
use super::origin::Incoming;
use super::request::{Kind, Manner, Request, USERS};
use crate::content::random::Chance;
use crate::support::Head;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

/// What has happened how often.
pub(super) type Tally = BTreeMap<&'static str, usize>;

pub(super) struct Client<'a> {
    address: SocketAddr,
    history: &'a History,
    chance: Chance,
    connection: Option<Incoming>,
    pub(super) tally: Tally,
    /// Where no module fails, no request may.
    may_be_refused: bool,
}

/// What came.
struct Received {
    head: Head,
    content: Vec<u8>,
    is_whole: bool,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        address: SocketAddr,
        history: &'a History,
        seed: u64,
        may_be_refused: bool,
    ) -> Self {
        Self {
            address,
            history,
            chance: Chance(seed),
            connection: None,
            tally: Tally::new(),
            may_be_refused,
        }
    }

    /// Sends a request, and looks at what comes.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn ask(&mut self) -> Result<(), String> {
        let request = Request::random(&mut self.chance);
        let settled = self.history.settled();
        let received = self.exchange(&request);
        let begun = self.history.begun();
        let Some(received) = received else {
            // it has not sent all of its request
            if request.manner == Manner::LeavesInContent {
                self.count("left in content");
                return Ok(());
            }
            return Err(format!("no response to {request:?}"));
        };
        let wrong = self.look(&request, &received, settled..=begun);
        wrong.map_err(|wrong| {
            let content = &received.content[..received.content.len().min(200)];
            let content = String::from_utf8_lossy(content);
            let request = Request {
                content: Vec::new(),
                ..request
            };
            let states = self.history.states(settled..=begun);
            let states = states.iter().map(|state| format!("{state:?}\n"));
            let states: String = states.collect();
            format!(
                "{wrong}\n{request:?}\n{}{} bytes, whole: {}: {content}\n{states}",
                received.head.text,
                received.content.len(),
                received.is_whole
            )
        })
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// What comes to a request. Where the client leaves, the connection ends.
    fn exchange(&mut self, request: &Request) -> Option<Received> {
        let address = self.address;
        let connect = || Incoming::new(TcpStream::connect(address).expect("the proxy listens"));
        let mut connection = self.connection.take().unwrap_or_else(connect);
        let (head, mut content) = request.written();
        (&connection.stream).write_all(&head).expect("it is read");
        if request.manner == Manner::LeavesInContent {
            content.truncate(content.len() / 2);
            // the proxy may have answered, and closed
            let _ = (&connection.stream).write_all(&content);
            let _ = connection.stream.shutdown(Shutdown::Write);
            let head = connection.read_head()?;
            let (content, is_whole) = connection.read_content(&head);
            return Some(Received {
                head,
                content,
                is_whole,
            });
        }
        let sending = connection.stream.try_clone().expect("a socket");
        let (received, is_sent) = std::thread::scope(|scope| {
            let sent = scope.spawn(move || (&sending).write_all(&content).is_ok());
            let received = receive(&mut connection, request);
            if request.manner == Manner::LeavesAtHead || received.is_none() {
                let _ = connection.stream.shutdown(Shutdown::Both);
            }
            (received, sent.join().expect("no panic"))
        });
        let received = received?;
        let is_over = received.head.field("connection") == Some("close");
        if request.manner == Manner::Waits && received.is_whole && is_sent && !is_over {
            self.connection = Some(connection);
        }
        Some(received)
    }

    /// What is wrong with a response to a request that began with one of these states.
    fn look(
        &mut self,
        request: &Request,
        received: &Received,
        places: std::ops::RangeInclusive<usize>,
    ) -> Result<(), String> {
        let other = USERS[1 - request.user];
        for bytes in [received.head.text.as_bytes(), &received.content] {
            if contains(&bytes.to_ascii_lowercase(), other.as_bytes()) {
                return Err(format!("something of {other}"));
            }
        }
        if request.manner == Manner::LeavesInContent {
            // what is answered depends on how much of the content was there
            self.count("left in content");
            return Ok(());
        }
        let verdict = received.head.verdict();
        let is_hit = verdict.starts_with("hit");
        let is_shared = is_hit || verdict.contains("collapsed");
        if is_shared && matches!(request.kind, Kind::Private | Kind::Echo) {
            return Err("a response that is for one request alone is shared".to_owned());
        }
        let status = received.head.status();
        if status == 502 && !self.may_be_refused {
            return Err("a request is refused, and no module fails".to_owned());
        }
        let mut reasons = Vec::new();
        for state in states_seen(&self.history.states(places)) {
            let generation = state.generation.number.to_string();
            // answers of the proxy itself pass no modules
            if !matches!(status, 416 | 502) && received.head.field("x-sent") != Some(&*generation) {
                continue;
            }
            let mut outcomes = Vec::new();
            // what has no content of the origin may have come either way
            let of_origin = matches!(status, 200 | 206);
            if !of_origin || is_shared {
                outcomes.extend(state.outcomes(request, true));
            }
            if !of_origin || !is_shared {
                outcomes.extend(state.outcomes(request, false));
            }
            for outcome in &outcomes {
                let fits = self
                    .fits(request, received, outcome)
                    .and_then(|()| match of_origin {
                        true => self.fits_fetch(received, outcome, &generation, is_shared),
                        false => Ok(()),
                    });
                match fits {
                    Ok(()) => {
                        self.note(outcome, is_shared, status);
                        return Ok(());
                    }
                    Err(reason) => reasons.push(reason),
                }
            }
        }
        Err(format!("it is none of those expected: {reasons:?}"))
    }

    /// Whether a response is this one.
    fn fits(
        &self,
        request: &Request,
        received: &Received,
        outcome: &Outcome,
    ) -> Result<(), String> {
        let head = &received.head;
        let status = head.status();
        let mut content = &outcome.content[..];
        let mut expected = outcome.status;
        if let (Some((first, last)), 200, false) = (request.range, expected, outcome.is_transformed)
        {
            if status == 206 && first < content.len() {
                let last = last.min(content.len() - 1);
                let complete = format!("bytes {first}-{last}/{}", content.len());
                if head.field("content-range") != Some(&*complete) {
                    return Err(format!("it is not {complete}"));
                }
                content = &content[first..=last];
                expected = 206;
            }
            if status == 416 && first >= content.len() && outcome.end == End::Whole {
                return Ok(());
            }
        }
        if status != expected {
            return Err(format!("status {status}, expected {expected}"));
        }
        if outcome.end == End::Refused {
            let reason = head.field("proxy-status").unwrap_or_default();
            let is_reason = reason.contains("module") || reason.contains("error=");
            return match is_reason {
                true => Ok(()),
                false => Err("no Proxy-Status".to_owned()),
            };
        }
        let sent = names(head, &["x-s"]);
        if sent != outcome.sent_fields() {
            return Err(format!("fields {sent:?}, expected {:?}", outcome.sent));
        }
        if request.is_head || request.manner == Manner::LeavesAtHead {
            return Ok(());
        }
        let got = &received.content;
        let is_right = match outcome.end {
            End::Cut => !received.is_whole && content.starts_with(got),
            _ => received.is_whole && got == content,
        };
        match is_right {
            true => Ok(()),
            false => Err(format!(
                "{:?} content of {} bytes expected",
                outcome.end,
                content.len()
            )),
        }
    }

    /// Whether what a response has of the next hop is as modules have it.
    fn fits_fetch(
        &self,
        received: &Received,
        outcome: &Outcome,
        generation: &str,
        is_shared: bool,
    ) -> Result<(), String> {
        let head = &received.head;
        let fetched = names(head, &["x-f"]);
        let asked: Names = head
            .field("x-names")
            .unwrap_or_default()
            .split(' ')
            .map(str::to_owned)
            .collect();
        let asked: Names = asked
            .into_iter()
            .filter(|name| name.starts_with("x-q"))
            .collect();
        let own = |names: &Names, prefix: &str| -> Names {
            let own = names.iter().filter(|name| name.starts_with(prefix));
            own.cloned().collect()
        };
        if fetched != own(&outcome.fetched, "x-f") {
            return Err(format!("has {fetched:?}, expected {:?}", outcome.fetched));
        }
        if is_shared {
            return Ok(());
        }
        if head.field("x-asked-by") != Some(&*format!("{generation} {generation}")) {
            return Err("it was fetched with another configuration".to_owned());
        }
        match asked == own(&outcome.asked, "x-q") {
            true => Ok(()),
            false => Err(format!("sent {asked:?}, expected {:?}", outcome.asked)),
        }
    }

    fn note(&mut self, outcome: &Outcome, is_shared: bool, status: u16) {
        self.count(match outcome.end {
            End::Whole => "whole",
            End::Cut => "cut",
            End::Refused => "refused",
        });
        match status {
            451 => self.count("answered by modules"),
            206 => self.count("parts"),
            _ => {}
        }
        if is_shared {
            self.count("shared");
            if !outcome.fetched.is_empty() {
                self.count("shared after a change");
            }
        }
        if outcome.is_transformed {
            self.count("transformed");
        }
    }
}

impl Outcome {
    fn sent_fields(&self) -> Names {
        let own = self.sent.iter().filter(|name| name.starts_with("x-s"));
        own.cloned().collect()
    }
}

/// What a request may have begun with: it looks at what is disabled behind the configuration, which
/// may have been replaced between.
fn states_seen(states: &[State]) -> Vec<State> {
    let places = states.iter().enumerate();
    let pairs = places.flat_map(|(at, first)| states[at..].iter().map(move |later| (first, later)));
    let seen = pairs.map(|(first, later)| {
        let mut disabled = later.disabled.clone();
        let steps = &first.generation.steps;
        disabled.retain(|at| steps[*at].name(*at) == format!("m{at}"));
        State {
            generation: Arc::clone(&first.generation),
            disabled,
        }
    });
    seen.collect()
}

fn receive(connection: &mut Incoming, request: &Request) -> Option<Received> {
    let head = connection.read_head()?;
    let has_none = request.is_head || request.manner == Manner::LeavesAtHead;
    let (content, is_whole) = match has_none {
        true => (Vec::new(), true),
        false => connection.read_content(&head),
    };
    Some(Received {
        head,
        content,
        is_whole,
    })
}

/// The fields that modules have set: a prefix and a number.
fn names(head: &Head, prefixes: &[&str]) -> Names {
    let fields = head.fields();
    let names = fields.iter().map(|(name, _)| name.to_ascii_lowercase());
    let is_one = |name: &String| {
        let mut prefixes = prefixes.iter();
        prefixes.any(|prefix| {
            let number = name.strip_prefix(prefix);
            number.is_some_and(|number| number.parse::<usize>().is_ok())
        })
    };
    names.filter(is_one).collect()
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}
