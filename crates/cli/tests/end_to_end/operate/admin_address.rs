//! What answers at an admin address, and what is said where it is not the right one.

use crate::support::{Config, Nginx, Weir};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use xtask::closed_port::ClosedPort;

/// Purges everything at an address, and expects an exit code and the whole of stderr or stdout.
#[track_caller]
fn purge_all(address: SocketAddr, exit: i32, expected: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["purge", "--all", "--admin", &address.to_string()])
        .env("XDG_RUNTIME_DIR", "/nowhere")
        .output()
        .expect("the binary was built with this test");
    let said = match exit {
        0 => &output.stdout,
        _ => &output.stderr,
    };
    let said = String::from_utf8_lossy(said);
    assert_eq!(output.status.code(), Some(exit), "{said}");
    for part in expected {
        assert!(said.contains(part), "no `{part}` in: {said}");
    }
    // what, why, and what to do
    assert!(said.lines().count() <= 3, "{said}");
}

/// A server that gives an answer to each connection, by the line of its request, and closes it.
/// It ends with the test.
fn answering(answer: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    answering_heads(move |head| answer(head.lines().next().unwrap_or_default()))
}

/// The same by the whole head of a request.
fn answering_heads(answer: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1)
            {
                head.push(byte[0]);
            }
            let _closed = stream.write_all(answer(&String::from_utf8_lossy(&head)).as_bytes());
        }
    });
    address
}

const NOT_OURS: [&str; 2] = [
    "caused by: what answers there is not the admin interface of a Weir\n",
    "hint: another program has this address, or it is a listener for clients; `--admin ADDR`",
];

#[test]
fn address_where_nothing_listens_is_said_with_what_to_do() {
    let closed = ClosedPort::hold().expect("a free port");
    let expected = [
        "caused by: nothing listens there\n",
        "hint: start a proxy with `weir serve`, or name the address",
    ];
    purge_all(closed.address(), 3, &expected);
}

#[test]
fn port_of_another_program_is_no_admin_interface() {
    let nginx = Nginx::start("location / { return 200 purged; }");
    purge_all(nginx.address, 3, &NOT_OURS);
    let proxy = Weir::serve(&Config::forward());
    purge_all(proxy.listeners[0], 3, &NOT_OURS);
    let ssh = answering(|_| "SSH-2.0-OpenSSH_9.2\r\n".into());
    purge_all(ssh, 3, &NOT_OURS);
    let hello =
        answering(|_| "HTTP/1.1 404 Not Found\r\n\r\nno such endpoint; there are:\n".into());
    purge_all(hello, 3, &NOT_OURS);
    let silent = answering(|_| String::new());
    let expected = [
        "caused by: what listens there does not answer\n",
        "hint: is it the admin interface of a Weir?",
    ];
    purge_all(silent, 3, &expected);
}

/// As a Weir answers that has no `Weir-Admin`.
fn old(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n\r\n{body}")
}

const OLD_LIST: &str = "weir admin\n\nGET  /healthz              200 `ok`\n";

#[test]
fn older_weir_does_what_it_knows_and_is_named_where_it_does_not() {
    let knows = answering(|line| match line {
        "GET / HTTP/1.1" => old("200 OK", OLD_LIST),
        "POST /purge-all HTTP/1.1" => old("200 OK", "purged 7\n"),
        _ => old("400 Bad Request", "not expected\n"),
    });
    purge_all(knows, 0, &["purged 7\n"]);
    let refuses = answering(|line| match line {
        "GET / HTTP/1.1" => old("200 OK", OLD_LIST),
        _ => old(
            "404 Not Found",
            "no such endpoint; there are:\n\nGET  /healthz\n",
        ),
    });
    let expected = [
        "caused by: the Weir there is older than this command, and does not know it\n",
        concat!("hint: start it again as ", env!("CARGO_PKG_VERSION")),
    ];
    purge_all(refuses, 3, &expected);
}

#[test]
fn token_is_not_sent_to_another_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("ours");
    let (sender, heads) = std::sync::mpsc::channel();
    let other = answering_heads(move |head| {
        let _ended = sender.send(head.to_owned());
        "HTTP/1.1 200 OK\r\n\r\nhello\n".into()
    });
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["purge", "--all", "--admin", &other.to_string()])
        .arg("--token-file")
        .arg(&file)
        .output()
        .expect("the binary was built with this test");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(NOT_OURS[0]), "{said}");
    let heads: Vec<String> = heads.try_iter().collect();
    assert_eq!(heads.len(), 1, "{heads:?}");
    assert!(heads[0].starts_with("GET / HTTP/1.1\r\n"), "{heads:?}");
    assert!(
        !heads[0].to_lowercase().contains("authorization"),
        "{heads:?}"
    );
}

#[test]
fn newer_interface_is_not_spoken_to_as_if_it_were_known() {
    let newer = answering(|_| old("200 OK\r\nWeir-Admin: 2", "purged 7\n"));
    let expected = [
        "caused by: the Weir there is newer than this command\n",
        "hint: use the `weir` of its version",
    ];
    purge_all(newer, 3, &expected);
}

/// Each command that speaks to an admin interface, with what it needs.
const COMMANDS: [&[&str]; 11] = [
    &["purge", "--all"],
    &["reload"],
    &["modules"],
    &["cluster"],
    &["drain"],
    &["route", "http://a.example/"],
    &["explain", "http://a.example/"],
    &["stored", "query", "http://a.example/"],
    &["stored", "list", "http://a.example/"],
    &["top", "--once"],
    &["top", "--json"],
];

/// Runs each command at an address, and expects exit 3 with these parts in at most three lines.
#[track_caller]
fn check_all(address: SocketAddr, more: &[&str], expected: &[&str]) {
    for command in COMMANDS {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(command)
            .args(["--admin", &address.to_string()])
            .args(more)
            .env("XDG_RUNTIME_DIR", "/nowhere")
            .output()
            .expect("the binary was built with this test");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command:?}: {said}");
        for part in expected {
            assert!(said.contains(part), "{command:?}: no `{part}` in: {said}");
        }
        assert!(said.lines().count() <= 3, "{command:?}: {said}");
    }
}

#[test]
fn every_command_says_what_is_wrong_with_an_address_and_what_to_do() {
    let closed = ClosedPort::hold().expect("a free port");
    check_all(closed.address(), &[], &["nothing listens there", "hint: "]);
    let nginx = Nginx::start("location / { return 200 x; }");
    check_all(nginx.address, &[], &NOT_OURS);
    let older = answering(|line| match line {
        "GET / HTTP/1.1" => old("200 OK", OLD_LIST),
        _ => old("404 Not Found", "no such endpoint; there are:\n"),
    });
    check_all(older, &[], &["is older than this command", "hint: "]);
}

#[test]
fn command_waits_no_longer_for_an_answer_than_it_may() {
    // connections are accepted by the kernel, and nothing answers them
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let expected = [
        "caused by: what listens there has not answered within 50ms\n",
        "hint: is it the admin interface of a Weir?",
        "`--timeout TIME`",
    ];
    check_all(address, &["--timeout", "50ms"], &expected);
    // a word now and then is no answer
    let dripping = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = dripping.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in dripping.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                while stream.write_all(b"x").is_ok() {
                    std::thread::yield_now();
                }
            });
        }
    });
    check_all(address, &["--timeout", "50ms"], &["hint: "]);
}
