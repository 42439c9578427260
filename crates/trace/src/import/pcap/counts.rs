//! What was in a capture, and what of it became no row: nothing is left out silently.

use crate::import::pcap::packets::decode::NotTcp;

macro_rules! counts {
    ($($(#[$meaning:meta])* $name:ident = $word:literal,)+) => {
        /// What an import met. All are numbers of what the name says; none is an error.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$meaning])* pub $name: u64,)+
            /// Packets that brought no TCP segment, in the order of [`NotTcp::ALL`].
            pub not_tcp: [u64; NotTcp::ALL.len()],
        }

        impl Counts {
            /// All of them by name, zeros included.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                let named = [$(($word, self.$name),)+];
                let not_tcp = NotTcp::ALL.iter().map(|reason| reason.as_str()).zip(self.not_tcp);
                named.into_iter().chain(not_tcp)
            }
        }
    };
}

counts! {
    /// Packets in the file.
    packets = "packets",
    /// TCP connections that were followed: those whose SYN or SYN-ACK was seen.
    connections = "connections",
    /// Connections that began before the capture and were joined at a head.
    joined = "connections-joined-in-the-middle",
    /// Connections of which nothing was HTTP.
    not_http = "connections-not-http",
    /// Connections that were refused: a reset answered the SYN.
    refused = "connections-refused",
    /// Connections with a reset from either side.
    resets = "connections-with-reset",
    /// Connections given up because there were too many, or because they were silent too long.
    given_up = "connections-given-up",
    /// Segments all of whose data was there before: retransmissions, copies, keep-alive probes.
    again = "segments-again",
    /// Segments whose sequence number is far from that of their connection.
    foreign = "segments-foreign",
    /// Holes that were not filled.
    holes = "holes",
    /// Bytes of data that were sent and not captured, in holes or behind the end of short packets.
    missing_bytes = "missing-bytes",
    /// Bytes that were dropped at the end because they stood behind a hole that was not
    /// acknowledged.
    unacknowledged_bytes = "unacknowledged-bytes",
    /// Bytes between a point where the framing was lost and the next head.
    skipped_bytes = "skipped-bytes",
    /// Requests: each became a row.
    requests = "requests",
    /// Final responses that answer one of them.
    responses = "responses",
    /// Interim responses, 100 and the like.
    interim = "responses-interim",
    /// Final responses whose request was not seen. They become no row, as their target is not
    /// known.
    orphans = "responses-without-request",
    /// Requests whose response was not seen.
    unanswered = "requests-without-response",
    /// Requests that were given up because too many waited for a response.
    overdue = "requests-given-up",
    /// Heads that had to be repaired before they could be read.
    repaired = "heads-repaired",
    /// Heads that could not be read, or not whole.
    unreadable = "heads-unreadable",
    /// Content whose end could not be found: its framing was lost or faulty.
    framing_lost = "contents-without-end",
    /// Rows that left after one that began later.
    late = "rows-out-of-order",
}

impl Counts {
    /// Those that say what is no row, or not in the whole; zeros left out.
    pub(super) fn dropped(&self) -> impl Iterator<Item = (&'static str, u64)> {
        /// What was said more than once, or is in a row.
        const NO_LOSS: [&str; 12] = [
            "packets",
            "connections",
            "connections-joined-in-the-middle",
            "connections-with-reset",
            "segments-again",
            "requests",
            "responses",
            "responses-interim",
            "requests-without-response",
            "heads-repaired",
            "rows-out-of-order",
            "connections-refused",
        ];
        self.iter()
            .filter(|(name, count)| *count > 0 && !NO_LOSS.contains(name))
    }

    /// A packet brought no segment.
    pub(super) fn add_not_tcp(&mut self, reason: NotTcp) {
        if let Some(place) = NotTcp::ALL.iter().position(|&other| other == reason) {
            self.not_tcp[place] += 1;
        }
    }
}
