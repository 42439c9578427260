//! Tunnels between real sockets on loopback. Every case runs by splice (where there is one) and by
//! copying.

use std::future::pending;
use std::pin::pin;
use std::task::Poll;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::next_hops::LinkMeter;
use std::sync::Arc;
use weir_policy::budget::{CountedBytes, Link, LinkRules, Zone};
use weir_semantics::Timestamp;

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(2);

/// Both ends of a connection.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    let (near, far) = tokio::join!(listener.accept(), TcpStream::connect(address));
    (near.expect("accepted").0, far.expect("connected"))
}

struct Setup {
    means: Means,
    near: (TcpStream, TcpStream),
    client: TcpStream,
    next_hop: TcpStream,
}

impl Setup {
    async fn new(means: Means) -> Self {
        let ((near_client, client), (near_next_hop, next_hop)) =
            (connection().await, connection().await);
        Self {
            means,
            near: (near_client, near_next_hop),
            client,
            next_hop,
        }
    }

    /// The tunnel, and the sockets of its users.
    fn open(
        self,
        idle_limit: Duration,
    ) -> (impl Future<Output = TunnelReport>, TcpStream, TcpStream) {
        let firsts = Firsts {
            to_next_hop: b"",
            to_client: b"",
        };
        let (means, near) = (self.means, self.near);
        // as its caller does, it closes both sockets when the relay is over
        let tunnel = async move {
            relay_by(
                means,
                End::Clear(&near.0),
                NextHopEnd::unmetered(&near.1),
                firsts,
                idle_limit,
                pending(),
            )
            .await
        };
        (tunnel, self.client, self.next_hop)
    }
}

fn both_means() -> impl Iterator<Item = Means> {
    let best = Means::best();
    [best, Means::Copy]
        .into_iter()
        .skip(usize::from(best == Means::Copy))
}

/// Bytes in which any loss, swap or repetition shows.
fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state >> 8).to_le_bytes()[..6]);
    }
    bytes.truncate(length);
    bytes
}

async fn send(mut half: tokio::net::tcp::OwnedWriteHalf, bytes: &[u8]) {
    half.write_all(bytes).await.expect("the tunnel takes it");
    half.shutdown().await.expect("open");
}

async fn receive(mut half: tokio::net::tcp::OwnedReadHalf) -> Vec<u8> {
    let mut bytes = Vec::new();
    half.read_to_end(&mut bytes).await.expect("a clean end");
    bytes
}

#[tokio::test]
async fn tunnel_relays_every_byte_once_and_in_order() {
    for means in both_means() {
        let (up, down) = (pattern(1, 9_000_001), pattern(2, 7_000_003));
        let (tunnel, client, next_hop) = Setup::new(means).await.open(LONG);
        let ((client_read, client_write), (hop_read, hop_write)) =
            (client.into_split(), next_hop.into_split());
        let (report, (), (), at_hop, at_client) = tokio::join!(
            tunnel,
            send(client_write, &up),
            send(hop_write, &down),
            receive(hop_read),
            receive(client_read),
        );
        assert!(
            at_hop == up && at_client == down,
            "bytes differ by {means:?}"
        );
        assert_eq!(report.end, TunnelEnd::Closed);
        assert_eq!(
            (report.to_next_hop_bytes, report.to_client_bytes),
            (up.len() as u64, down.len() as u64)
        );
    }
}

/// The side that sends `first` ends, is read to the end, and still gets an answer.
async fn half_close(
    tunnel: impl Future<Output = TunnelReport>,
    first: TcpStream,
    second: TcpStream,
) -> TunnelReport {
    let ((first_read, first_write), (second_read, second_write)) =
        (first.into_split(), second.into_split());
    let asks = async {
        send(first_write, b"question").await;
        receive(first_read).await
    };
    let answers = async {
        let heard = receive(second_read).await;
        send(second_write, b"a longer answer").await;
        heard
    };
    let (report, answer, question) = tokio::join!(tunnel, asks, answers);
    assert_eq!(
        (question.as_slice(), answer.as_slice()),
        (&b"question"[..], &b"a longer answer"[..])
    );
    report
}

#[tokio::test]
async fn half_close_of_one_direction_leaves_the_other_open() {
    for means in both_means() {
        let (tunnel, client, next_hop) = Setup::new(means).await.open(LONG);
        let report = half_close(tunnel, client, next_hop).await;
        assert_eq!(
            report,
            TunnelReport {
                head_bytes: 0,
                to_client_bytes: 15,
                to_next_hop_bytes: 8,
                end: TunnelEnd::Closed
            }
        );

        let (tunnel, client, next_hop) = Setup::new(means).await.open(LONG);
        let report = half_close(tunnel, next_hop, client).await;
        assert_eq!(
            report,
            TunnelReport {
                head_bytes: 0,
                to_client_bytes: 8,
                to_next_hop_bytes: 15,
                end: TunnelEnd::Closed
            }
        );
    }
}

#[tokio::test]
async fn bytes_read_before_the_tunnel_are_sent_first_to_their_receiver() {
    for means in both_means() {
        let setup = Setup::new(means).await;
        let (up, down) = (pattern(3, 3_000_000), pattern(4, 100));
        let firsts = Firsts {
            to_next_hop: &up,
            to_client: &down,
        };
        let near = setup.near;
        let tunnel = async move {
            relay_by(
                means,
                End::Clear(&near.0),
                NextHopEnd::unmetered(&near.1),
                firsts,
                LONG,
                pending(),
            )
            .await
        };
        let ((client_read, client_write), (hop_read, hop_write)) =
            (setup.client.into_split(), setup.next_hop.into_split());
        let (report, (), (), at_hop, at_client) = tokio::join!(
            tunnel,
            send(client_write, b"then this"),
            send(hop_write, b"and that"),
            receive(hop_read),
            receive(client_read),
        );
        assert_eq!(report.end, TunnelEnd::Closed);
        assert_eq!(report.to_next_hop_bytes, up.len() as u64 + 9);
        assert!(at_hop == [&up[..], b"then this"].concat());
        assert!(at_client == [&down[..], b"and that"].concat());
    }
}

#[tokio::test]
async fn silent_tunnel_is_closed_at_the_idle_limit() {
    for means in both_means() {
        let (tunnel, client, next_hop) = Setup::new(means).await.open(Duration::from_millis(30));
        let (client_read, _client_write) = client.into_split();
        let (hop_read, _hop_write) = next_hop.into_split();
        let (report, at_client, at_hop) =
            tokio::join!(tunnel, receive(client_read), receive(hop_read));
        assert_eq!(
            report,
            TunnelReport {
                head_bytes: 0,
                to_client_bytes: 0,
                to_next_hop_bytes: 0,
                end: TunnelEnd::IdleLimit
            }
        );
        assert!(at_client.is_empty() && at_hop.is_empty());
    }
}

#[tokio::test]
async fn tunnel_does_not_spin_while_its_receiver_takes_nothing() {
    for means in both_means() {
        let (tunnel, mut client, next_hop) =
            Setup::new(means).await.open(Duration::from_millis(100));
        let mut polls = 0;
        let mut tunnel = pin!(tunnel);
        let counted = std::future::poll_fn(|cx| {
            polls += 1;
            tunnel.as_mut().poll(cx)
        });
        let flood = async {
            let bytes = pattern(5, 1 << 20);
            while client.write_all(&bytes).await.is_ok() {}
        };
        let (report, ()) = tokio::join!(counted, flood);
        assert_eq!(report.end, TunnelEnd::IdleLimit);
        assert!(report.to_next_hop_bytes > 0);
        // buffers of a few MiB in all, moved in pieces of 16 to 64 KiB
        assert!(polls < 5_000, "polled {polls} times");
        drop(next_hop);
    }
}

#[tokio::test]
async fn reset_of_one_side_resets_the_other() {
    for means in both_means() {
        let (tunnel, client, mut next_hop) = Setup::new(means).await.open(LONG);
        client.set_zero_linger().expect("supported");
        drop(client);
        let mut byte = [0];
        let (report, at_hop) = tokio::join!(tunnel, next_hop.read(&mut byte));
        assert_eq!(
            report.end,
            TunnelEnd::Error(Side::Client, io::ErrorKind::ConnectionReset)
        );
        assert_eq!(
            at_hop.map_err(|error| error.kind()),
            Err(io::ErrorKind::ConnectionReset)
        );

        let (tunnel, mut client, next_hop) = Setup::new(means).await.open(LONG);
        next_hop.set_zero_linger().expect("supported");
        drop(next_hop);
        let (report, at_client) = tokio::join!(tunnel, client.read(&mut byte));
        assert_eq!(
            report.end,
            TunnelEnd::Error(Side::NextHop, io::ErrorKind::ConnectionReset)
        );
        assert_eq!(
            at_client.map_err(|error| error.kind()),
            Err(io::ErrorKind::ConnectionReset)
        );
    }
}

#[tokio::test]
async fn tunnel_is_closed_at_the_drain_limit() {
    let setup = Setup::new(Means::best()).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let drain = async { drop(stopped.await) };
    let tunnel = relay(&setup.near.0, &setup.near.1, b"", b"", LONG, drain);
    let (report, ()) = tokio::join!(biased; tunnel, async move { drop(stop) });
    assert_eq!(report.end, TunnelEnd::Drained);
    assert_eq!(report.end.word(), "drained");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn idle_tunnel_holds_no_pipe() {
    use super::pipe::{IDLE_MAX, Pipe};
    let (tunnel, mut client, mut next_hop) = Setup::new(Means::Splice).await.open(LONG);
    let mut tunnel = pin!(tunnel);
    let mut heard = [0; 5];
    tokio::select! {
        biased;
        _ = &mut tunnel => panic!("ended early"),
        done = async {
            client.write_all(b"hello").await?;
            next_hop.read_exact(&mut heard).await
        } => assert_eq!(done.ok(), Some(5)),
    }
    // the tunnel is polled once more, finds its sockets empty and waits
    std::future::poll_fn(|cx| {
        assert!(tunnel.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    let (lent, idle) = Pipe::counts();
    assert_eq!(lent, 0, "a pipe is lent while nothing is in flight");
    assert!(
        (1..=IDLE_MAX).contains(&idle),
        "splice was not used: {idle}"
    );
}

/// A link that permits 64 KiB, and no more before its clock goes on.
fn stopped_link() -> (Arc<LinkMeter>, Arc<ManualClock>) {
    let rules = LinkRules {
        rate: Some(1000),
        reserve_percent: 0,
        bulk_above: 0,
        quota: None,
        count: CountedBytes::Both,
        overhead_percent: 0,
        windows: Box::default(),
        zone: Zone::utc(),
    };
    let manual = Arc::new(ManualClock::new(Timestamp(0)));
    let clock = Clock::Manual(Arc::clone(&manual));
    let link = Link::new(rules, None, clock.now());
    let meter = LinkMeter::new("a", link, clock, Arc::default());
    (Arc::new(meter), manual)
}

#[tokio::test]
async fn tunnel_that_waits_for_its_link_is_not_idle_and_holds_no_pipe() {
    let limit = Duration::from_millis(30);
    for means in both_means() {
        let (meter, clock) = stopped_link();
        let setup = Setup::new(means).await;
        let (near, mut client) = (setup.near, setup.client);
        let mut link = ConnectionLink::new(&meter, &near.1);
        let firsts = Firsts {
            to_next_hop: b"",
            to_client: b"",
        };
        let tunnel = async move {
            let next_hop = NextHopEnd {
                end: End::Clear(&near.1),
                link: Some(&mut link),
            };
            relay_by(
                means,
                End::Clear(&near.0),
                next_hop,
                firsts,
                limit,
                pending(),
            )
            .await
        };
        let mut tunnel = pin!(tunnel);
        let sent = pattern(7, 200_000);
        let flood = send(setup.next_hop.into_split().1, &sent);
        let mut received = Vec::new();
        // one that is idle is begun when this one waits, and ends first if that is no idleness
        let others = async {
            let mut permitted = vec![0; 64 << 10];
            client.read_exact(&mut permitted).await.expect("permitted");
            received.append(&mut permitted);
            for _ in 0..2 {
                let (idle, _client, _next_hop) = Setup::new(means).await.open(limit);
                assert_eq!(idle.await.end, TunnelEnd::IdleLimit);
            }
        };
        let mut flood = pin!(flood);
        tokio::select! {
            biased;
            report = &mut tunnel => panic!("{report:?}"),
            () = async { tokio::join!(others, &mut flood); } => {}
        }
        #[cfg(target_os = "linux")]
        assert_eq!(super::pipe::Pipe::counts().0, 0, "a pipe is lent");
        clock.advance_ms(1_000_000);
        let (report, rest) = tokio::join!(tunnel, async {
            let (mut read, write) = client.into_split();
            let mut rest = Vec::new();
            while rest.len() + received.len() < sent.len() {
                clock.advance_ms(1_000_000);
                read.read_buf(&mut rest).await.expect("more");
            }
            drop((read, write));
            rest
        });
        assert!([received, rest].concat() == sent);
        assert_ne!(report.end, TunnelEnd::IdleLimit);
    }
}
