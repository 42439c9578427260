//! The origin by HTTP/2 in clear: what it does on a connection.

use crate::doors::Http;
use crate::http2::is_of_http1;
use crate::origin::{Desk, Script};
use crate::tls::Identity;
use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderName, HeaderValue, Request, Response as Http2Response, StatusCode};
use std::cell::RefCell;
use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio_rustls::TlsAcceptor;
use weir_vectors::{Fault, FieldContext, OriginRequest, Response};

/// A wait that ends here is a proxy that hangs.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What has become of a request.
enum Answered {
    /// It is answered, or its stream reset.
    Sent,
    /// The connection is to be closed.
    Closed,
    /// What follows on the connection is no HTTP/2.
    Broken,
}

/// The head of a response, with its length if it may have content; `None` if HTTP/2 has no such.
pub(crate) fn head_of(response: &Response, context: FieldContext<'_>) -> Option<Http2Response<()>> {
    let mut head = Http2Response::new(());
    *head.status_mut() = StatusCode::from_u16(response.status).ok()?;
    if head.status().is_informational() {
        return None;
    }
    for field in &response.fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        if is_of_http1(&name) {
            return None;
        }
        let value = HeaderValue::from_bytes(field.value(context).as_bytes()).ok()?;
        head.headers_mut().append(name, value);
    }
    if !matches!(response.status, 204 | 304) {
        let length = HeaderValue::from(response.body.len());
        head.headers_mut().insert("content-length", length);
    }
    Some(head)
}

/// Serves the requests of a connection until the proxy has let it go; `false` if there were none.
pub(crate) fn serve(desk: &Desk, stream: TcpStream) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut requests = Vec::new();
    let served = runtime.block_on(async {
        tokio::time::timeout(WAIT_MAX, serve_requests(desk, stream, &mut requests)).await
    });
    served.expect("the proxy does not hang");
    let had_some = !requests.is_empty();
    for request in requests.into_iter().flatten() {
        desk.tell(request);
    }
    had_some
}

/// Requests that are not told about are `None`.
async fn serve_requests(desk: &Desk, stream: TcpStream, requests: &mut Vec<Option<OriginRequest>>) {
    stream.set_nonblocking(true).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
    if !desk.doors.is_tls_to_next_hop() {
        return serve_on(desk, stream, requests).await;
    }
    let acceptor = TlsAcceptor::from(Identity::get().server(Http::Two));
    if let Ok(stream) = acceptor.accept(stream).await {
        serve_on(desk, stream, requests).await;
    }
}

async fn serve_on(
    desk: &Desk,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: &mut Vec<Option<OriginRequest>>,
) {
    let mut raw = SharedStream(Rc::new(RefCell::new(stream)));
    // one request at a time, so that what it is asked has an order
    let begun = Builder::new()
        .max_concurrent_streams(1)
        .handshake::<_, Bytes>(raw.clone());
    let Ok(mut connection) = begun.await else {
        return;
    };
    while let Some(Ok((request, response))) = connection.accept().await {
        let exchange = answer(desk, request, response, requests);
        tokio::pin!(exchange);
        let answered = tokio::select! {
            biased;
            answered = &mut exchange => answered,
            // moves the connection; with one stream there is no other request
            _ = connection.accept() => return,
        };
        match answered {
            // a connection for each request, as by HTTP/1.1 here
            Answered::Sent => connection.graceful_shutdown(),
            Answered::Closed => return,
            Answered::Broken => {
                let _ = raw.write_all(b"this is no HTTP\r\n\r\n").await;
                let _ = raw.flush().await;
            }
        }
    }
}

/// Takes a whole request and answers it.
async fn answer(
    desk: &Desk,
    request: Request<RecvStream>,
    mut response: SendResponse<Bytes>,
    requests: &mut Vec<Option<OriginRequest>>,
) -> Answered {
    let (parts, mut content) = request.into_parts();
    while let Some(data) = content.data().await {
        let Ok(data) = data else {
            return Answered::Closed;
        };
        let released = content.flow_control().release_capacity(data.len());
        released.expect("what was received");
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let fields = parts.headers.iter();
    let mut fields: Vec<(String, String)> = fields
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect();
    let authority = parts.uri.authority().expect("the proxy sends :authority");
    fields.push(("host".to_owned(), authority.to_string()));
    let (script, is_told) = desk.take_script();
    requests.push(is_told.then(|| OriginRequest {
        method: parts.method.to_string(),
        target: parts.uri.path_and_query().expect("a path").to_string(),
        fields,
    }));
    let Script { fault, body, .. } = script;
    let part = match fault {
        Some(Fault::Closed) => return Answered::Closed,
        Some(Fault::Broken) => return Answered::Broken,
        Some(Fault::Cut) => body.len() / 2,
        None => body.len(),
    };
    let head = script.http2_head.expect("a vector that HTTP/2 has");
    let ends = body.is_empty() && fault.is_none();
    let Ok(mut stream) = response.send_response(head, ends) else {
        return Answered::Closed;
    };
    if !ends {
        let sent = send(
            &mut stream,
            Bytes::from(body).slice(..part),
            fault.is_none(),
        )
        .await;
        if fault.is_some() && sent.is_some() {
            // what it has is sent before
            tokio::task::yield_now().await;
            stream.send_reset(Reason::INTERNAL_ERROR);
        }
    }
    Answered::Sent
}

/// Sends content as the window permits; `None` if the proxy has stopped the stream.
async fn send(stream: &mut SendStream<Bytes>, mut content: Bytes, ends: bool) -> Option<()> {
    while !content.is_empty() {
        stream.reserve_capacity(content.len());
        let capacity = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let piece = content.split_to(capacity?.ok()?.min(content.len()));
        let ends = ends && content.is_empty();
        stream.send_data(piece, ends).ok()?;
    }
    Some(())
}

/// A connection that can be written to beside `h2`, which has it.
struct SharedStream<S>(Rc<RefCell<S>>);

impl<S> Clone for SharedStream<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SharedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SharedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_shutdown(cx)
    }
}
