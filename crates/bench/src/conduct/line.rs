//! Messages as lines of JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

/// The longest line, bytes: the result of a day of seconds has some 100 MB.
const LINE_BYTES_MAX: u64 = 512 << 20;

/// A write that takes longer than this means that the other side does not read.
const WRITE_MAX: Duration = Duration::from_secs(30);

/// Reads messages.
#[derive(Debug)]
pub(super) struct LineReader {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
}

/// Writes messages, from any thread.
#[derive(Debug)]
pub(super) struct LineWriter {
    stream: Mutex<TcpStream>,
}

/// Both directions of a connection.
pub(super) fn both(stream: TcpStream) -> io::Result<(LineReader, LineWriter)> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_MAX))?;
    let lines = LineReader {
        stream: BufReader::new(stream.try_clone()?),
        line: Vec::new(),
    };
    let writer = LineWriter {
        stream: Mutex::new(stream),
    };
    Ok((lines, writer))
}

impl LineReader {
    /// The next message.
    ///
    /// # Errors
    /// The connection has ended (`UnexpectedEof`), the line is too long, or it is no such message
    /// (`InvalidData`).
    pub(super) fn read<M: DeserializeOwned>(&mut self) -> io::Result<M> {
        self.line.clear();
        let mut limited = (&mut self.stream).take(LINE_BYTES_MAX);
        let bytes = limited.read_until(b'\n', &mut self.line)?;
        if bytes == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the connection was closed",
            ));
        }
        serde_json::from_slice(&self.line).map_err(|error| {
            let begin = String::from_utf8_lossy(&self.line[..self.line.len().min(60)]).into_owned();
            let text = format!(
                "not a message of this protocol ({error}): {}",
                begin.trim_end()
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }
}

impl LineWriter {
    /// Sends one.
    ///
    /// # Errors The other side has disconnected, or does not read.
    pub(super) fn send<M: Serialize>(&self, message: &M) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut stream = self
            .stream
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        stream.write_all(&line)
    }
}

impl Drop for LineWriter {
    /// Ends both directions, so that readers on both sides see the end.
    fn drop(&mut self) {
        let stream = self
            .stream
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // it may be closed already
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let one = TcpStream::connect(address).expect("it listens");
        (one, listener.accept().expect("somebody connected").0)
    }

    #[test]
    fn messages_are_read_one_by_one_until_the_connection_closes() {
        let (one, two) = pair();
        let (_lines, writer) = both(one).expect("a connection");
        let (mut lines, _outlet) = both(two).expect("a connection");
        writer.send(&vec![1, 2]).expect("it reads");
        writer.send(&vec![3]).expect("it reads");
        drop(writer);
        assert_eq!(lines.read::<Vec<u8>>().expect("a message"), [1, 2]);
        assert_eq!(lines.read::<Vec<u8>>().expect("a message"), [3]);
        let error = lines.read::<Vec<u8>>().expect_err("it was closed");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn line_that_is_not_a_message_is_an_error_that_quotes_it() {
        let (mut one, two) = pair();
        let (mut lines, _outlet) = both(two).expect("a connection");
        one.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it reads");
        let error = lines.read::<Vec<u8>>().expect_err("that is no list");
        assert!(error.to_string().contains("GET / HTTP/1.1"), "{error}");
    }
}
