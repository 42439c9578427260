//! One connection of a client, without its socket: events in, commands out.
//!
//! ```text
//!                Ask                Connected              Sent              a head              the end
//! closed ------------> connecting ------------> sending ------> head asked ---------> content ---------> idle, or closed
//!   ^                                              ^                                                        |
//!   |                                              +------------------------- Ask -------------------------+
//!   +---- every failure, and what closes -------------------------------------------------------------------+
//! ```
//!
//! What is received goes to an [`Inspect`] as it comes; nothing of a content is kept. One exchange
//! at a time: no pipelining.

use std::ops::ControlFlow;

use weir_semantics::{FieldLine, Method, line_named, lines_named, list_elements};
use weir_wire::{
    Arrival, BodyError, BodyEvent, BodyReader, HeadLimits, LineBuffer, Progress, ResponseHead,
    Version, parse_response, response_body,
};

use crate::tally::ErrorKind;

/// What a response head may cost: far more than any proxy should send.
const HEAD_LIMITS: HeadLimits = HeadLimits {
    bytes_max: 32_768,
    fields_max: 128,
};

/// The most interim responses (1xx) before a final one.
const INTERIM_MAX: u8 = 8;

/// Looks at what is received.
pub trait Inspect {
    /// The head of the final response, and its bytes.
    fn head(&mut self, head: &ResponseHead<'_, '_>, bytes: &[u8]);

    /// Content, never empty. `Break` ends the exchange.
    fn content(&mut self, bytes: &[u8]) -> ControlFlow<()>;
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'b> {
    /// A request must be made. Only on a connection that is closed or idle.
    Ask {
        /// Its method decides whether the response has content.
        method: Method,
        /// Did the request have keep-alive?
        keep: bool,
    },
    /// The connection is there.
    Connected,
    /// It will not be.
    NotConnected(ErrorKind),
    /// The request is written, the last byte of it included.
    Sent,
    /// Bytes arrived.
    Bytes(&'b [u8]),
    /// The other side will send no more.
    Closed,
    /// The connection is broken.
    Broken,
    /// Nothing moved for too long.
    Silent,
    /// The run is over.
    Over,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Set up the connection, then say so.
    Connect,
    /// Write the request, then say so.
    Send,
    /// Hand on what arrives.
    Receive,
    /// The exchange is over. `keep`: another may follow; otherwise close the socket.
    Finish {
        /// How it ended.
        ending: Ending,
        /// May another exchange follow?
        keep: bool,
    },
    /// Close the socket; there was no exchange.
    Close,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The response is whole by its framing. `until_close`: the end was the end of the connection.
    Whole {
        /// Nothing but the end of the connection said so.
        until_close: bool,
    },
    /// The inspector had seen enough.
    Aborted,
    /// There is more to come than the response has: unexpected bytes.
    Surplus,
    /// What arrived is not HTTP; why.
    Unreadable(&'static str),
    /// No whole response, and why.
    Failed(ErrorKind),
    /// The connection had been used before and went without a byte of a response: it was closing
    /// when the request came. To be repeated on a fresh one (RFC 9112 §9.3.1).
    Stale(ErrorKind),
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    method: Method,
    keep: bool,
    /// Exchanges begun on this connection.
    exchanges: u32,
    /// Did any byte of the current response arrive?
    is_answered: bool,
    interim: u8,
    until_close: bool,
    arrival: Arrival,
    /// A head that is not whole yet. Keeps its room.
    held: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Closed,
    Connecting,
    Idle,
    Sending,
    Head,
    Content(BodyReader),
}

impl Connection {
    /// A connection whose GET is written already, with keep-alive.
    #[must_use]
    pub fn with_get_sent() -> Self {
        let mut connection = Self::new();
        connection.begin(Method::Get, true, State::Head);
        connection
    }

    pub(crate) fn new() -> Self {
        Self {
            state: State::Closed,
            method: Method::Get,
            keep: false,
            exchanges: 0,
            is_answered: false,
            interim: 0,
            until_close: false,
            arrival: Arrival::new(),
            held: Vec::new(),
        }
    }

    /// Is it there, and without an exchange?
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Takes an event.
    ///
    /// # Panics If the driver calls it while an exchange is under way, or for a connection that was
    /// not begun: a mistake of ours.
    pub fn handle(&mut self, event: Event<'_>, inspector: &mut impl Inspect) -> Command {
        match (&self.state, event) {
            (State::Closed, Event::Ask { method, keep }) => {
                self.exchanges = 0;
                self.begin(method, keep, State::Connecting);
                Command::Connect
            }
            (State::Idle, Event::Ask { method, keep }) => {
                self.begin(method, keep, State::Sending);
                Command::Send
            }
            (State::Connecting, Event::Connected) => {
                self.state = State::Sending;
                Command::Send
            }
            (State::Connecting, Event::NotConnected(kind)) => self.fail(kind),
            (State::Connecting, Event::Silent) => self.fail(ErrorKind::ConnectTimeout),
            (State::Sending, Event::Sent) => {
                self.state = State::Head;
                Command::Receive
            }
            // answered before the request was written
            (State::Head | State::Content(_), Event::Sent) => Command::Receive,
            (State::Sending | State::Head | State::Content(_), Event::Bytes(bytes)) => {
                self.receive(bytes, inspector)
            }
            (State::Sending | State::Head | State::Content(_), Event::Closed) => self.closed(),
            (State::Connecting, Event::Closed | Event::Broken) => {
                self.fail(ErrorKind::ConnectFailed)
            }
            (State::Idle, Event::Bytes(_) | Event::Closed | Event::Broken | Event::Over) => {
                self.state = State::Closed;
                Command::Close
            }
            (State::Closed | State::Idle, Event::Silent) | (State::Closed, Event::Over) => {
                Command::Close
            }
            (_, Event::Broken) => self.fail(ErrorKind::Reset),
            (_, Event::Silent) => self.fail(ErrorKind::Timeout),
            (_, Event::Over) => self.fail(ErrorKind::Unfinished),
            (state, event) => unreachable!("{event:?} while {state:?}"),
        }
    }

    fn begin(&mut self, method: Method, keep: bool, state: State) {
        self.state = state;
        self.method = method;
        self.keep = keep;
        self.exchanges += 1;
        self.is_answered = false;
        self.interim = 0;
        self.held.clear();
        self.arrival = Arrival::new();
    }

    fn fail(&mut self, kind: ErrorKind) -> Command {
        let is_stale = self.exchanges > 1
            && !self.is_answered
            && matches!(kind, ErrorKind::Reset | ErrorKind::EarlyClose);
        self.finish(if is_stale {
            Ending::Stale(kind)
        } else {
            Ending::Failed(kind)
        })
    }

    /// Ends the exchange and the connection with it.
    fn finish(&mut self, ending: Ending) -> Command {
        self.state = State::Closed;
        Command::Finish {
            ending,
            keep: false,
        }
    }

    fn closed(&mut self) -> Command {
        if let State::Content(reader) = &mut self.state
            && reader.at_eof().is_ok()
        {
            let until_close = self.until_close;
            return self.finish(Ending::Whole { until_close });
        }
        self.fail(ErrorKind::EarlyClose)
    }

    fn receive(&mut self, bytes: &[u8], inspector: &mut impl Inspect) -> Command {
        self.is_answered = true;
        match self.state {
            State::Content(_) => return self.content(bytes, inspector),
            // what is left of the request would be the beginning of the next one
            State::Sending => self.keep = false,
            _ => {}
        }
        if self.held.is_empty() {
            let taken = match self.head(bytes, inspector) {
                Ok(taken) => taken,
                Err(why) => return self.finish(Ending::Unreadable(why)),
            };
            return self.after_head(taken, bytes, inspector);
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        let command = match self.head(&held, inspector) {
            Ok(taken) => self.after_head(taken, &held, inspector),
            Err(why) => self.finish(Ending::Unreadable(why)),
        };
        // the room is kept for the next head that comes in pieces
        if self.held.is_empty() {
            held.clear();
            self.held = held;
        }
        command
    }

    /// `taken`: the bytes of heads.
    fn after_head(&mut self, taken: usize, bytes: &[u8], inspector: &mut impl Inspect) -> Command {
        let rest = &bytes[taken..];
        if matches!(self.state, State::Content(_)) {
            return self.content(rest, inspector);
        }
        self.held.extend_from_slice(rest);
        Command::Receive
    }

    /// Reads the head at the beginning of `text`, interim ones before it too; how many bytes are
    /// done with.
    fn head(&mut self, text: &[u8], inspector: &mut impl Inspect) -> Result<usize, &'static str> {
        let mut taken = 0;
        loop {
            let rest = &text[taken..];
            if rest.is_empty() || !self.arrival.is_worth_reading(rest, &HEAD_LIMITS) {
                return Ok(taken);
            }
            let mut lines = LineBuffer::new();
            let progress = parse_response(rest, &HEAD_LIMITS, &mut lines)
                .map_err(|_| "the head is not one of HTTP/1")?;
            let Progress::Complete { head, consumed } = progress else {
                return Ok(taken);
            };
            taken += consumed;
            if (100..200).contains(&head.status) {
                self.interim += 1;
                if self.interim > INTERIM_MAX || head.status == 101 {
                    return Err("endless interim responses, or an unrequested switch of protocols");
                }
                self.arrival = Arrival::new();
                continue;
            }
            let length = response_body(head.version, self.method, head.status, head.fields)
                .map_err(|_| "the fields do not say how long the content is")?;
            self.until_close = matches!(length, weir_wire::BodyLength::UntilClose);
            self.keep = self.keep && !self.until_close && is_kept(head.version, head.fields);
            inspector.head(&head, &rest[..consumed]);
            self.state = State::Content(BodyReader::new(length, HEAD_LIMITS));
            return Ok(taken);
        }
    }

    fn content(&mut self, mut bytes: &[u8], inspector: &mut impl Inspect) -> Command {
        let State::Content(reader) = &mut self.state else {
            unreachable!("only called when content is next");
        };
        loop {
            let step = match reader.step(bytes) {
                Ok(step) => step,
                Err(error) => return self.finish(Ending::Unreadable(unreadable(error))),
            };
            bytes = &bytes[step.consumed..];
            match step.event {
                BodyEvent::NeedMore => return Command::Receive,
                BodyEvent::Data(data) => {
                    if inspector.content(data).is_break() {
                        return self.finish(Ending::Aborted);
                    }
                }
                BodyEvent::End if !bytes.is_empty() => return self.finish(Ending::Surplus),
                BodyEvent::End => break,
            }
        }
        let keep = self.keep;
        let ending = Ending::Whole { until_close: false };
        self.state = if keep { State::Idle } else { State::Closed };
        Command::Finish { ending, keep }
    }
}

fn unreadable(_: BodyError) -> &'static str {
    "the chunks of the content are malformed"
}

/// Does the other side keep the connection (RFC 9112 §9.3)? Proxies of old say so in
/// `Proxy-Connection`.
fn is_kept(version: Version, fields: &[FieldLine<'_>]) -> bool {
    let has = |option: &[u8]| {
        lines_named(fields, "Connection")
            .chain(line_named(fields, "Proxy-Connection"))
            .flat_map(list_elements)
            .any(|element| element.eq_ignore_ascii_case(option))
    };
    match version {
        Version::Http11 => !has(b"close"),
        Version::Http10 => has(b"keep-alive") && !has(b"close"),
    }
}

#[cfg(test)]
mod tests;
