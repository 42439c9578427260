//! Small responses of which the head and some content come first.

use super::{Connection, WIDE, check};
use std::future::poll_fn;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use weir_net::http::double::{DoubleEnd, DoubleStream};

const FIRST: &[u8] =
    b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nfirst";

const FIRST_CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n";

/// Has the next hop send the begin of a response, and the worker receive that: both are tasks of
/// one thread.
async fn begin(connection: &Connection, first: &[u8]) -> (DoubleStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    let stream = connection.get_from(address, "/", WIDE);
    let (mut hop, _) = listener.accept().await.expect("a connection");
    let mut request = [0; 4096];
    let read = hop.read(&mut request).await.expect("a request");
    assert!(request[..read].ends_with(b"\r\n\r\n"));
    hop.write_all(first).await.expect("it is taken");
    yield_now().await;
    (stream, hop)
}

/// Whether the client was sent a head.
async fn has_head(stream: &DoubleStream) -> bool {
    let mut head = pin!(stream.head());
    poll_fn(|cx| Poll::Ready(head.as_mut().poll(cx).is_ready())).await
}

async fn rest_is_waited_for(connection: Rc<Connection>) {
    let (stream, mut hop) = begin(&connection, FIRST).await;
    assert!(!has_head(&stream).await);
    hop.write_all(b" last").await.expect("it is taken");
    let (content, end) = stream.read_all().await;
    assert_eq!((&content[..], end), (&b"first last"[..], DoubleEnd::Whole));
}

async fn rest_that_does_not_come_holds_nothing_back(connection: Rc<Connection>) {
    let (stream, mut hop) = begin(&connection, FIRST).await;
    let (content, end) = stream.read().await;
    assert_eq!((&content[..], end), (&b"first"[..], None));
    hop.write_all(b" last").await.expect("it is taken");
    let (content, end) = stream.read_all().await;
    assert_eq!((&content[..], end), (&b" last"[..], DoubleEnd::Whole));
}

async fn end_instead_of_the_rest_is_a_cut(connection: Rc<Connection>) {
    let (stream, hop) = begin(&connection, FIRST).await;
    drop(hop);
    let (content, end) = stream.read_all().await;
    assert_eq!((&content[..], end), (&b"first"[..], DoubleEnd::Aborted));
}

async fn rest_of_chunks_is_waited_for(connection: Rc<Connection>) {
    let (stream, mut hop) = begin(&connection, FIRST_CHUNK).await;
    assert!(!has_head(&stream).await);
    let rest = b"5\r\n last\r\n0\r\nX-Trailer: a\r\n\r\n";
    hop.write_all(rest).await.expect("it is taken");
    let (content, end) = stream.read_all().await;
    assert_eq!((&content[..], end), (&b"first last"[..], DoubleEnd::Whole));
}

async fn reset_instead_of_the_rest_is_a_cut(connection: Rc<Connection>) {
    let (stream, hop) = begin(&connection, FIRST).await;
    hop.set_zero_linger().expect("an option of the socket");
    drop(hop);
    let (content, end) = stream.read_all().await;
    assert_eq!((&content[..], end), (&b"first"[..], DoubleEnd::Aborted));
}

#[test]
fn rest_of_a_small_response_is_waited_for_while_the_worker_has_else_to_do() {
    check(|connection| Box::pin(rest_is_waited_for(connection)));
}

#[test]
fn content_is_passed_on_though_the_rest_does_not_come() {
    check(|connection| Box::pin(rest_that_does_not_come_holds_nothing_back(connection)));
}

#[test]
fn end_of_the_connection_instead_of_the_rest_is_passed_on() {
    check(|connection| Box::pin(end_instead_of_the_rest_is_a_cut(connection)));
}

#[test]
fn rest_of_small_chunked_content_is_waited_for_with_its_trailers() {
    check(|connection| Box::pin(rest_of_chunks_is_waited_for(connection)));
}

#[test]
fn reset_of_the_connection_instead_of_the_rest_is_passed_on() {
    check(|connection| Box::pin(reset_instead_of_the_rest_is_a_cut(connection)));
}
