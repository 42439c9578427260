//! WebSockets on streams (RFC 8441): Node as the client, and as the server behind, which speaks
//! HTTP/1.1.

use crate::support::{Config, Weir, start_program};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

/// A server of WebSockets; it ends when dropped.
struct Origin(Child);

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn websocket_on_a_stream_is_an_upgrade_at_the_next_hop() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let mut command = Command::new("node");
    command
        .arg("-e")
        .arg(include_str!("websocket_origin.js"))
        // the listener is its file descriptor 0
        .stdin(Stdio::from(OwnedFd::from(listener)));
    let _origin = Origin(start_program(&mut command, "nodejs"));
    let config = Config::gateway(&[&format!("http://{address}")]).of_listener("http2 = true");
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
