//! The client by which `instant-acme` speaks with an authority: HTTP/1.1 over TLS, a connection
//! for each request, and every wait and length with a limit.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Method as HttpMethod, Request, Response, Uri};
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use weir_net::clock::Clock;
use weir_net::resolver::Resolver;
use weir_net::tls::TlsClient;
use weir_net::tls::client::{Authorities, VerifiedStream};
use weir_semantics::{Method, parse_retry_after};
use weir_wire::write::{end_of_head, field, number_field, request_line};
use weir_wire::{
    BodyEvent, BodyReader, HeadLimits, LineBuffer, Progress, Version, parse_response, response_body,
};

/// Time for a connection, with the look-up of the name and the handshake.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Time for a request and its response.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(30);

/// The longest head of a response, bytes; authorities' have some hundred.
const HEAD: HeadLimits = HeadLimits {
    bytes_max: 32 << 10,
    fields_max: 100,
};

/// The longest content of a response, bytes; a chain of certificates has some thousand.
const CONTENT_BYTES_MAX: usize = 512 << 10;

/// Requests that wait: one is made after the other.
const REQUESTS_MAX: usize = 8;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// Why there is no response.
#[derive(Debug)]
pub(crate) struct Unreachable(pub(crate) String);

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreachable {}

fn unreachable(why: impl fmt::Display) -> Unreachable {
    Unreachable(why.to_string())
}

/// A request, and where its response goes.
struct Job {
    request: Request<BodyWrapper<Bytes>>,
    reply: oneshot::Sender<Result<BytesResponse, Error>>,
}

/// The client: requests are made by a task of this thread, as a connection by TLS is of one thread,
/// and `instant-acme` asks for what any can hold.
#[derive(Clone)]
pub(crate) struct AuthorityClient {
    jobs: mpsc::Sender<Job>,
    demanded: Rc<Cell<Option<u64>>>,
}

impl AuthorityClient {
    /// A client that trusts `authorities`. Its task ends when this is dropped.
    pub(crate) fn new(authorities: Authorities, resolver: Resolver, clock: Clock) -> Self {
        let (jobs, mut waiting) = mpsc::channel::<Job>(REQUESTS_MAX);
        let demanded = Rc::new(Cell::new(None));
        let exchanger = Exchanger {
            tls: TlsClient::new(Some(authorities)),
            resolver,
            clock,
            demanded: Rc::clone(&demanded),
        };
        tokio::task::spawn_local(async move {
            while let Some(Job { request, reply }) = waiting.recv().await {
                let exchanged = timeout(EXCHANGE_LIMIT, exchanger.exchange(request)).await;
                let response =
                    exchanged.unwrap_or_else(|_| Err(unreachable("no response in time")));
                // who asked may have given up
                let _ = reply.send(response.map_err(|error| Error::Other(Box::new(error))));
            }
        });
        Self { jobs, demanded }
    }

    /// As `instant-acme` takes it.
    pub(crate) fn boxed(&self) -> Box<dyn HttpClient> {
        Box::new(Requests(self.jobs.clone()))
    }

    /// For how many milliseconds the authority demands to be left alone, as it last said since this
    /// was called.
    pub(crate) fn take_demanded_ms(&self) -> Option<u64> {
        self.demanded.take()
    }
}

struct Requests(mpsc::Sender<Job>);

impl HttpClient for Requests {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (reply, replied) = oneshot::channel();
        let sent = self.0.try_send(Job { request, reply });
        Box::pin(async move {
            let ended = || Error::Other(Box::new(unreachable("the client has ended")));
            if sent.is_err() {
                return Err(ended());
            }
            replied.await.unwrap_or_else(|_| Err(ended()))
        })
    }
}

struct Exchanger {
    tls: TlsClient,
    resolver: Resolver,
    clock: Clock,
    demanded: Rc<Cell<Option<u64>>>,
}

impl Exchanger {
    async fn exchange(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Result<BytesResponse, Unreachable> {
        let (parts, content) = request.into_parts();
        let content = content.collect().await.map_err(unreachable)?.to_bytes();
        let request = Request::from_parts(parts, ());
        let (head, host, port) = written(&request, content.len())?;
        let place = place(&host, port);
        let failed = |error: &dyn fmt::Display| unreachable(format_args!("{place}: {error}"));
        let mut stream = self.connect(&host, port).await?;
        for bytes in [&head[..], &content] {
            stream
                .write_all(bytes)
                .await
                .map_err(|error| failed(&error))?;
        }
        let method = match *request.method() {
            HttpMethod::HEAD => Method::Head,
            HttpMethod::GET => Method::Get,
            _ => Method::Post,
        };
        let response = self.receive(&mut stream, method).await;
        response.map_err(|error| failed(&error))
    }

    async fn connect(&self, host: &str, port: u16) -> Result<VerifiedStream, Unreachable> {
        let until = Instant::now() + CONNECT_LIMIT;
        let place = place(host, port);
        let failed = |error: &dyn fmt::Display| unreachable(format_args!("{place}: {error}"));
        let found = timeout(CONNECT_LIMIT, self.resolver.resolve(host)).await;
        let found = found.map_err(|_| failed(&"its name was not resolved in time"))?;
        let found = found.map_err(|error| failed(&error))?;
        let addresses: Vec<SocketAddr> =
            found.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
        let connected = VerifiedStream::connect(&self.tls, &addresses, host, until).await;
        connected.map_err(|error| failed(&error))
    }

    async fn receive(
        &self,
        stream: &mut VerifiedStream,
        method: Method,
    ) -> Result<BytesResponse, Unreachable> {
        let mut received = Vec::new();
        let (response, mut reader) = loop {
            if let Some((response, reader, consumed)) = self.read_head(&received, method)? {
                received.drain(..consumed);
                match response.status().is_informational() {
                    true => continue,
                    false => break (response, reader),
                }
            }
            if read_more(stream, &mut received).await? == 0 {
                return Err(unreachable(
                    "it has closed the connection without a response",
                ));
            }
        };
        let mut content = Vec::new();
        loop {
            let step = reader.step(&received).map_err(unreachable)?;
            let consumed = step.consumed;
            match step.event {
                BodyEvent::Data(data) => content.extend_from_slice(data),
                BodyEvent::End => break,
                BodyEvent::NeedMore => {
                    received.drain(..consumed);
                    if read_more(stream, &mut received).await? == 0 {
                        reader.at_eof().map_err(unreachable)?;
                        break;
                    }
                    continue;
                }
            }
            received.drain(..consumed);
            if content.len() > CONTENT_BYTES_MAX {
                let what = format_args!("its response is longer than {CONTENT_BYTES_MAX} bytes");
                return Err(unreachable(what));
            }
        }
        let (parts, ()) = response.into_parts();
        // what is no answer of an authority has no content that could be read as one, and neither
        // has an error in the place of a directory
        let has_problem = method == Method::Post
            && parts.headers.get(CONTENT_TYPE).is_some_and(|value| {
                let value = value.to_str().unwrap_or_default();
                value.contains("json")
            });
        if parts.status.as_u16() >= 400 && method != Method::Head && !has_problem {
            let content = String::from_utf8_lossy(&content);
            let what = format_args!("it has answered with {}: {content}", parts.status);
            return Err(unreachable(what));
        }
        Ok(BytesResponse {
            parts,
            body: Box::new(Bytes::from(content)),
        })
    }

    /// The head of a response, what reads its content, and where that begins; `None`: there is more
    /// to come.
    fn read_head(
        &self,
        received: &[u8],
        method: Method,
    ) -> Result<Option<(Response<()>, BodyReader, usize)>, Unreachable> {
        let mut lines = LineBuffer::new();
        let parsed = parse_response(received, &HEAD, &mut lines).map_err(unreachable)?;
        let Progress::Complete { head, consumed } = parsed else {
            return Ok(None);
        };
        let length = response_body(head.version, method, head.status, head.fields);
        let length = length.map_err(unreachable)?;
        let mut response = Response::builder().status(head.status);
        for line in head.fields {
            let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(unreachable)?;
            let value = HeaderValue::from_bytes(line.value).map_err(unreachable)?;
            if name == "retry-after" && matches!(head.status, 429 | 503) {
                let wait = parse_retry_after(line.value, self.clock.now().wall);
                let ms = wait.map(|wait| u64::from(wait.0).saturating_mul(1000));
                self.demanded.set(ms.or(self.demanded.get()));
            }
            response = response.header(name, value);
        }
        let response = response.body(()).map_err(unreachable)?;
        Ok(Some((response, BodyReader::new(length, HEAD), consumed)))
    }
}

/// A host with its port, as in a URL.
fn place(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

async fn read_more(
    stream: &mut VerifiedStream,
    received: &mut Vec<u8>,
) -> Result<usize, Unreachable> {
    received.reserve(READ_BYTES);
    stream.read_buf(received).await.map_err(unreachable)
}

/// The head of a request as it is sent, and where to.
fn written(request: &Request<()>, length: usize) -> Result<(Vec<u8>, String, u16), Unreachable> {
    let uri: &Uri = request.uri();
    let refused = |why: &str| unreachable(format_args!("`{uri}`: {why}"));
    // an authority may name any URL for what follows
    if uri.scheme_str() != Some("https") {
        return Err(refused("the scheme is not https"));
    }
    let authority = uri.authority().ok_or_else(|| refused("it has no host"))?;
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut head = Vec::with_capacity(512);
    request_line(&mut head, request.method().as_str(), path, Version::Http11);
    field(&mut head, HOST.as_str(), authority.as_str().as_bytes());
    for (name, value) in request.headers() {
        if *name != HOST && *name != CONTENT_LENGTH && *name != CONNECTION {
            field(&mut head, name.as_str(), value.as_bytes());
        }
    }
    if *request.method() == HttpMethod::POST {
        number_field(&mut head, CONTENT_LENGTH.as_str(), length as u64);
    }
    field(&mut head, CONNECTION.as_str(), b"close");
    end_of_head(&mut head);
    Ok((head, host, authority.port_u16().unwrap_or(443)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(method: &str, url: &str) -> Result<(String, String, u16), String> {
        let request = Request::builder().method(method).uri(url);
        let request = request.header("user-agent", "x").body(());
        let written = written(&request.expect("a request"), 3);
        let (head, host, port) = written.map_err(|error| error.to_string())?;
        Ok((String::from_utf8(head).expect("text"), host, port))
    }

    #[test]
    fn request_names_the_host_and_its_length() {
        let (head, host, port) = head_of("POST", "https://a.test:14000/dir?x").expect("a head");
        assert_eq!(
            head,
            "POST /dir?x HTTP/1.1\r\nhost: a.test:14000\r\nuser-agent: x\r\ncontent-length: 3\r\n\
             connection: close\r\n\r\n"
        );
        assert_eq!((host.as_str(), port), ("a.test", 14000));
        let (head, host, port) = head_of("GET", "https://[::1]").expect("a head");
        assert!(
            head.starts_with("GET / HTTP/1.1\r\nhost: [::1]\r\n"),
            "{head}"
        );
        assert!(!head.contains("content-length"), "{head}");
        assert_eq!((host.as_str(), port), ("::1", 443));
    }

    #[test]
    fn url_in_clear_that_an_authority_names_is_never_asked_for() {
        let refused = head_of("POST", "http://a.test/order").expect_err("in clear");
        assert!(refused.contains("the scheme is not https"), "{refused}");
    }
}
