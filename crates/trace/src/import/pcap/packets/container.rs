//! Capture files: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), recognised
//! by their first bytes.
//!
//! Read by hand: two small formats, streamed with one packet in memory, and a fault is named with
//! the packet where it is.

use std::fmt;
use std::io::{self, Read};

use crate::import::damage::{Damage, Place, reason};
use crate::import::pcap::packets::blocks::Blocks;
use crate::import::pcap::packets::classic::Classic;
use crate::import::pcap::packets::frame::Frame;
use crate::import::pcap::packets::input::Input;

/// The most bytes that are captured of one packet: libpcap's MAXIMUM_SNAPLEN. A record that says
/// more is damaged.
pub(in crate::import::pcap) const CAPTURED_BYTES_MAX: usize = 262_144;

/// A capture file that is read packet by packet.
pub(in crate::import::pcap) struct Container<R> {
    input: Input<R>,
    framing: Framing,
    /// The bytes of one packet, and in pcapng of its block.
    scratch: Vec<u8>,
    /// Packets so far.
    packets: u64,
}

enum Framing {
    /// The first bytes were not read yet.
    Unread,
    Classic(Classic),
    Blocks(Blocks),
    /// The end was reached, or a fault that there is no way past.
    Ended,
}

/// What helps when a file cannot be read on.
const HINT: &str = "use `--on-damage skip` to take what stands before it, or mend the file with `pcapfix` or Wireshark's `editcap`";

/// What is wrong with a capture file.
///
/// `Display` is a fragment that fits "packet 12: …".
#[derive(Debug)]
pub(in crate::import::pcap) enum Fault {
    /// The bytes could not be read.
    Io(io::Error),
    /// The first four bytes are those of no capture.
    Magic([u8; 4]),
    /// The file is shorter than its own header.
    NoHeader,
    /// The format has a version that does not exist.
    Version(u16, u16),
    /// The file ends within a packet or block.
    CutOff {
        wanted_bytes: usize,
        got_bytes: usize,
    },
    /// A packet says it has more bytes than a packet can have.
    TooLong(u64),
    /// A block's length is impossible.
    BlockLength { kind: u32, bytes: u32 },
    /// The two lengths of a block differ.
    BlockEnds { first: u32, second: u32 },
    /// A section's header does not show its byte order.
    ByteOrder(u32),
    /// The file has packets before it says how they were captured.
    Interface(u32),
    /// The file has more interfaces than a machine has.
    Interfaces,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the file could not be read: {error}"),
            Self::Magic(bytes) => write!(
                f,
                "the file begins with the bytes {bytes:02x?}, which no pcap or pcapng file does"
            ),
            Self::NoHeader => f.write_str("the file ends within its header"),
            Self::Version(major, minor) => {
                write!(f, "version {major}.{minor} of the format is not known")
            }
            Self::CutOff {
                wanted_bytes,
                got_bytes,
            } => write!(
                f,
                "the file ends within it: {got_bytes} bytes of {wanted_bytes} are there"
            ),
            Self::TooLong(bytes) => write!(
                f,
                "it claims {bytes} captured bytes, more than a packet has ({CAPTURED_BYTES_MAX})"
            ),
            Self::BlockLength { kind, bytes } => {
                write!(
                    f,
                    "a block of type {kind:#x} claims to be {bytes} bytes long"
                )
            }
            Self::BlockEnds { first, second } => write!(
                f,
                "a block says {first} bytes at its beginning and {second} at its end"
            ),
            Self::ByteOrder(magic) => {
                write!(f, "a section header has {magic:#010x} for its byte order")
            }
            Self::Interface(number) => {
                write!(
                    f,
                    "it was captured at interface {number}, which the file does not describe"
                )
            }
            Self::Interfaces => f.write_str("the file describes too many interfaces"),
        }
    }
}

impl Fault {
    /// In the words of all importers. After each the rows follow that were open, so something may
    /// always be behind it.
    pub(in crate::import::pcap) fn damaged(self, packet: u64) -> Damage {
        let place = Place::Packet(packet);
        let reason = match &self {
            Self::Io(error) => {
                return Damage {
                    goes_on: true,
                    ..Damage::unread(place, error)
                }
                .hinted(HINT);
            }
            Self::CutOff { .. } | Self::NoHeader => reason::CUT_OFF,
            Self::Interface(_) => return Damage::item(place, reason::PACKET, self.to_string()),
            _ => reason::PACKET,
        };
        Damage::item(place, reason, self.to_string()).hinted(HINT)
    }

    /// Whether what follows in the file can still be read.
    pub(in crate::import::pcap) const fn goes_on(&self) -> bool {
        matches!(self, Self::Interface(_))
    }
}

impl<R: Read> Container<R> {
    pub(in crate::import::pcap) fn new(inner: R) -> Self {
        Self {
            input: Input::new(inner),
            framing: Framing::Unread,
            scratch: Vec::new(),
            packets: 0,
        }
    }

    /// Packets so far, whole ones.
    pub(in crate::import::pcap) const fn packets(&self) -> u64 {
        self.packets
    }

    /// The next packet; `None` at the end. After a fault that does not [go on](Fault::goes_on)
    /// there is no next one.
    pub(in crate::import::pcap) fn next_frame(&mut self) -> Option<Result<Frame<'_>, Fault>> {
        if let Framing::Unread = self.framing {
            match begin(&mut self.input) {
                Ok(framing) => self.framing = framing,
                Err(fault) => {
                    self.framing = Framing::Ended;
                    return Some(Err(fault));
                }
            }
        }
        let found = match &mut self.framing {
            Framing::Unread | Framing::Ended => return None,
            Framing::Classic(classic) => classic.next(&mut self.input, &mut self.scratch),
            Framing::Blocks(blocks) => blocks.next(&mut self.input, &mut self.scratch),
        };
        match found {
            Ok(Some(found)) => {
                self.packets += 1;
                let bytes = &self.scratch[found.bytes];
                Some(Ok(Frame {
                    time_us: found.time_us,
                    link: found.link,
                    wire_bytes: found.wire_bytes.max(bytes.len()),
                    bytes,
                }))
            }
            Ok(None) => {
                self.framing = Framing::Ended;
                None
            }
            Err(fault) => {
                if fault.goes_on() {
                    self.packets += 1;
                } else {
                    self.framing = Framing::Ended;
                }
                Some(Err(fault))
            }
        }
    }
}

/// Which format it is.
fn begin<R: Read>(input: &mut Input<R>) -> Result<Framing, Fault> {
    let mut magic = [0; 4];
    if input.fill(&mut magic).map_err(Fault::Io)? < magic.len() {
        return Err(Fault::NoHeader);
    }
    if magic == Blocks::MAGIC {
        return Ok(Framing::Blocks(Blocks::new()));
    }
    Classic::begin(magic, input).map(Framing::Classic)
}

/// Fills `buf`, or names what is wrong; `Ok(false)` at the end of the file.
pub(in crate::import::pcap) fn fill_or_end<R: Read>(
    input: &mut Input<R>,
    buf: &mut [u8],
) -> Result<bool, Fault> {
    let got_bytes = input.fill(buf).map_err(Fault::Io)?;
    let wanted_bytes = buf.len();
    if got_bytes < wanted_bytes && got_bytes > 0 {
        return Err(Fault::CutOff {
            wanted_bytes,
            got_bytes,
        });
    }
    Ok(got_bytes == wanted_bytes)
}

/// Fills `buf`; the file may not end here.
pub(in crate::import::pcap) fn fill<R: Read>(
    input: &mut Input<R>,
    buf: &mut [u8],
) -> Result<(), Fault> {
    if fill_or_end(input, buf)? {
        return Ok(());
    }
    Err(Fault::CutOff {
        wanted_bytes: buf.len(),
        got_bytes: 0,
    })
}

/// A packet in the scratch.
pub(in crate::import::pcap) struct PacketRecord {
    pub(in crate::import::pcap) time_us: Option<i64>,
    pub(in crate::import::pcap) link: crate::import::pcap::packets::link::Link,
    pub(in crate::import::pcap) wire_bytes: usize,
    /// Where in the scratch.
    pub(in crate::import::pcap) bytes: std::ops::Range<usize>,
}
