//! Two users, one cache, many streams: no response is another user's.

use super::frames::{DATA, END_STREAM, Frames, GOAWAY, HEADERS, RST_STREAM, get};
use super::{Clear, LOCATIONS};
use crate::support::{Config, Nginx, RawClient, Weir};
use std::collections::BTreeMap;
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
