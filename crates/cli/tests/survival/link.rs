//! The quota of a link, and SIGKILL while it is spent.

use super::setting;
use crate::support::{Config, RawClient, Weir};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of the quota for each kill: each costs steps of booked bytes and open windows.
const QUOTA_MIB_A_ROUND: u64 = 8;

/// What the kernel of the origin holds of a connection that is cut: counted as if it had been sent.
const SEND_BUFFER: usize = 8 << 10;

/// An origin that sends without end, and counts all bytes in both directions.
struct EndlessOrigin {
    address: SocketAddr,
    moved: Arc<AtomicU64>,
}

impl EndlessOrigin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        // connections have what their listener has
        let socket = socket2::SockRef::from(&listener);
        socket.set_send_buffer_size(SEND_BUFFER).expect("a socket");
        let moved: Arc<AtomicU64> = Arc::default();
        let counted = Arc::clone(&moved);
        // ends with the process, as its connections do
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || serve(stream, &counted));
            }
        });
        Self { address, moved }
    }

    fn moved(&self) -> u64 {
        self.moved.load(Ordering::SeqCst)
    }
}

/// Answers one request, until the proxy has gone.
fn serve(mut stream: TcpStream, moved: &AtomicU64) {
    let mut request = [0; 4096];
    let Ok(asked) = stream.read(&mut request) else {
        return;
    };
    moved.fetch_add(asked as u64, Ordering::SeqCst);
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n",
        u64::MAX / 2
    );
    let mut send = |bytes: &[u8]| {
        let sent = stream.write(bytes)?;
        moved.fetch_add(sent as u64, Ordering::SeqCst);
        Ok::<_, std::io::Error>(sent)
    };
    let content = [b'x'; 4096];
    if send(head.as_bytes()).is_ok() {
        while send(&content).is_ok_and(|sent| sent > 0) {}
    }
}

/// Reads until the proxy has gone, or answers that the quota is spent.
fn read(weir: SocketAddr, is_spent: &AtomicBool) {
    while let Ok(mut client) = RawClient::try_connect(weir) {
        if client
            .try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .is_err()
        {
            return;
        }
        match client.try_status() {
            Ok(200) => client.read_until_cut(),
            Ok(429) => return is_spent.store(true, Ordering::SeqCst),
            Ok(status) => panic!("status {status}"),
            Err(_) => return,
        }
    }
}

#[test]
fn quota_of_a_link_is_exceeded_by_at_most_a_hundredth_over_kills() {
    let rounds = setting("WEIR_TORTURE_ROUNDS", 5);
    let seed = setting("WEIR_TORTURE_SEED", 20_261_121);
    let origin = EndlessOrigin::start();
    let place = tempfile::tempdir().expect("a temporary folder");
    let quota_mib = QUOTA_MIB_A_ROUND * rounds;
    let quota = quota_mib << 20;
    let link = format!(
        r#"[{{ name = "a", quota = "{quota_mib}MiB", period = "month", overhead_percent = 0, state_file = "{}" }}]"#,
        place.path().join("link").display()
    );
    let config = Config::gateway(&[&format!("http://{}", origin.address)]).set("link", &link);
    let is_spent = AtomicBool::new(false);
    for round in 0..=rounds {
        let weir = Weir::serve(&config);
        let address = weir.address();
        let dice = weir_workload::mix(seed ^ round) % (quota / (rounds + 1));
        let until = origin.moved() + dice;
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| read(address, &is_spent)))
                .collect();
            let began = Instant::now();
            let is_over = || {
                readers
                    .iter()
                    .all(std::thread::ScopedJoinHandle::is_finished)
            };
            while !is_over() && (round == rounds || origin.moved() < until) {
                assert!(
                    began.elapsed() < Duration::from_secs(120),
                    "seed {seed}, round {round}"
                );
                std::thread::yield_now();
            }
            // SIGKILL, while they read
            drop(weir);
        });
    }
    let moved = origin.moved();
    assert!(is_spent.load(Ordering::SeqCst), "{moved} of {quota}");
    assert!(
        moved <= quota + quota / 100,
        "seed {seed}: {moved} of {quota}"
    );
    // what kills cost
    assert!(moved >= quota / 2, "seed {seed}: {moved} of {quota}");
}
