//! Clients' links by the kernel: a network namespace for the clients, a pair of devices for each,
//! and a token bucket at both ends.
//!
//! ```text
//!   our namespace                                    the clients' namespace
//!   proxy <- 198.18.0.0 [ tbf: down ] ---- veth ---- [ tbf: up ] 198.18.0.1 <- client 0
//!         <- 198.18.0.2 [ tbf: down ] ---- veth ---- [ tbf: up ] 198.18.0.3 <- client 1
//! ```
//!
//! Every client has devices of its own, so each has its rate to itself, as with modems. What the
//! proxy's TCP sees is a real queue that fills and drops. `tbf` knows rates only: delay and loss
//! stay with [`Line`](super::Line).
//!
//! The addresses are of 198.18.0.0/15, which RFC 2544 sets aside for benchmarks. The namespace has
//! a name (`ip netns` shows it) with our process id in it, and is removed when this value is
//! dropped; one that a killed process left behind is removed by the next run.

use crate::failure::Failure;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weir_workload::Link;

/// The most clients: as many pairs of addresses as a block has.
const CLIENTS_MAX: u32 = 1024;

/// The first address of the first block (RFC 2544 appendix C.2.2).
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// Addresses of a block: a /21.
const BLOCK_ADDRESSES: u32 = 2 * CLIENTS_MAX;

/// Blocks in 198.18.0.0/15: so many runs may be under way on one machine.
const BLOCKS: u32 = 64;

/// What a token bucket may let through at once, in bytes: a packet and its Ethernet head at least.
const BURST_BYTES_MIN: u64 = 1600;

/// Of a second's bytes the part that may go at once on fast links: the kernel's timer may be as
/// coarse as 4 ms.
const BURST_PART: u64 = 250;

/// The queue before the bucket, in bytes: what a modem's bank holds, or a fifth of a second.
const QUEUE_BYTES_MIN: u64 = 20_000;

/// Of a second's bytes the part that may wait on fast links.
const QUEUE_PART: u64 = 5;

/// Where `ip netns` keeps its names.
const NAMES: &str = "/run/netns";

/// Namespaces of ours begin with it; the process id follows.
const PREFIX: &str = "weir-bench-";

/// A namespace with a link for every client.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    handle: File,
    base: u32,
}

impl Namespace {
    /// Makes namespace, devices and buckets.
    ///
    /// # Errors
    /// There are more than 1024 clients; `ip` or `tc` is missing, or refuses: that needs root.
    pub fn new(link: &Link, clients: u32) -> Result<Self, Failure> {
        if clients > CLIENTS_MAX {
            let cause = format!("{clients} clients, and {CLIENTS_MAX} is the most");
            return Err(Failure::usage(CANNOT, cause)
                .with_hint("shape in user space (`--shape user`), or use fewer clients"));
        }
        remove_left_behind();
        let name = format!("{PREFIX}{}", std::process::id());
        tool("ip", &["netns", "add", &name], "")?;
        let base = free_block()?;
        let handle = File::open(Path::new(NAMES).join(&name))
            .map_err(|error| Failure::outside(CANNOT, error))?;
        // from here on it is removed whatever happens
        let namespace = Self { name, handle, base };
        namespace.connect(link, clients)?;
        Ok(namespace)
    }

    fn connect(&self, link: &Link, clients: u32) -> Result<(), Failure> {
        let name = self.name.as_str();
        let (mut pairs, mut ends) = (String::new(), String::from("link set lo up\n"));
        let (mut down, mut up) = (String::new(), String::new());
        for client in 0..clients {
            let (ours, theirs) = devices(client);
            let (near, far) = (self.address(2 * client), self.address(2 * client + 1));
            // writing to a string cannot fail
            let _ = writeln!(
                pairs,
                "link add name {ours} type veth peer name {theirs} netns {name}\n\
                 addr add {near}/31 dev {ours}\nlink set {ours} up"
            );
            let _ = writeln!(ends, "addr add {far}/31 dev {theirs}\nlink set {theirs} up");
            down.push_str(&bucket(&ours, link.down_bits_per_s));
            up.push_str(&bucket(&theirs, link.up_bits_per_s));
        }
        tool("ip", &["-batch", "-"], &pairs)?;
        tool("ip", &["-n", name, "-batch", "-"], &ends)?;
        tool("tc", &["-batch", "-"], &down)?;
        tool("tc", &["-n", name, "-batch", "-"], &up)
    }

    /// Moves the calling thread into it, for the rest of its life.
    ///
    /// # Errors
    /// The kernel does not let us.
    pub fn enter(&self) -> io::Result<()> {
        let network = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.handle.as_fd(), network)?)
    }

    /// The address of a client.
    pub fn client(&self, client: u32) -> IpAddr {
        self.address(2 * client + 1).into()
    }

    /// Where a client reaches what listens on this port of our namespace.
    pub fn near(&self, client: u32, port: u16) -> SocketAddr {
        SocketAddr::from((self.address(2 * client), port))
    }

    fn address(&self, place: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + place)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // its devices are removed with it, as soon as its last thread and socket have ended
        let _ = tool("ip", &["netns", "del", &self.name], "");
    }
}

/// What failed, for every reason.
const CANNOT: &str = "cannot make links of the kernel's";

/// Our end and the clients' end of a pair: 15 characters at most.
fn devices(client: u32) -> (String, String) {
    let id = std::process::id();
    (format!("wb{id}n{client}"), format!("wb{id}f{client}"))
}

/// The line that makes a token bucket; none where there is no rate.
fn bucket(device: &str, bits_per_s: Option<u64>) -> String {
    let Some(bits_per_s) = bits_per_s else {
        return String::new();
    };
    let burst = (bits_per_s / 8 / BURST_PART).max(BURST_BYTES_MIN);
    let queue = (bits_per_s / 8 / QUEUE_PART).max(QUEUE_BYTES_MIN);
    format!("qdisc add dev {device} root tbf rate {bits_per_s}bit burst {burst}b limit {queue}b\n")
}

/// The first address of a block that no device has an address of; each process begins its search
/// elsewhere.
fn free_block() -> Result<u32, Failure> {
    let first = std::process::id() % BLOCKS;
    for place in 0..BLOCKS {
        let base = FIRST_ADDRESS.to_bits() + (first + place) % BLOCKS * BLOCK_ADDRESSES;
        let block = format!("{}/21", Ipv4Addr::from_bits(base));
        let taken = output_of("ip", &["-4", "-o", "addr", "show", "to", &block], "")?;
        if taken.trim().is_empty() {
            return Ok(base);
        }
    }
    let cause = "all addresses of 198.18.0.0/15 are taken on this machine";
    Err(Failure::outside(CANNOT, cause).with_hint("`ip netns` lists the namespaces of other runs"))
}

/// Removes the namespaces of processes that are no more.
fn remove_left_behind() {
    let Ok(names) = std::fs::read_dir(NAMES) else {
        return;
    };
    for name in names.flatten() {
        let name = name.file_name();
        let Some(name) = name.to_str() else { continue };
        let owner = name
            .strip_prefix(PREFIX)
            .and_then(|id| id.parse::<u32>().ok());
        if owner.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            // another run may have removed it meanwhile
            let _ = tool("ip", &["netns", "del", name], "");
        }
    }
}

fn tool(program: &str, arguments: &[&str], input: &str) -> Result<(), Failure> {
    output_of(program, arguments, input).map(drop)
}

/// The output of a program of iproute2.
fn output_of(program: &str, arguments: &[&str], input: &str) -> Result<String, Failure> {
    let output = run(program, arguments, input).map_err(|error| {
        Failure::outside(CANNOT, format!("`{program}`: {error}"))
            .with_hint("install iproute2, which has `ip` and `tc`")
    })?;
    if !output.status.success() {
        let cause = String::from_utf8_lossy(&output.stderr);
        let cause = format!("`{program} {}`: {}", arguments.join(" "), cause.trim());
        return Err(Failure::outside(CANNOT, cause)
            .with_hint("this needs root; `--shape user` does not, and shapes in user space"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn run(program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // one that has failed already reads no more, and says why on its own
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bucket_holds_at_least_one_packet_and_exists_only_with_a_rate() {
        assert_eq!(
            bucket("wb1n0", Some(28_800)),
            "qdisc add dev wb1n0 root tbf rate 28800bit burst 1600b limit 20000b\n"
        );
        assert_eq!(
            bucket("wb1n0", Some(80_000_000)),
            "qdisc add dev wb1n0 root tbf rate 80000000bit burst 40000b limit 2000000b\n"
        );
        assert_eq!(bucket("wb1n0", None), "");
    }

    #[test]
    fn namespace_with_more_clients_than_addresses_is_refused() {
        let link = Link::preset("modem-1998").expect("it is one");
        let failure = Namespace::new(&link, CLIENTS_MAX + 1).expect_err("too many");
        assert!(failure.to_string().contains("1025 clients"), "{failure}");
    }
}
