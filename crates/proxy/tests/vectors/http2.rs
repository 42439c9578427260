//! A client of HTTP/2 that asks once on a connection of its own.

use crate::client::WAIT_MAX;
use crate::doors::Http;
use crate::tls::{self, Identity};
use crate::weir::Weir;
use http::{HeaderName, HeaderValue, Request as Http2Request, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use weir_vectors::{ClientResponse, FieldContext, Parameters, Request};

/// Whether it is a field that HTTP/2 does not have (RFC 9113 §8.2.2), or that `h2` makes itself.
pub(crate) fn is_of_http1(name: &HeaderName) -> bool {
    let names = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "transfer-encoding",
        "upgrade",
    ];
    names.contains(&name.as_str())
}

/// Sends the request and takes the answer apart; `None` if HTTP/2 has no such request.
pub(crate) fn exchange(
    weir: &Weir,
    request: &Request,
    context: FieldContext<'_>,
) -> Option<ClientResponse> {
    let sent = request_of(request, weir.scheme(), context)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let content = request.content.clone();
    let answered = runtime.block_on(async { timeout(WAIT_MAX, ask(weir, sent, content)).await });
    Some(answered.expect("the proxy does not hang"))
}

/// The request; `None` if HTTP/2 has no such.
pub(crate) fn request_of(
    request: &Request,
    scheme: &str,
    context: FieldContext<'_>,
) -> Option<Http2Request<()>> {
    let uri = format!("{scheme}://{}{}", context.host, request.target);
    let mut sent = Http2Request::builder()
        .method(request.method.as_str())
        .uri(uri)
        .version(Version::HTTP_2);
    for field in &request.fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let value = field.value(context);
        if is_of_http1(&name) || value != value.trim() {
            return None;
        }
        sent = sent.header(name, HeaderValue::from_bytes(value.as_bytes()).ok()?);
    }
    if let Some(content) = &request.content {
        sent = sent.header("content-length", content.len());
    }
    sent.body(()).ok()
}

async fn ask(weir: &Weir, request: Http2Request<()>, content: Option<String>) -> ClientResponse {
    let socket = TcpStream::connect(weir.address()).await;
    let socket = socket.expect("the proxy listens");
    if !weir.is_tls() {
        return ask_on(socket, request, content).await;
    }
    let connector = TlsConnector::from(Identity::get().client(Http::Two));
    let socket = connector.connect(tls::name(), socket).await;
    ask_on(socket.expect("the proxy speaks TLS"), request, content).await
}

async fn ask_on<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    socket: S,
    request: Http2Request<()>,
    content: Option<String>,
) -> ClientResponse {
    let cut = || ClientResponse {
        cut: true,
        ..ClientResponse::default()
    };
    let handshake = h2::client::handshake(socket).await;
    let (mut sender, connection) = handshake.expect("the proxy speaks HTTP/2");
    tokio::spawn(connection);
    let sent = sender.send_request(request, content.is_none());
    let (response, mut stream) = sent.expect("a request of HTTP/2");
    if let Some(content) = content {
        stream
            .send_data(content.into(), true)
            .expect("content of the request");
    }
    let Ok(response) = response.await else {
        return cut();
    };
    let (head, mut body) = response.into_parts();
    let (mut bytes, mut is_cut) = (Vec::new(), false);
    while let Some(data) = body.data().await {
        let Ok(data) = data else {
            is_cut = true;
            break;
        };
        bytes.extend_from_slice(&data);
        let released = body.flow_control().release_capacity(data.len());
        released.expect("what was received");
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let last = |name: &str| head.headers.get_all(name).iter().next_back().map(text);
    ClientResponse {
        status: head.status.as_u16(),
        body: Some(String::from_utf8_lossy(&bytes).into_owned()),
        age_s: Some(last("age").and_then(|age| age.parse().ok())),
        fields: Some(
            head.headers
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), text(value)))
                .collect(),
        ),
        cache_status: Parameters::of_last_member(&last("cache-status").unwrap_or_default()),
        cut: is_cut,
    }
}
