//! The state of one connection: records in, content out, and the other way.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use std::io;

/// A side of a connection: `rustls` has the same calls for both, and no trait.
pub(super) trait Side {
    type Data;

    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8])
    -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn is_handshaking(&self) -> bool;

    /// Whether it has records of the protocol itself to send.
    fn has_records(&self) -> bool;

    /// The protocol that the two sides have chosen.
    fn protocol(&self) -> Option<&[u8]>;
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(records)
    }

    fn is_handshaking(&self) -> bool {
        (**self).is_handshaking()
    }

    fn protocol(&self) -> Option<&[u8]> {
        self.alpn_protocol()
    }

    fn has_records(&self) -> bool {
        (**self).wants_write()
    }
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(records)
    }

    fn is_handshaking(&self) -> bool {
        (**self).is_handshaking()
    }

    fn protocol(&self) -> Option<&[u8]> {
        self.alpn_protocol()
    }

    fn has_records(&self) -> bool {
        (**self).wants_write()
    }
}

/// The state of one connection.
pub(super) struct RecordLayer<S> {
    side: S,
    /// The begin of a record, or of a handshake message, whose rest has not come.
    partial: Vec<u8>,
    /// Content that was received and is not used.
    content: Queue,
    /// Records that the kernel has not taken.
    records: Queue,
    /// The peer sends no more.
    is_ended: bool,
    /// Why nothing more can be received.
    failure: Option<rustls::Error>,
}

impl<S: Side> RecordLayer<S> {
    pub(super) const fn new(side: S) -> Self {
        Self {
            side,
            partial: Vec::new(),
            content: Queue::EMPTY,
            records: Queue::EMPTY,
            is_ended: false,
            failure: None,
        }
    }

    pub(super) const fn side(&self) -> &S {
        &self.side
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.side.is_handshaking()
    }

    /// The peer has sent its last byte, with `close_notify` (RFC 8446 §6.1).
    pub(super) const fn is_ended(&self) -> bool {
        self.is_ended
    }

    pub(super) const fn failure(&self) -> Option<&rustls::Error> {
        self.failure.as_ref()
    }

    /// The begin of a record, which the rest is to be read behind.
    pub(super) fn partial(&self) -> &[u8] {
        &self.partial
    }

    /// Content that was received and is not used.
    pub(super) const fn content(&mut self) -> &mut Queue {
        &mut self.content
    }

    pub(super) fn has_content(&self) -> bool {
        !self.content.is_empty()
    }

    /// Records to send.
    pub(super) const fn records(&mut self) -> &mut Queue {
        &mut self.records
    }

    /// Bytes that it owns memory for.
    #[cfg(test)]
    pub(super) fn buffered_bytes(&self) -> usize {
        let vectors = [&self.partial, &self.content.bytes, &self.records.bytes];
        vectors.iter().map(|it| it.capacity()).sum()
    }

    /// Takes what was received: the partial record, which `received` begins with, and more. What
    /// content is in it goes to `content`, until that is full; the rest is kept. Returns how much
    /// of `content` was used.
    ///
    /// # Errors
    ///
    /// It is not as the protocol has it. An alert that says so is among the records to send.
    pub(super) fn receive(
        &mut self,
        received: &mut [u8],
        content: &mut [u8],
    ) -> Result<usize, rustls::Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let mut filled = 0;
        let kept = &mut self.content;
        let take = |bytes: &[u8]| {
            let room = bytes.len().min(content.len() - filled);
            content[filled..filled + room].copy_from_slice(&bytes[..room]);
            filled += room;
            kept.push(&bytes[room..]);
        };
        let mut used = 0;
        let processed = process(
            &mut self.side,
            (received, &mut used),
            take,
            &mut self.records,
        );
        match processed {
            Ok(is_ended) => {
                self.is_ended |= is_ended;
                // an exact size: a record may be partial for long
                self.partial = received[used..].to_vec();
                Ok(filled)
            }
            Err(failure) => {
                self.partial = Vec::new();
                self.failure = Some(failure.clone());
                add_alert(&mut self.side, &mut received[used..], &mut self.records);
                Err(failure)
            }
        }
    }

    /// Encrypts `content` into `records`; how many bytes that takes.
    ///
    /// # Errors
    ///
    /// The handshake is not complete, or the keys are used up, or `records` is too short.
    pub(super) fn encrypt(&mut self, content: &[u8], records: &mut [u8]) -> io::Result<usize> {
        self.write_traffic(|traffic| traffic.encrypt(content, records))
    }

    /// Has a `close_notify` among the records to send.
    ///
    /// # Errors
    ///
    /// As [`Self::encrypt`].
    pub(super) fn close(&mut self) -> io::Result<()> {
        let mut alert = [0; ALERT_BYTES_MAX];
        let length = self.write_traffic(|traffic| traffic.queue_close_notify(&mut alert))?;
        self.records.push(&alert[..length]);
        Ok(())
    }

    fn write_traffic(
        &mut self,
        write: impl FnOnce(
            &mut rustls::unbuffered::WriteTraffic<'_, S::Data>,
        ) -> Result<usize, EncryptError>,
    ) -> io::Result<usize> {
        if self.failure.is_some() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // what a change of keys has left to send goes first; the partial record stays where it is,
        // as the side knows how far it has read it
        loop {
            let status = self.side.process(&mut self.partial);
            debug_assert_eq!(status.discard, 0, "it was processed before");
            match status.state.map_err(io::Error::other)? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    return write(&mut traffic).map_err(io::Error::other);
                }
                ConnectionState::EncodeTlsData(data) => encode(data, &mut self.records),
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.is_ended = true,
                _ => return Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }
}

/// Room for an alert, encrypted, bytes.
const ALERT_BYTES_MAX: usize = 128;

/// Has `side` process `received` from `used` on, which then is what is not needed any more; gives
/// content to `take` and what is to be sent to `records`. Whether the peer sends no more.
fn process<S: Side>(
    side: &mut S,
    (received, used): (&mut [u8], &mut usize),
    mut take: impl FnMut(&[u8]),
    records: &mut Queue,
) -> Result<bool, rustls::Error> {
    let mut is_ended = false;
    loop {
        let status = side.process(&mut received[*used..]);
        *used += status.discard;
        match status.state? {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    *used += record.discard;
                    take(record.payload);
                }
            }
            ConnectionState::EncodeTlsData(data) => encode(data, records),
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::PeerClosed => is_ended = true,
            // what is left is to be completed; 0-RTT is not offered
            _ => return Ok(is_ended),
        }
    }
}

/// Appends the alert that says why `side` has failed, with `rest` of what was received. It is not
/// to process that again.
fn add_alert<S: Side>(side: &mut S, rest: &mut [u8], records: &mut Queue) {
    while side.has_records() {
        match side.process(rest).state {
            Ok(ConnectionState::EncodeTlsData(data)) => encode(data, records),
            _ => return,
        }
    }
}

/// Appends a record of the protocol itself to those to send.
fn encode<D>(mut data: rustls::unbuffered::EncodeTlsData<'_, D>, records: &mut Queue) {
    let mut room = 0;
    loop {
        let from = records.bytes.len();
        records.bytes.resize(from + room, 0);
        match data.encode(&mut records.bytes[from..]) {
            Ok(length) => {
                records.bytes.truncate(from + length);
                return;
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                records.bytes.truncate(from);
                room = required_size;
            }
            Err(EncodeError::AlreadyEncoded) => return records.bytes.truncate(from),
        }
    }
}

/// Bytes that wait; empty it owns no memory.
pub(super) struct Queue {
    bytes: Vec<u8>,
    used: usize,
}

impl Queue {
    const EMPTY: Self = Self {
        bytes: Vec::new(),
        used: 0,
    };

    pub(super) fn is_empty(&self) -> bool {
        self.used == self.bytes.len()
    }

    pub(super) fn waiting(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// So many of them are used.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.used += bytes;
        if self.is_empty() {
            *self = Self::EMPTY;
        }
    }
}
