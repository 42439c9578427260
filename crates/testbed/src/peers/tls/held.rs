//! Idle connections under TLS, held by a script (`peers/tls/hold.py`).

use super::h2load::Protocol;
use crate::proxy::idle::Idle;
use crate::proxy::server::{Server, file_of_peers};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use xtask::failure::{During, Failure};

/// How long a server may use to put its memory in order.
const REST: Duration = Duration::from_secs(1);

/// Has a script open the connections at `to` of a server that has answered before, a request on
/// each, and reads the server's memory.
///
/// # Errors
/// The script cannot be run, or not all connections were made.
pub(super) fn measure(
    contender: &str,
    (server, to): (&Server, SocketAddr),
    (protocol, connections): (Protocol, u32),
    path: &str,
) -> Result<Idle, Failure> {
    std::thread::sleep(REST);
    let before = server.memory();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "python3"]);
    command.arg(file_of_peers("tls", "hold.py"));
    command.args([to.ip().to_string(), to.port().to_string()]);
    command.args([&connections.to_string(), path, protocol.alpn()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut script = command.spawn().during("start python3")?;
    let held = said(&mut script, "held ");
    std::thread::sleep(REST);
    let after = server.memory();
    // the end of its input is the end of it
    drop(script.stdin.take());
    let held = held?;
    let rest = script.wait_with_output().during("wait for python3")?;
    let closed = number_of(&String::from_utf8_lossy(&rest.stdout), "closed ");
    let trouble = match closed {
        Some(0) => None,
        Some(closed) => Some(format!("{closed} of {held} connections were closed")),
        None => Some("the script that holds connections has failed".to_owned()),
    };
    Ok(Idle {
        contender: contender.to_owned(),
        connections: held,
        pss_before_kib: before.pss_kib,
        pss_after_kib: after.pss_kib,
        rss_before_kib: before.rss_kib,
        rss_after_kib: after.rss_kib,
        trouble,
    })
}

/// The number behind `front` in the next line of the script.
fn said(script: &mut Child, front: &str) -> Result<u32, Failure> {
    let mut line = String::new();
    if let Some(output) = &mut script.stdout {
        // nothing but this line is written before its input ends
        let read = BufReader::new(output).read_line(&mut line);
        read.during("read what the script says")?;
    }
    let number = number_of(&line, front);
    number.ok_or_else(|| Failure::Outside("not all connections could be held".to_owned()))
}

fn number_of(text: &str, front: &str) -> Option<u32> {
    let number = text.lines().find_map(|line| line.strip_prefix(front))?;
    number.trim().parse().ok()
}
