//! A server under TLS by the libraries that weir has: `rustls`, `h2` and `httparse`.
//!
//! It answers every request with content of the size that its path names, of a few fields, made
//! beforehand. One thread; no limits, no log, nothing is stored or decided. So the cost of the
//! libraries is known: a cache on them has to do more than this and cannot do less. Frames that are
//! ready at once share records and a call of the kernel, as a server does that looks at its costs.

use bytes::{Bytes, BytesMut};
use clap::Args;
use http::{HeaderMap, HeaderValue};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::Ticketer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use xtask::failure::{During, Failure};

/// The command that makes a process such a server.
pub(crate) const ROLE: &str = "bare-tls";

/// Bytes of a request head.
const HEAD_BYTES_MAX: usize = 64 * 1024;

const FIELDS_MAX: usize = 64;

/// Frames that are gathered for one write, bytes.
const GATHERED_BYTES_MAX: usize = 64 * 1024;

/// Content of an answer, at most, bytes.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// Fields of an answer: those of a hit of the origin's responses, beside its length.
const FIELDS: [(&str, &str); 10] = [
    ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
    ("content-type", "application/octet-stream"),
    ("accept-ranges", "bytes"),
    ("last-modified", "Sun, 13 Sep 2020 12:26:40 GMT"),
    ("etag", "\"169634dae8127e5c\""),
    ("cache-control", "public, max-age=3600"),
    ("weir-bench", "- 0"),
    ("via", "1.1 bare (dfee85c8)"),
    ("age", "1"),
    ("cache-status", "bare;hit;ttl=3599"),
];

/// Options of the process that is such a server.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Where HTTP/1.1 is spoken in clear
    port: u16,
    /// Where HTTP/2 and HTTP/1.1 are spoken under TLS
    tls_port: u16,
    certificate: PathBuf,
    key: PathBuf,
}

/// Serves until the process is ended.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let tls = tls(&options.certificate, &options.key).during("prepare TLS")?;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.during("start a runtime")?;
    let serving = async {
        let clear = TcpListener::bind(("127.0.0.1", options.port)).await?;
        let listener = TcpListener::bind(("127.0.0.1", options.tls_port)).await?;
        spawn_local(accept(clear, None));
        accept(listener, Some(tls)).await
    };
    let served = LocalSet::new().block_on(&runtime, serving);
    served.during(format_args!("serve port {}", options.tls_port))
}

fn tls(certificate: &Path, key: &Path) -> Result<TlsAcceptor, Box<dyn std::error::Error>> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let config = ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(chain, key)?;
    config.alpn_protocols = [&b"h2"[..], b"http/1.1"].map(<[u8]>::to_vec).into();
    config.ticketer = Ticketer::new()?;
    Ok(Arc::new(config).into())
}

/// Serves all clients; what ends a connection is the client's business.
async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>) -> io::Result<()> {
    let content = Bytes::from(vec![b'x'; CONTENT_BYTES_MAX]);
    loop {
        let (socket, _) = listener.accept().await?;
        let _ = socket.set_nodelay(true);
        let (tls, content) = (tls.clone(), content.clone());
        spawn_local(async move {
            let _ = serve(socket, tls, content).await;
        });
    }
}

async fn serve(socket: TcpStream, tls: Option<TlsAcceptor>, content: Bytes) -> io::Result<()> {
    let Some(tls) = tls else {
        return serve_http1(socket, content).await;
    };
    let stream = tls.accept(socket).await?;
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => serve_http2(stream, content).await.map_err(io::Error::other),
        _ => serve_http1(stream, content).await,
    }
}

async fn serve_http1(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    content: Bytes,
) -> io::Result<()> {
    let mut received = BytesMut::new();
    let mut answer = (usize::MAX, Vec::new());
    loop {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(&received) {
            Ok(httparse::Status::Complete(length)) => {
                let size = size_in(request.path.unwrap_or_default());
                if answer.0 != size {
                    answer = (size, answer_of_http1(&content[..size]));
                }
                stream.write_all(&answer.1).await?;
                let _ = received.split_to(length);
            }
            Ok(httparse::Status::Partial) if received.len() < HEAD_BYTES_MAX => {
                stream.flush().await?;
                if stream.read_buf(&mut received).await? == 0 {
                    return Ok(());
                }
            }
            Ok(httparse::Status::Partial) | Err(_) => {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

fn answer_of_http1(content: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", content.len());
    for (name, value) in FIELDS {
        answer = answer + name + ": " + value + "\r\n";
    }
    answer += "\r\n";
    [answer.as_bytes(), content].concat()
}

async fn serve_http2<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    content: Bytes,
) -> Result<(), h2::Error> {
    let gathering = Rc::new(RefCell::new(Gathering {
        stream,
        frames: BytesMut::new(),
    }));
    let transport = Transport(Rc::clone(&gathering));
    let builder = h2::server::Builder::new();
    let mut handshake = builder.handshake(transport);
    let mut connection = poll_fn(|cx| {
        let polled = Pin::new(&mut handshake).poll(cx);
        gather_before(polled, &gathering, cx)
    })
    .await?;
    let fields = fields_of_http2();
    loop {
        let accepted = poll_fn(|cx| {
            let polled = connection.poll_accept(cx);
            gather_before(polled, &gathering, cx)
        });
        let Some(accepted) = accepted.await else {
            return Ok(());
        };
        let (request, mut respond) = accepted?;
        let target = request.uri().path_and_query();
        let size = size_in(target.map_or("", |target| target.as_str()));
        let mut head = http::Response::new(());
        head.headers_mut().clone_from(&fields);
        head.headers_mut().insert("content-length", size.into());
        let mut stream = respond.send_response(head, size == 0)?;
        if size > 0 {
            stream.send_data(content.slice(..size), true)?;
        }
    }
}

fn fields_of_http2() -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in FIELDS {
        fields.insert(name, HeaderValue::from_static(value));
    }
    fields
}

/// What was polled; if that waits, what was gathered is written meanwhile.
fn gather_before<T, S: AsyncWrite + Unpin>(
    polled: Poll<T>,
    gathering: &RefCell<Gathering<S>>,
    cx: &mut Context<'_>,
) -> Poll<T> {
    if polled.is_pending() {
        // an error is one of the next read, too
        let _ = gathering.borrow_mut().poll_written(cx);
    }
    polled
}

/// A connection whose frames are gathered.
struct Gathering<S> {
    stream: S,
    frames: BytesMut,
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    /// Writes all of it.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.frames.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.frames))?;
            let _ = self.frames.split_to(written);
        }
        self.frames.clear();
        Pin::new(&mut self.stream).poll_flush(cx)
    }
}

/// The same as `h2` has it.
struct Transport<S>(Rc<RefCell<Gathering<S>>>);

impl<S: AsyncRead + Unpin> AsyncRead for Transport<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Transport<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.borrow_mut();
        if gathering.frames.len() >= GATHERED_BYTES_MAX {
            ready!(gathering.poll_written(cx))?;
        }
        for slice in slices {
            gathering.frames.extend_from_slice(slice);
        }
        Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.borrow_mut();
        ready!(gathering.poll_written(cx))?;
        Pin::new(&mut gathering.stream).poll_shutdown(cx)
    }
}

/// The size that a path such as `/a?size=1024` names.
fn size_in(path: &str) -> usize {
    let size = path.split_once("size=").map_or("", |(_, size)| size);
    let size = size.parse().unwrap_or_default();
    CONTENT_BYTES_MAX.min(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::get::get_once;

    const PATH: &str = "/a?size=100000";

    /// A server in clear.
    async fn listen() -> (TcpListener, std::net::SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        (listener, address)
    }

    #[tokio::test]
    async fn answer_of_http11_has_the_size_that_the_path_names() {
        let (listener, address) = listen().await;
        let asking = tokio::task::spawn_blocking(move || get_once(address, PATH));
        let serving = LocalSet::new();
        let answered = serving.run_until(async {
            tokio::select! {
                served = accept(listener, None) => panic!("{served:?}"),
                answered = asking => answered.expect("a thread"),
            }
        });
        let answer = answered.await.expect("a response");
        assert_eq!(answer.body.len(), 100_000);
    }

    #[tokio::test]
    async fn answers_of_http2_have_the_size_that_the_path_names() {
        let (listener, address) = listen().await;
        let serving = async {
            let (socket, _) = listener.accept().await.expect("a client");
            let content = Bytes::from(vec![b'x'; CONTENT_BYTES_MAX]);
            serve_http2(socket, content).await
        };
        let asking = async {
            let socket = TcpStream::connect(address).await.expect("the server");
            let (mut send, connection) = h2::client::handshake(socket).await.expect("HTTP/2");
            let connection = tokio::spawn(connection);
            let request = http::Request::get(format!("http://a{PATH}"));
            let request = request.body(()).expect("a request");
            let (response, _) = send.send_request(request, true).expect("a stream");
            let mut body = response.await.expect("a response").into_body();
            let mut received = 0;
            while let Some(data) = body.data().await {
                let length = data.expect("content").len();
                let _ = body.flow_control().release_capacity(length);
                received += length;
            }
            connection.abort();
            received
        };
        tokio::select! {
            served = serving => panic!("{served:?}"),
            received = asking => assert_eq!(received, 100_000),
        }
    }
}
