//! A request to a next hop on an HTTP/1.1 connection, and the response to it.

use super::reception::{Http1Reception, Reception};
use super::request::Http1Request;
use super::writer::MessageWriter;
use crate::http::next_hop_facts::NextHopFacts;
use crate::next_hops::{Connection, ConnectionLink, check_in};
use crate::tunnel::NextHopEnd;
use crate::workers::Worker;
use std::cell::Cell;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use weir_measure::Counters;
use weir_policy::Digest;

/// A request on an HTTP/1.1 connection to a next hop.
pub(crate) struct Http1NextHop {
    connection: CountedConnection,
    writer: MessageWriter,
    reception: Reception,
    /// A write has failed: the end of the connection is none of the response (see
    /// [`Http1Reception`]).
    write_failed: Cell<bool>,
}

impl Http1NextHop {
    #[inline]
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection: CountedConnection(Some(connection)),
            writer: MessageWriter::new(),
            reception: Reception::new(),
            write_failed: Cell::new(false),
        }
    }

    pub(crate) fn facts(&self) -> NextHopFacts<'_> {
        NextHopFacts {
            address: self.connection.address,
            hop: &self.connection.hop,
            reused: self.connection.reused,
            is_http2: false,
            uses: &self.connection.uses,
            link: self.connection.link.as_deref().map(|link| link.name()),
        }
    }

    pub(crate) fn count_request(&mut self, counters: &Counters, client: IpAddr) {
        self.connection.uses.serve(counters, client);
    }

    pub(crate) fn split(&mut self) -> (Http1Request<'_>, Http1Reception<'_>) {
        let Connection { stream, link, .. } = &mut *self.connection;
        let (read, write) = stream.split();
        let (link, writes) = match link.as_deref_mut() {
            Some(link) => link.split(),
            None => (None, None),
        };
        let request = Http1Request::new(write, &mut self.writer, &self.write_failed, writes);
        let response = Http1Reception::new(read, &mut self.reception, &self.write_failed, link);
        (request, response)
    }

    pub(crate) fn release(self, worker: &Worker, offered_bytes_max: u64) -> bool {
        let Self {
            connection,
            writer,
            reception,
            ..
        } = self;
        let is_reusable = writer.is_complete()
            && reception.is_clean()
            && connection.stream.is_clean()
            && reception.offered_bytes(connection.stream.tcp()) <= offered_bytes_max;
        if is_reusable {
            check_in(worker, connection.take());
        }
        is_reusable
    }

    pub(crate) fn set_background(&mut self, is_background: bool) {
        if let Some(link) = &mut self.connection.link {
            link.set_background(is_background);
        }
    }

    pub(crate) fn is_link_scarce(&self) -> bool {
        let link = self.connection.link.as_deref();
        link.is_some_and(ConnectionLink::is_scarce)
    }

    pub(crate) fn set_range_of(&mut self, of: Digest) {
        if let Some(link) = &mut self.connection.link {
            link.set_range_of(of);
        }
    }

    pub(crate) fn release_unused(self, worker: &Worker) {
        check_in(worker, self.connection.take());
    }

    pub(crate) fn become_tunnel(&mut self) -> Vec<u8> {
        self.connection.permit.becomes_tunnel();
        self.reception.take_bytes()
    }

    pub(crate) fn tunnel_end(&mut self) -> NextHopEnd<'_> {
        let Connection { stream, link, .. } = &mut *self.connection;
        NextHopEnd {
            end: stream.end(),
            link: link.as_deref_mut(),
        }
    }
}

/// A connection in use. If it is closed and not given back, what it has received and nothing has
/// read counts for its link.
struct CountedConnection(Option<Connection>);

impl CountedConnection {
    fn take(mut self) -> Connection {
        self.0.take().expect("it is taken once")
    }
}

impl Deref for CountedConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0.as_ref().expect("it is not taken")
    }
}

impl DerefMut for CountedConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        self.0.as_mut().expect("it is not taken")
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.0 {
            connection.count_unread();
        }
    }
}
