//! A proxy that stores nothing: each request goes its own way.

use crate::support::Setup;

const STORABLE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\n";

#[test]
fn disabled_cache_neither_stores_nor_shares_responses() {
    let off = |config: &mut weir_proxy::config::Config| config.cache.enabled = false;
    Setup::each_with(off, |setup| {
        // the second begins while the first waits for its head: neither joins the other
        let mut clients = [setup.proxy.client(), setup.proxy.client()];
        for client in &mut clients {
            client.send(setup.get("/"));
        }
        let mut hops = [setup.origin.accept(), setup.origin.accept()];
        for (at, hop) in hops.iter_mut().enumerate() {
            hop.answer(format!("{STORABLE}{at}"));
        }
        for client in &mut clients {
            let response = client.read_response();
            assert!(
                response.head.cache_status().starts_with("fwd=bypass"),
                "{:?}",
                response.head
            );
        }
        // what is switched on later begins with nothing
        setup.proxy.reload(|config| config.cache.enabled = true);
        let (response, _hop) = setup.fetch("/", &format!("{STORABLE}x"));
        assert!(!response.is_hit());
        clients[0].send(setup.get("/"));
        assert!(clients[0].read_response().is_hit());
        // and what is switched off is not served, though it is there
        setup.proxy.reload(|config| config.cache.enabled = false);
        let (response, _hop) = setup.fetch("/", &format!("{STORABLE}y"));
        assert_eq!(response.body, b"y");
    });
}
