//! What clients of TLS send, by `openssl s_client`.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Duration;
use xtask::failure::{During, Failure};

/// The longest that `openssl` may take to begin.
const LIMIT: Duration = Duration::from_secs(10);

/// A ClientHello of `openssl s_client`: a record with its key shares, which weir takes each time
/// it is sent.
///
/// # Errors
/// `openssl` does not connect, or sends no record.
pub(super) fn client_hello() -> Result<Vec<u8>, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").during("listen for openssl")?;
    let address = listener.local_addr().during("listen for openssl")?;
    let mut openssl = Command::new("openssl")
        .args(["s_client", "-alpn", "h2", "-servername", "localhost"])
        .args(["-connect", &address.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .during("start openssl")?;
    let hello = listener.accept().and_then(|(mut stream, _)| {
        stream.set_read_timeout(Some(LIMIT))?;
        let mut hello = vec![0; 5];
        stream.read_exact(&mut hello)?;
        let length = u16::from_be_bytes([hello[3], hello[4]]);
        hello.resize(5 + usize::from(length), 0);
        stream.read_exact(&mut hello[5..])?;
        Ok(hello)
    });
    // its connection has ended
    let ended = openssl.wait().during("wait for openssl");
    let hello = hello.during("read what openssl sends")?;
    ended.map(|_| hello)
}

/// Makes a handshake with the listener at `address`, and ends the connection: what weir needs once
/// for TLS is no growth of its memory by an attack.
///
/// # Errors
/// `openssl` does not run, or says that there was none.
pub(super) fn handshake(address: SocketAddr) -> Result<(), Failure> {
    let ended = Command::new("openssl")
        .args(["s_client", "-servername", "localhost"])
        .args(["-connect", &address.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .during("run openssl")?;
    match ended.success() {
        true => Ok(()),
        false => Err(Failure::Outside("a handshake has failed".to_owned())),
    }
}
