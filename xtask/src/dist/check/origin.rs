//! A web server with one page that may be stored for an hour.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use xtask::failure::{During, Failure};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 6\r\n\
    Connection: close\r\n\r\nhello\n";

/// One that serves until the process ends.
pub(super) fn start() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").during("listen")?;
    let address = listener.local_addr().during("listen")?;
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // a client that is gone needs no response
            let _ = answer(&connection);
        }
    });
    Ok(address)
}

fn answer(mut connection: &TcpStream) -> std::io::Result<()> {
    for line in BufReader::new(connection).lines() {
        if line?.is_empty() {
            break;
        }
    }
    connection.write_all(RESPONSE)
}
