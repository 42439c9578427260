//! Reads after which the reactor knows whether there is more.

use rustix::net::{RecvFlags, recv};
use std::io;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Reads once; how many bytes, 0 at the end.
///
/// A read that does not fill `into` has emptied the socket. The reactor is told so: who waits for
/// more is woken when that comes, and makes no call of the kernel that finds nothing. So does
/// tokio where it reads by a mutable reference. (Behind urgent data, which nothing here sends, more
/// may be there: it is read when a further segment comes.)
///
/// # Errors
///
/// The connection is broken; `WouldBlock` if nothing is there.
pub(crate) fn read_once(socket: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    let room = into.len();
    let mut count = 0;
    let read = socket.try_io(Interest::READABLE, || {
        (count, _) = recv(socket, &mut *into, RecvFlags::empty())?;
        match (1..room).contains(&count) {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => Ok(()),
        }
    });
    match read {
        Err(error) if count == 0 => Err(error),
        _ => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        (peer.unwrap(), accepted.unwrap().0)
    }

    async fn is_ready(socket: &TcpStream) -> bool {
        poll_fn(|cx| Poll::Ready(socket.poll_read_ready(cx).is_ready())).await
    }

    #[tokio::test]
    async fn socket_that_was_emptied_is_ready_again_once_more_has_come() {
        let (mut peer, socket) = connected().await;
        let mut bytes = [0; 8];
        for _ in 0..2 {
            peer.write_all(b"hello").await.unwrap();
            socket.readable().await.unwrap();
            assert_eq!(read_once(&socket, &mut bytes).unwrap(), 5);
            assert!(!is_ready(&socket).await);
        }
        peer.write_all(b"eight by").await.unwrap();
        socket.readable().await.unwrap();
        // there may be more
        assert_eq!(read_once(&socket, &mut bytes).unwrap(), 8);
        assert!(is_ready(&socket).await);
        let nothing = read_once(&socket, &mut bytes).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert!(!is_ready(&socket).await);
    }

    #[tokio::test]
    async fn end_and_reset_are_read_behind_the_last_bytes() {
        for is_reset in [false, true] {
            let (mut peer, socket) = connected().await;
            peer.write_all(b"last").await.unwrap();
            socket.readable().await.unwrap();
            let mut bytes = [0; 8];
            assert_eq!(read_once(&socket, &mut bytes).unwrap(), 4);
            if is_reset {
                peer.set_zero_linger().unwrap();
            }
            drop(peer);
            socket.readable().await.unwrap();
            match read_once(&socket, &mut bytes) {
                Ok(count) => assert_eq!((count, is_reset), (0, false)),
                Err(error) => {
                    assert!(is_reset);
                    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
                }
            }
        }
    }
}
