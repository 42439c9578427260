//! The table of nftables, as text.

use std::io::{self, Write as _};
use std::net::SocketAddrV4;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Flows that may be held at once.
pub const HELD_MAX: u32 = 4096;

/// Flows that may be steered at once.
pub const FLOWS_MAX: u32 = 65_536;

/// A flow is steered for so long, unless it is steered again: longer than connections are used.
pub const STEERED_FOR: Duration = Duration::from_hours(24);

/// A flow is held for so long at most: a process that is killed holds none for good.
pub const HELD_FOR: Duration = Duration::from_secs(2);

/// The set of flows whose packets are dropped.
pub(super) const HELD: &str = "held";

/// The map of flows to the addresses that their packets are forwarded to.
pub(super) const STEERED: &str = "steered";

/// Where Debian has it; users have it on no path.
const PROGRAMS: [&str; 2] = ["nft", "/usr/sbin/nft"];

/// Bytes of the name of a device, at most (`IFNAMSIZ`, with a NUL).
const DEVICE_BYTES_MAX: usize = 15;

/// The table of a service: two processes that have two services on one machine have one each.
pub(super) fn name(service: SocketAddrV4) -> String {
    let [a, b, c, d] = service.ip().octets();
    format!("weir_{a}_{b}_{c}_{d}_{}", service.port())
}

/// Makes the table for packets to `service` that arrive by `device`. One that a killed process has
/// left is replaced.
///
/// # Errors
/// There is no `nft`, no such device, or the kernel does not do it: the text says what `nft` does.
pub(super) fn install(device: &str, service: SocketAddrV4) -> io::Result<()> {
    let text = rules(device, service)?;
    let mut nft = start()?;
    if let Some(mut input) = nft.stdin.take() {
        // if it does not read all of it, it fails, and says why
        let _ = input.write_all(text.as_bytes());
    }
    let output = nft.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let first = errors.lines().next().unwrap_or("it does not say why");
    Err(io::Error::other(format!("`nft` fails: {first}")))
}

fn start() -> io::Result<std::process::Child> {
    let mut error = io::ErrorKind::NotFound.into();
    for program in PROGRAMS {
        let mut nft = Command::new(program);
        nft.args(["-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        match nft.spawn() {
            Ok(started) => return Ok(started),
            Err(other) => error = other,
        }
    }
    let text = format!("cannot start `nft` of nftables: {error}");
    Err(io::Error::new(error.kind(), text))
}

fn rules(device: &str, service: SocketAddrV4) -> io::Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
    let length = device.len();
    if length == 0 || length > DEVICE_BYTES_MAX || !device.bytes().all(is_plain) {
        let text = format!("no device is called `{}`", device.escape_default());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let name = name(service);
    let (ip, port) = (service.ip(), service.port());
    let (held_s, steered_s) = (HELD_FOR.as_secs(), STEERED_FOR.as_secs());
    // held packets are dropped first, those with SYN, too: between a hold and the change that ends
    // it no connection begins that the change would lead elsewhere.
    // One transaction: `delete` needs a table, and `table` alone is no error where there is one
    Ok(format!(
        "table netdev {name}\n\
         delete table netdev {name}\n\
         table netdev {name} {{\n\
           set {HELD} {{\n\
             type ipv4_addr . inet_service; flags timeout; timeout {held_s}s; size {HELD_MAX};\n\
           }}\n\
           map {STEERED} {{\n\
             type ipv4_addr . inet_service : ipv4_addr; flags dynamic, timeout;\n\
             timeout {steered_s}s; size {FLOWS_MAX};\n\
           }}\n\
           chain ingress {{\n\
             type filter hook ingress device \"{device}\" priority 0; policy accept;\n\
             ip daddr {ip} tcp dport {port} ip saddr . tcp sport @{HELD} drop\n\
             ip daddr {ip} tcp dport {port} tcp flags & (syn | ack) == syn \
               delete @{STEERED} {{ ip saddr . tcp sport : 0.0.0.0 }} accept\n\
             ip daddr {ip} tcp dport {port} fwd ip to ip saddr . tcp sport map @{STEERED} device \"{device}\"\n\
           }}\n\
         }}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_no_device_has_is_refused_before_it_is_text_of_a_rule() {
        let service = "192.0.2.1:80".parse().unwrap();
        for device in ["", "e0\" priority 0; }", "e*", "e 0", "a-name-of-16-byt"] {
            let error = rules(device, service).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{device}");
        }
        for device in ["e0", "eth0.100", "br-lan", "a-name-of-15-by"] {
            assert!(rules(device, service).is_ok(), "{device}");
        }
    }
}
