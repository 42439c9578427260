//! Transactions of nftables by netlink (linux/netfilter/nfnetlink.h, nf_tables.h).

use super::change::Change;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFPROTO_NETDEV: u8 = 5;
const NFT_MSG_DELTABLE: u16 = 2;
const NFT_MSG_NEWSETELEM: u16 = 12;
const NFT_MSG_DELSETELEM: u16 = 14;

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;

const NFTA_TABLE_NAME: u16 = 1;
const NFTA_SET_ELEM_LIST_TABLE: u16 = 1;
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
const NFTA_LIST_ELEM: u16 = 1;
const NFTA_SET_ELEM_KEY: u16 = 1;
const NFTA_SET_ELEM_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NLA_F_NESTED: u16 = 0x8000;

/// Bytes of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// One answer: its header, a number, and the message that it is to, if that was refused.
const ANSWER_BYTES: usize = 8192;

/// The number of a message that is not of a change: the begin and the end of a transaction.
const OF_NO_CHANGE: u32 = u32::MAX;

/// A socket for one table.
#[derive(Debug)]
pub(super) struct Nftables {
    socket: OwnedFd,
    table: String,
}

/// Why a transaction was not carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Of the changes at these places, in their order.
    Changes(Vec<(usize, Errno)>),
    /// Of the whole: without privileges, say.
    Whole(Errno),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Self::Whole(error)
    }
}

impl Nftables {
    /// In the network of the calling thread.
    pub(super) fn new(table: String) -> rustix::io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::NETFILTER),
        )?;
        Ok(Self { socket, table })
    }

    /// Carries out all changes in one transaction, or none.
    ///
    /// # Errors
    /// The changes that the kernel refuses, or why it refuses all.
    pub(super) fn commit(&self, changes: impl Iterator<Item = Change>) -> Result<(), Refusal> {
        let mut text = Vec::new();
        batch_end_of(&mut text, NFNL_MSG_BATCH_BEGIN);
        let mut count = 0;
        for change in changes {
            let number = u32::try_from(count).unwrap_or(OF_NO_CHANGE);
            write_change(&mut text, number, &self.table, change);
            count += 1;
        }
        batch_end_of(&mut text, NFNL_MSG_BATCH_END);
        self.carry_out(&text, count)
    }

    /// Removes the table, with its sets and rules.
    ///
    /// # Errors
    /// It is not there, or the kernel refuses it.
    pub(super) fn remove_table(&self) -> Result<(), Refusal> {
        let mut text = Vec::new();
        batch_end_of(&mut text, NFNL_MSG_BATCH_BEGIN);
        let kind = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE;
        let flags = NLM_F_REQUEST | NLM_F_ACK;
        message(&mut text, (kind, flags, 0), (NFPROTO_NETDEV, 0), |out| {
            attribute(out, NFTA_TABLE_NAME, |out| string(out, &self.table));
        });
        batch_end_of(&mut text, NFNL_MSG_BATCH_END);
        self.carry_out(&text, 1)
    }

    fn carry_out(&self, text: &[u8], count: usize) -> Result<(), Refusal> {
        send(&self.socket, text, SendFlags::empty())?;
        let (mut acknowledged, mut refused) = (0, Vec::new());
        let mut answer = [0; ANSWER_BYTES];
        // the kernel has answered when `send` returns
        loop {
            let length = match recv(&self.socket, &mut answer[..], RecvFlags::empty()) {
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            for outcome in outcomes(&answer[..length]) {
                match outcome {
                    (_, None) => acknowledged += 1,
                    (OF_NO_CHANGE, Some(error)) => return Err(Refusal::Whole(error)),
                    (number, Some(error)) => refused.push((number as usize, error)),
                }
            }
        }
        match refused.is_empty() {
            true if acknowledged == count => Ok(()),
            true => Err(Refusal::Whole(Errno::BADMSG)),
            false => {
                refused.sort_unstable_by_key(|(place, _)| *place);
                Err(Refusal::Changes(refused))
            }
        }
    }
}

/// The begin or the end of a transaction.
fn batch_end_of(out: &mut Vec<u8>, kind: u16) {
    let head = (kind, NLM_F_REQUEST, OF_NO_CHANGE);
    message(out, head, (0, NFNL_SUBSYS_NFTABLES), |_| {});
}

fn write_change(out: &mut Vec<u8>, number: u32, table: &str, change: Change) {
    let (kind, flags) = match change.is_addition() {
        true => (NFT_MSG_NEWSETELEM, NLM_F_CREATE),
        false => (NFT_MSG_DELSETELEM, 0),
    };
    let kind = NFNL_SUBSYS_NFTABLES << 8 | kind;
    let flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    message(out, (kind, flags, number), (NFPROTO_NETDEV, 0), |out| {
        attribute(out, NFTA_SET_ELEM_LIST_TABLE, |out| string(out, table));
        attribute(out, NFTA_SET_ELEM_LIST_SET, |out| string(out, change.set()));
        attribute(out, NLA_F_NESTED | NFTA_SET_ELEM_LIST_ELEMENTS, |out| {
            attribute(out, NLA_F_NESTED | NFTA_LIST_ELEM, |out| {
                write_element(out, change);
            });
        });
    });
}

fn write_element(out: &mut Vec<u8>, change: Change) {
    let value = |out: &mut Vec<u8>, kind: u16, value: &[u8]| {
        attribute(out, NLA_F_NESTED | kind, |out| {
            attribute(out, NFTA_DATA_VALUE, |out| out.extend(value));
        });
    };
    value(out, NFTA_SET_ELEM_KEY, &key(change.flow()));
    if let Some(to) = change.machine() {
        value(out, NFTA_SET_ELEM_DATA, &Ipv4Addr::octets(&to));
    }
}

/// An address and a port in network order; each part of a key is padded to four bytes.
fn key(flow: SocketAddrV4) -> [u8; 8] {
    let [a, b, c, d] = flow.ip().octets();
    let [high, low] = flow.port().to_be_bytes();
    [a, b, c, d, high, low, 0, 0]
}

/// A message of netfilter: kind, flags and number; family and resource; what is in it.
fn message(
    out: &mut Vec<u8>,
    (kind, flags, number): (u16, u16, u32),
    (family, resource): (u8, u16),
    content: impl FnOnce(&mut Vec<u8>),
) {
    let from = out.len();
    out.extend([0; 4]);
    out.extend(kind.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend(number.to_ne_bytes());
    out.extend([0; 4]);
    // the version, 0, behind the family
    out.extend([family, 0]);
    out.extend(resource.to_be_bytes());
    content(out);
    let length = u32::try_from(out.len() - from).unwrap_or(u32::MAX);
    out[from..from + 4].copy_from_slice(&length.to_ne_bytes());
}

/// An attribute: its length, its kind, what is in it, padded to four bytes.
fn attribute(out: &mut Vec<u8>, kind: u16, content: impl FnOnce(&mut Vec<u8>)) {
    let from = out.len();
    out.extend([0; 2]);
    out.extend(kind.to_ne_bytes());
    content(out);
    let length = u16::try_from(out.len() - from).unwrap_or(u16::MAX);
    out[from..from + 2].copy_from_slice(&length.to_ne_bytes());
    out.resize(out.len().next_multiple_of(4), 0);
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend(text.as_bytes());
    out.push(0);
}

/// What the kernel says of each message, in what was received at once: its number, and why it is
/// refused.
fn outcomes(mut answer: &[u8]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while let Some((outcome, rest)) = outcome(answer) {
        outcomes.extend(outcome);
        answer = rest;
    }
    outcomes
}

type Outcome = (u32, Option<Errno>);

/// That of the first message, if it is an answer, and what follows it; `None` if there is none that
/// is whole.
fn outcome(answer: &[u8]) -> Option<(Option<Outcome>, &[u8])> {
    let number_at = |at: usize| Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
    let length = usize::try_from(number_at(0)?).ok()?;
    let message = answer.get(..length).filter(|it| it.len() >= HEADER_BYTES)?;
    let rest = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    let kind = u16::from_ne_bytes(*message.get(4..)?.first_chunk()?);
    if kind != NLMSG_ERROR {
        return Some((None, rest));
    }
    let error = i32::from_ne_bytes(*message.get(HEADER_BYTES..)?.first_chunk()?);
    let error = (error != 0).then(|| Errno::from_raw_os_error(error.saturating_neg()));
    Some((Some((number_at(8)?, error)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer to message `number`.
    fn answer(number: u32, error: i32) -> Vec<u8> {
        let mut text = Vec::new();
        message(&mut text, (NLMSG_ERROR, 0, number), (0, 0), |_| {});
        text.truncate(HEADER_BYTES);
        text.extend(error.to_ne_bytes());
        text[..4].copy_from_slice(&20_u32.to_ne_bytes());
        text
    }

    #[test]
    fn answers_tell_the_change_that_was_refused() {
        let noent = Errno::NOENT.raw_os_error();
        let text = [answer(0, 0), answer(1, -noent), answer(OF_NO_CHANGE, -1)].concat();
        let expected = [
            (0, None),
            (1, Some(Errno::NOENT)),
            (OF_NO_CHANGE, Some(Errno::PERM)),
        ];
        assert_eq!(outcomes(&text), expected);
    }

    #[test]
    fn truncated_answer_is_ignored() {
        let text = answer(3, -1);
        for length in 0..text.len() {
            assert_eq!(outcomes(&text[..length]), [], "{length} bytes");
        }
        // a length that is none
        assert_eq!(outcomes(&[0; 64]), []);
    }

    #[test]
    fn message_and_its_attributes_have_their_lengths() {
        let flow = "192.0.2.1:258".parse().unwrap();
        let to = Ipv4Addr::new(192, 0, 2, 9);
        let mut text = Vec::new();
        write_change(&mut text, 7, "t", Change::Steer(flow, to));
        let length = u32::try_from(text.len()).unwrap();
        assert_eq!(text[..4], length.to_ne_bytes());
        assert_eq!(text[16..20], [NFPROTO_NETDEV, 0, 0, 0]);
        // table `t`: six bytes, padded to eight
        assert_eq!(text[20..22], 6_u16.to_ne_bytes());
        assert_eq!(text[24..28], *b"t\0\0\0");
        let ends = [192, 0, 2, 1, 1, 2, 0, 0];
        assert!(text.windows(8).any(|part| part == ends));
        assert!(text.ends_with(&[192, 0, 2, 9]));
    }
}
