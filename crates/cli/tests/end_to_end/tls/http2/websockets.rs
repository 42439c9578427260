//! WebSockets on streams (RFC 8441): Node as the client, and as the server behind, which speaks
//! HTTP/1.1.

use super::super::NodeOrigin;
use crate::support::{Config, Weir};
use std::process::Command;

#[test]
fn websocket_on_a_stream_is_an_upgrade_at_the_next_hop() {
    let origin = NodeOrigin::start(include_str!("websocket_origin.js"));
    let config = Config::gateway(&[&origin.url]).of_listener("http2 = true");
    // rules see the request that it is
    let denied = "name = \"denied\"\npath = [\"/denied\"]\ndeny = \"closed\"";
    let weir = Weir::serve(&config.rule(denied));
    let out = Command::new("node")
        .arg("-e")
        .arg(include_str!("websocket.js"))
        .arg(weir.address().port().to_string())
        .output()
        .expect("node starts");
    let said = String::from_utf8_lossy(&out.stdout);
    let open = "200 GET /chat a.test /chat, chat, , \necho true\n";
    let expected = format!(
        "offered true\n{open}{open}/wrong 502\n/plain 502\n/denied 403\nother 501\n\
         length ERR_HTTP2_STREAM_ERROR\nget 200\n"
    );
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&out.stderr));
    let metrics = weir.until("closed", |metrics| metrics.count("weir_tunnels_open") == 0);
    assert_eq!(metrics.count("weir_tunnels_opened_total"), 2);
    assert_eq!(metrics.count("weir_panics_total"), 0);
}
