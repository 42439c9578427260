//! The message with the state of a connection that a node moves on.

use crate::cluster::Cluster;
use weir_net::hand_off::repair::ConnectionState;
use weir_policy::connections::hand_off::MoveCredit;

/// What stands in front of the state: a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MovedMessage<'m> {
    /// The front end that leads the packets.
    pub(super) front_end: &'m str,
    /// The ticket of the connection at the node that sends this.
    pub(super) ticket: &'m str,
    /// Which of the attempts of that node it is.
    pub(super) attempt: u32,
    /// How often the connection may move on.
    pub(super) credit: MoveCredit,
    /// What the front end has given the node for this move.
    pub(super) permit: &'m str,
}

impl<'m> MovedMessage<'m> {
    /// Appends it to a message; the state follows.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self {
            front_end,
            ticket,
            attempt,
            credit,
            permit,
        } = self;
        let credit = credit.as_ms();
        let line = format!("{front_end} {ticket} {attempt} {credit} {permit}\n");
        out.extend(line.as_bytes());
    }

    /// Reads it from the front of a message; with what follows.
    pub(super) fn read(content: &'m [u8]) -> Option<(Self, &'m [u8])> {
        let end = content.iter().position(|byte| *byte == b'\n')?;
        let mut words = std::str::from_utf8(&content[..end]).ok()?.split(' ');
        let message = Self {
            front_end: words.next()?,
            ticket: words.next()?,
            attempt: words.next()?.parse().ok()?,
            credit: MoveCredit::of_ms(words.next()?.parse().ok()?),
            permit: words.next()?,
        };
        words
            .next()
            .is_none()
            .then_some((message, &content[end + 1..]))
    }

    /// Whether the front end permits `from` to move the connection with this state to this node.
    pub(super) fn is_permitted(
        &self,
        cluster: &Cluster,
        from: &str,
        state: &ConnectionState,
    ) -> bool {
        let (flow, attempt) = (state.client.to_string(), self.attempt.to_string());
        let words = [&flow, self.ticket, &attempt];
        cluster.is_move_permitted((self.front_end, from), words, self.permit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: MovedMessage<'_> = MovedMessage {
        front_end: "f",
        ticket: "AAAA",
        attempt: 7,
        credit: MoveCredit::full(),
        permit: "BBBB",
    };

    #[test]
    fn message_is_read_as_it_was_written_and_the_state_follows() {
        let mut content = Vec::new();
        MESSAGE.write(&mut content);
        content.extend(b"state\n1 2\n");
        let read = MovedMessage::read(&content);
        assert_eq!(read, Some((MESSAGE, &b"state\n1 2\n"[..])));
    }

    #[test]
    fn message_with_more_or_fewer_words_is_refused() {
        for line in [
            "",
            "\n",
            "f AAAA 7 8000 BBBB",
            "f AAAA 7 8000\n",
            "f AAAA 7 8000 BBBB \n",
            "f AAAA -7 8000 BBBB\n",
            "f AAAA 7 x BBBB\n",
        ] {
            assert_eq!(MovedMessage::read(line.as_bytes()), None, "{line}");
        }
        assert_eq!(MovedMessage::read(b"\xff 1 1 1 1\n"), None);
    }
}
