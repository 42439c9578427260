//! Two users, one cache, many streams: no response is another user's.

use super::frames::{DATA, END_STREAM, Frames, GOAWAY, HEADERS, RST_STREAM, get};
use super::{Clear, LOCATIONS};
use crate::support::{Config, Nginx, RawClient, Weir};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Barrier;

/// Each tells the user that it was asked by; by three fields that make a response private, or of a
/// variant.
const PRIVATE: &str = "
    location /secret { add_header Cache-Control no-store; return 200 $http_x_user; }
    location /login { add_header Cache-Control max-age=600; return 200 $http_authorization; }
    location /own { add_header Cache-Control \"private, max-age=600\"; return 200 $http_cookie; }
    location /variant {
        add_header Vary X-User;
        add_header Cache-Control max-age=600;
        return 200 $http_x_user;
    }
";

/// Streams at once, of each user.
const STREAMS: u32 = 60;

const ROUNDS: u32 = 5;

/// Asks for everything at once; the content by stream.
fn ask(client: &mut Frames, first: u32, user: &str) -> BTreeMap<u32, String> {
    let paths = ["/secret", "/login", "/own", "/variant"];
    let streams: Vec<u32> = (0..STREAMS).map(|number| first + 2 * number).collect();
    for (stream, path) in streams.iter().zip(paths.iter().cycle()) {
        let mut fields = get(path).to_vec();
        fields.extend([("x-user", user), ("authorization", user), ("cookie", user)]);
        client.request(*stream, &fields);
    }
    let mut got: BTreeMap<u32, String> = BTreeMap::new();
    let mut open = streams.len();
    while open > 0 {
        let frame = client.next().expect("a frame");
        assert!(![RST_STREAM, GOAWAY].contains(&frame.kind), "{frame:?}");
        if frame.kind == DATA {
            let text = String::from_utf8_lossy(&frame.payload);
            got.entry(frame.stream).or_default().push_str(&text);
        }
        if [DATA, HEADERS].contains(&frame.kind) && frame.flags & END_STREAM != 0 {
            open -= 1;
        }
    }
    got
}

#[test]
fn streams_of_two_users_get_no_response_of_each_other() {
    let nginx = Nginx::start(&format!("{LOCATIONS}{PRIVATE}"));
    let config = Config::gateway(&[&nginx.origin()]).of_listener("http2 = true");
    let weir = Weir::serve(&config);
    let clear = Clear { nginx, weir };
    let begin = Barrier::new(3);
    let address = clear.weir.address();
    std::thread::scope(|scope| {
        for user in ["alice-5f1c", "bob-93d7"] {
            let begin = &begin;
            let mut client = clear.frames();
            scope.spawn(move || {
                begin.wait();
                for round in 0..ROUNDS {
                    let first = 1 + 2 * STREAMS * round;
                    let got = ask(&mut client, first, user);
                    assert_eq!(got.len(), STREAMS as usize);
                    for (stream, text) in got {
                        assert_eq!(text, user, "stream {stream} of {user}");
                    }
                }
            });
        }
        // and one that comes by HTTP/1.1
        let begin = &begin;
        scope.spawn(move || {
            let mut client = RawClient::connect(address);
            begin.wait();
            for _ in 0..50 {
                for path in ["/secret", "/login", "/own", "/variant"] {
                    let user = "carol-1a2b";
                    client.send(format!(
                        "GET {path} HTTP/1.1\r\nHost: a.test\r\nX-User: {user}\r\n\
                         Authorization: {user}\r\nCookie: {user}\r\n\r\n"
                    ));
                    assert_eq!(client.reply().expect(200).text(), user, "{path}");
                }
            }
        });
    });
    clear.expect_others_are_served();
}

/// `token-of-ci`.
const TOKENS: &str = "ci:sha256:d1968d6184b8eddf4b0d9fee136141d5f88a53784b9aa94e0d648ffc5b952caf\n";

/// The head of a response with status 200 begins with its place in the static table (RFC 7541
/// appendix A).
const STATUS_200: u8 = 0x88;

#[test]
fn login_is_judged_on_each_stream_by_its_own_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, TOKENS).expect("a file");
    std::fs::set_permissions(&tokens, Permissions::from_mode(0o600)).expect("its owner");
    let nginx = Nginx::start(LOCATIONS);
    let file = format!("{:?}", tokens.display().to_string());
    let config = Config::forward().set("login.tokens_file", &file);
    let port = format!("[{}]", nginx.address.port());
    let config = config.set("access.connect_ports", &port);
    let weir = Weir::serve(&config.of_listener("http2 = true"));
    let mut client = Frames::connect(weir.address());
    let origin = nginx.address.to_string();
    let right = ("proxy-authorization", "Bearer token-of-ci");
    let wrong = ("proxy-authorization", "Bearer another-token");
    let get = |path| {
        [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", path),
            (":authority", origin.as_str()),
        ]
    };
    let connect = [(":method", "CONNECT"), (":authority", origin.as_str())];
    let mut stream = 1;
    let mut ask = |fields: &[(&str, &str)], login: Option<(&str, &str)>| {
        let fields = [fields, login.as_slice()].concat();
        client.request(stream, &fields);
        let head = loop {
            let frame = client.until(HEADERS);
            if frame.stream == stream {
                break frame;
            }
        };
        stream += 2;
        head.payload[0] == STATUS_200
    };
    for _ in 0..2 {
        assert!(ask(&get("/cached"), Some(right)));
        // a stored response is not for a client without a login
        assert!(!ask(&get("/cached"), None));
        assert!(!ask(&get("/cached"), Some(wrong)));
        assert!(!ask(&connect, None));
        assert!(ask(&connect, Some(right)));
        assert!(!ask(&connect, Some(wrong)));
    }
    let metrics = weir.metrics();
    let count = |outcome| metrics.count(&format!("weir_logins_total{{outcome=\"{outcome}\"}}"));
    assert_eq!((count("right"), count("wrong")), (4, 4));
}
