//! Many requests for little: what a client gets done by sending, it must also take in (I5).

use crate::support::{RawClient, Setup, pattern, span};
use weir_measure::Metric;

#[test]
fn pipelined_hits_are_all_answered_intact() {
    Setup::each(|setup| {
        let body = pattern(3000);
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3000\r\n\r\n");
        hop.send(&body);
        assert!(client.read_response().body == body);
        let count = 3000;
        let requests = setup.get("/").repeat(count);
        let mut sender = RawClient::from_stream(client.stream.try_clone().expect("a socket"));
        let sending = std::thread::spawn(move || sender.send(requests));
        for _ in 0..count {
            let response = client.read_response();
            assert!(response.is_hit() && response.body == body);
        }
        sending.join().expect("sent");
        client.expect_nothing_more();
    });
}

#[test]
fn bytes_written_to_a_pipelining_client_that_never_reads_are_bounded() {
    Setup::each(|setup| {
        let (_, _hop) = setup.fetch(
            "/",
            &format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 16000\r\n\r\n{}",
                "x".repeat(16_000)
            ),
        );
        setup
            .proxy
            .reload(|config| config.limits.client_silence = span("200ms"));
        let before = setup.proxy.count(Metric::BytesFromStore);
        let mut client = RawClient::connect_small(setup.proxy.address());
        let requests = setup.get("/").repeat(1000);
        // 160 MB are asked for; what is written is what the kernel holds, and one gathering
        for _ in 0..10 {
            client.try_send(&requests);
        }
        setup.proxy.wait_for(Metric::ClientAborts, 1);
        let served = setup.proxy.count(Metric::BytesFromStore) - before;
        assert!(served < 20_000_000, "{served} bytes were served to nobody");
        setup.proxy.wait_for(Metric::RequestsInFlight, 0);
    });
}

#[test]
fn pipelined_misses_are_fetched_one_at_a_time() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let count = 50;
        let requests: String = (0..count).map(|at| setup.get(&format!("/{at}"))).collect();
        client.send(requests);
        let mut hop = setup.origin.accept();
        for at in 0..count {
            let head = hop.read_head();
            assert_eq!(head.start_line(), format!("GET /{at} HTTP/1.1"));
            hop.expect_nothing_more();
            setup.origin.expect_untouched();
            hop.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{at:03}"
            ));
        }
        for at in 0..count {
            assert_eq!(client.read_response().text(), format!("{at:03}"));
        }
    });
}

#[test]
fn pipelined_requests_after_a_failed_one_are_answered() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/1") + &setup.get("/2") + &setup.get("/3"));
        setup.origin.answer("nonsense\r\n\r\n");
        assert_eq!(client.read_response().status(), 502);
        let (mut hop, _) = setup
            .origin
            .answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
        assert_eq!(client.read_response().text(), "2");
        hop.answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n3");
        assert_eq!(client.read_response().text(), "3");
    });
}
