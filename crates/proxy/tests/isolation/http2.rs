//! A connection of HTTP/2 that several users share, as that of a balancer: their requests are under
//! way at once, and some are left by those who sent them.

use crate::support::{Head, PATIENCE};
use h2::RecvStream;
use h2::client::SendRequest;
use http::Request;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A request, as HTTP/1.1 has it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) text: String,
    /// The stream is reset once this much content has come.
    pub(crate) left_after: Option<usize>,
}

/// What came of a request: its head, and what came of its content.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) head: Head,
    pub(crate) content: Vec<u8>,
    /// Nothing is missing.
    pub(crate) is_whole: bool,
}

/// A connection, opened anew once it has ended.
pub(crate) struct SharedConnection {
    address: SocketAddr,
    runtime: Runtime,
    sender: Option<SendRequest<&'static [u8]>>,
}

impl SharedConnection {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        Self {
            address,
            runtime: runtime.expect("a runtime"),
            sender: None,
        }
    }

    /// Sends all of these at once; what came of each, in their order.
    pub(crate) fn exchange(&mut self, all: &[Sent]) -> Vec<Option<Received>> {
        let address = self.address;
        let sender = &mut self.sender;
        self.runtime.block_on(async {
            let mut answers = JoinSet::new();
            for (number, sent) in all.iter().enumerate() {
                let ready = match sender.take() {
                    Some(old) => old.ready().await.ok(),
                    None => None,
                };
                let mut ready = match ready {
                    Some(ready) => ready,
                    None => connect(address).await,
                };
                let request = request_of(&sent.text);
                let answer = ready.send_request(request, true);
                let (answer, _) = answer.expect("a request of HTTP/2");
                let left_after = sent.left_after;
                answers.spawn(async move {
                    let received = timeout(PATIENCE, receive(answer, left_after)).await;
                    (number, received.expect("a response in time"))
                });
                *sender = Some(ready);
            }
            let mut received: Vec<Option<Received>> = all.iter().map(|_| None).collect();
            while let Some(answer) = answers.join_next().await {
                let (number, answer) = answer.expect("no panic");
                received[number] = answer;
            }
            received
        })
    }
}

async fn connect(address: SocketAddr) -> SendRequest<&'static [u8]> {
    let socket = TcpStream::connect(address).await;
    let socket = socket.expect("the proxy listens");
    let handshake = h2::client::Builder::new().handshake(socket).await;
    let (sender, connection) = handshake.expect("the proxy speaks HTTP/2");
    tokio::spawn(connection);
    sender.ready().await.expect("the proxy takes a request")
}

/// The request of a text without content.
fn request_of(text: &str) -> Request<()> {
    let mut lines = text.lines();
    let first = lines.next().expect("a request line");
    let mut words = first.split(' ');
    let (method, target) = (words.next(), words.next());
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let host = fields.iter().find(|(name, _)| *name == "Host");
    let (_, host) = host.expect("a host");
    let mut request = Request::builder()
        .method(method.expect("a method"))
        .uri(format!("http://{host}{}", target.expect("a target")));
    for (name, value) in fields.iter().filter(|(name, _)| *name != "Host") {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request of HTTP/2")
}

async fn receive(
    answer: h2::client::ResponseFuture,
    left_after: Option<usize>,
) -> Option<Received> {
    let (parts, body) = answer.await.ok()?.into_parts();
    let mut text = format!("HTTP/1.1 {}\r\n", parts.status.as_u16());
    for (name, value) in &parts.headers {
        let value: String = value.as_bytes().iter().copied().map(char::from).collect();
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    let (content, is_whole) = content(body, left_after).await;
    Some(Received {
        head: Head { text },
        content,
        is_whole,
    })
}

async fn content(mut body: RecvStream, left_after: Option<usize>) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    loop {
        if left_after.is_some_and(|most| content.len() >= most) && !body.is_end_stream() {
            // dropped, it is reset
            return (content, false);
        }
        match body.data().await {
            None => return (content, true),
            Some(Err(_)) => return (content, false),
            Some(Ok(data)) => {
                content.extend_from_slice(&data);
                let released = body.flow_control().release_capacity(data.len());
                released.expect("what was received");
            }
        }
    }
}
