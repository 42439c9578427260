//! A client that asks once on a connection of its own.

use crate::doors::Http;
use crate::http2;
use crate::message::Message;
use crate::tls::Socket;
use crate::weir::Weir;
use std::io::{Read, Write};
use std::time::Duration;
use weir_vectors::{ClientResponse, FieldContext, Parameters, Request};

/// Nothing a vector asks for takes this long; what does is a proxy that hangs.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

/// Sends the request and takes the answer apart.
pub(crate) fn exchange(
    weir: &Weir,
    request: &Request,
    context: FieldContext<'_>,
) -> ClientResponse {
    let by_http2 = (weir.clients() == Http::Two).then(|| http2::exchange(weir, request, context));
    by_http2
        .flatten()
        .unwrap_or_else(|| exchange_by_http1(weir, request, context))
}

/// Asks the proxy itself. What its one worker had begun is done before it answers: tasks have turns
/// in the order in which they are woken, and this one waits for the network several times.
pub(crate) fn ask_proxy(weir: &Weir) {
    let head = b"OPTIONS / HTTP/1.1\r\nHost: vectors.test\r\nMax-Forwards: 0\r\n\
        Connection: close\r\n\r\n";
    let response = send(weir, head).expect("the proxy answers this itself");
    assert!(response.first_line.starts_with("HTTP/1.1 200 "));
}

fn exchange_by_http1(weir: &Weir, request: &Request, context: FieldContext<'_>) -> ClientResponse {
    let Some(message) = send(weir, &head(weir, request, context)) else {
        return ClientResponse {
            cut: true,
            ..ClientResponse::default()
        };
    };
    response_of(&message, request)
}

/// Sends a request on a connection of its own; `None` if no whole head came.
fn send(weir: &Weir, request: &[u8]) -> Option<Message> {
    let mut stream = Socket::connect(weir.address(), weir.is_tls());
    stream.write_all(request).expect("the proxy reads");
    let mut bytes = Vec::new();
    // a reset is one way to tell that a response was cut: what came is looked at
    let _ = stream.read_to_end(&mut bytes);
    Message::parse(&bytes)
}

fn head(weir: &Weir, request: &Request, context: FieldContext<'_>) -> Vec<u8> {
    let (host, authority) = (context.host, weir.authority_before_target(context.host));
    let mut head = format!(
        "{} {authority}{} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n",
        request.method, request.target
    );
    for field in &request.fields {
        head.push_str(&format!("{}: {}\r\n", field.name, field.value(context)));
    }
    if let Some(content) = &request.content {
        head.push_str(&format!(
            "Content-Length: {}\r\n\r\n{content}",
            content.len()
        ));
    } else {
        head.push_str("\r\n");
    }
    head.into_bytes()
}

fn response_of(message: &Message, request: &Request) -> ClientResponse {
    let mut words = message.first_line.split(' ').skip(1);
    let status = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let has_content = request.method != "HEAD" && !matches!(status, 204 | 304);
    let (content, is_whole) = if has_content {
        message.content()
    } else {
        (message.rest.clone(), true)
    };
    ClientResponse {
        status,
        body: Some(String::from_utf8_lossy(&content).into_owned()),
        age_s: Some(message.value("age").and_then(|age| age.parse().ok())),
        fields: Some(message.fields.clone()),
        cache_status: Parameters::of_last_member(message.value("cache-status").unwrap_or_default()),
        cut: !is_whole,
    }
}
