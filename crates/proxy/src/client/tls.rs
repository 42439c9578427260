//! Connections of clients to listeners with TLS.

use super::connection::AcceptedClient;
use super::other_protocol::tell_http_in_clear;
use super::protocol::DetectedProtocol;
use crate::log::client::{HttpVersions, ListenerFacts};
use crate::request::answer::{Answer, AnswerReason};
use crate::settings::tls::HTTP2;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use weir_net::client::ClientSocket;
use weir_net::tls::server::{HandshakeFailure, HandshakeRules};
use weir_net::workers::{Accepted, Stage};
use weir_policy::connections::HandshakeLimits;

/// How long a handshake may go on once a drain has begun.
const DRAIN_GRACE: Duration = Duration::from_secs(1);

/// How long a client that speaks HTTP in clear is waited for to read that it must not, and bytes of
/// it that are dropped meanwhile.
const LINGER: (Duration, usize) = (Duration::from_secs(2), 64 * 1024);

/// Has the handshake with the client of a listener with TLS.
pub(crate) async fn begin(
    accepted: Accepted<ListenerFacts>,
    worker: Rc<Worker>,
) -> DetectedProtocol {
    let settings = worker.settings();
    let Some(address) = accepted.listener.tls_address else {
        return DetectedProtocol::Ended;
    };
    // none: a reload has just removed the listener
    let Some(server) = settings.tls.of(address) else {
        return DetectedProtocol::Ended;
    };
    let limits = &settings.config.limits;
    let rules = HandshakeRules {
        time: limits.tls_handshake.as_duration(),
        places: HandshakeLimits {
            total_max: limits.tls_handshakes_max as usize,
            per_client_max: limits.tls_handshakes_per_client_max as usize,
        },
    };
    let Accepted {
        stream,
        peer,
        listener,
        place,
    } = accepted;
    let handshake =
        worker
            .handshakes
            .accept((stream, peer.ip()), &server, rules, worker.counters());
    let done = tokio::select! {
        biased;
        done = handshake => done,
        () = drain_grace(&worker) => return DetectedProtocol::Ended,
    };
    drop(settings);
    match done {
        Ok((stream, name)) => {
            let is_http2 = stream.has_protocol(HTTP2);
            let client = AcceptedClient {
                stream: ClientSocket::Tls(Box::new(stream)),
                peer,
                listener: Rc::new(ListenerFacts {
                    tls: Some(Arc::new(name)),
                    versions: match is_http2 {
                        true => HttpVersions::Http2,
                        false => HttpVersions::Http1,
                    },
                    ..(*listener).clone()
                }),
                place,
                unread: Vec::new(),
            };
            match is_http2 {
                true => DetectedProtocol::Http2(client),
                false => DetectedProtocol::Http1(client),
            }
        }
        Err(HandshakeFailure::Http(client)) => {
            tell_http_in_clear(&worker, &listener, peer);
            refuse_http(client, &worker).await;
            DetectedProtocol::Ended
        }
        Err(HandshakeFailure::Closed) => DetectedProtocol::Ended,
    }
}

/// Ready when a drain has begun a while ago.
async fn drain_grace(worker: &Worker) {
    let mut stage = worker.network().stage();
    // the sender lives as long as the network
    let _ = stage.wait_for(|stage| *stage > Stage::Serving).await;
    sleep(DRAIN_GRACE).await;
}

/// Tells a client that speaks HTTP in clear that it must not.
async fn refuse_http(mut client: TcpStream, worker: &Worker) {
    let answer = Answer::closing(
        400,
        AnswerReason::bad("this port speaks TLS: use an https:// URL, or https:// for the proxy"),
    );
    let mut out = Vec::new();
    let verdict = answer.verdict();
    let settings = worker.settings();
    answer.write(&settings, &verdict, false, &worker.date(), |_| {}, &mut out);
    let (linger, mut left) = LINGER;
    let told = timeout(linger, async {
        client.write_all(&out).await?;
        client.shutdown().await?;
        let mut dropped = [0; 1024];
        while left > 0 {
            match client.read(&mut dropped).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        std::io::Result::Ok(())
    });
    // a client that is gone needs to be told nothing
    let _ = told.await;
}
