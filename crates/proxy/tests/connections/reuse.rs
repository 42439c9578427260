//! Which idle connection is taken, for whom, and for how long.

use crate::support::{Running, ScriptedOrigin, Setup};
use weir_measure::Metric;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn idle_connection_is_reused_by_other_clients() {
    Setup::each(|setup| {
        let (_, mut hop) = setup.fetch("/1", OK);
        for _ in 0..5 {
            let mut client = setup.proxy.client();
            client.send(setup.get("/2"));
            hop.answer(OK);
            assert_eq!(client.read_response().text(), "ok");
        }
        assert_eq!(setup.proxy.reuse(), (5, 1));
        assert_eq!(setup.proxy.count(Metric::NextHopsOpen), 1);
    });
}

#[test]
fn idle_connection_is_reused_across_workers() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let origin = origin.answering(|_, _| OK.into());
    let proxy = Running::gateway_with(address, |config| config.workers = 2);
    let clients = 24;
    for _ in 0..clients {
        // the kernel spreads connections over the workers: that all come to one has a chance of
        // 2^-23
        let response = proxy.client().ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(response.text(), "ok");
        proxy.wait_for(Metric::ConnectionCacheIdle, 1);
    }
    assert_eq!(proxy.reuse(), (clients - 1, 1));
    assert_eq!(origin.connections(), 1);
    assert_eq!(origin.seen().len() as u64, clients);
}

#[test]
fn most_recently_used_idle_connection_is_taken_first() {
    Setup::each(|setup| {
        let mut clients = [
            setup.proxy.client(),
            setup.proxy.client(),
            setup.proxy.client(),
        ];
        let mut hops = Vec::new();
        // each wants another target, or they would share one connection
        for (client, path) in clients.iter_mut().zip(["/1", "/2", "/3"]) {
            client.send(setup.get(path));
            let mut hop = setup.origin.accept();
            hop.read_head();
            hops.push(hop);
        }
        for (client, hop) in clients.iter_mut().zip(&mut hops) {
            hop.send(OK);
            client.read_response();
        }
        setup.proxy.wait_for(Metric::ConnectionCacheIdle, 3);
        // the last to become idle is the first to work, again and again
        for client in &mut clients {
            client.send(setup.get("/again"));
            hops[2].answer(OK);
            client.read_response();
        }
        // and the one before it is the next if it is busy
        let [one, two, _] = &mut clients;
        one.send(setup.get("/one"));
        hops[2].read_head();
        two.send(setup.get("/two"));
        hops[1].answer(OK);
        two.read_response();
        hops[2].send(OK);
        one.read_response();
        hops[0].expect_nothing_more();
        assert_eq!(setup.proxy.reuse(), (5, 3));
    });
}

#[test]
fn connection_is_reused_only_within_its_idle_limit() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (mut hop, _) = setup.origin.answer(OK);
        client.read_response();
        setup.proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        setup.proxy.clock.advance_ms(29_999);
        client.send(setup.get("/"));
        hop.answer(OK);
        client.read_response();
        assert_eq!(setup.proxy.count(Metric::ConnectionCacheExpiries), 0);
        setup.proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        setup.proxy.clock.advance_ms(30_000);
        client.send(setup.get("/"));
        let (_fresh, _) = setup.origin.answer(OK);
        client.read_response();
        hop.expect_end();
        assert_eq!(setup.proxy.count(Metric::ConnectionCacheExpiries), 1);
        assert_eq!(setup.proxy.reuse(), (1, 2));
    });
}

#[test]
fn unused_idle_connection_is_closed_at_its_idle_limit() {
    Setup::each(|setup| {
        let (_, mut hop) = setup.fetch("/", OK);
        setup.proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        setup.proxy.clock.advance_ms(30_000);
        hop.expect_end();
        setup.proxy.wait_for(Metric::ConnectionCacheExpiries, 1);
        assert_eq!(setup.proxy.count(Metric::NextHopsOpen), 0);
    });
}

#[test]
fn idle_connection_beyond_the_limit_evicts_the_oldest() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.limits.idle_per_next_hop_max = 1;
    });
    let mut clients = [proxy.client(), proxy.client()];
    let mut hops = Vec::new();
    for (client, path) in clients.iter_mut().zip(["/1", "/2"]) {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut hop = origin.accept();
        hop.read_head();
        hops.push(hop);
    }
    for (client, hop) in clients.iter_mut().zip(&mut hops) {
        hop.send(OK);
        client.read_response();
    }
    proxy.wait_for(Metric::NextHopsOpen, 1);
    assert_eq!(proxy.count(Metric::ConnectionCacheIdle), 1);
    assert_eq!(proxy.count(Metric::ConnectionCacheEvictions), 1);
    // the newer one stays
    hops[0].expect_end();
    clients[0].send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    hops[1].answer(OK);
    clients[0].read_response();
}

#[test]
fn connection_is_reused_only_for_its_own_next_hop() {
    let proxy = Running::forward();
    let origins = [ScriptedOrigin::new(), ScriptedOrigin::new()];
    let mut client = proxy.client();
    for origin in &origins {
        let address = origin.address();
        client.send(format!(
            "GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n"
        ));
        let (mut hop, head) = origin.answer(OK);
        assert_eq!(head.field("host"), Some(&*address.to_string()));
        client.read_response();
        hop.expect_nothing_more();
    }
    assert_eq!(proxy.reuse(), (0, 2));
}
