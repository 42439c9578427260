//! The client against our server.

use super::play::{Played, Script, host, on_a_worker, play, played};
use super::scripted::{Does, Scripted};
use crate::client::Icap;
use crate::server::{IcapServer, LineLog, ListenAddress, NamedModule, ServerSettings};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;
use weir_extend::{
    Answer, Call, Fields, Hook, ListenerMode, Module, ModuleKind, OptionValue, Options, RequestHead,
};

/// Content of `bytes` bytes in which any loss or repetition shows.
pub(super) fn text(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| b"abcdefghijklmnopqrstuvw"[(at * 7 + at / 23) % 23])
        .collect()
}

/// Lengths around the preview, a piece, and what is kept for 204.
const LENGTHS: [usize; 9] = [0, 1, 4095, 4096, 4097, 65_537, 262_144, 262_145, 1_000_000];

fn named(module: Arc<dyn Module>) -> NamedModule {
    NamedModule {
        name: "test".to_owned(),
        kind: "scripted".to_owned(),
        options: String::new(),
        hold_bytes: 256 * 1024,
        module,
    }
}

pub(super) fn serve(address: &ListenAddress, module: Arc<dyn Module>) -> IcapServer {
    let settings = ServerSettings {
        modules: vec![named(module)],
        connections_max: 64,
        workers: 2,
        log: Arc::new(|_| {}),
        access_log: LineLog::off(),
    };
    IcapServer::start(address, settings).expect("it starts")
}

fn anywhere() -> ListenAddress {
    "127.0.0.1:0".parse().expect("an address")
}

/// The client's side of a service at `address`, with further options.
pub(super) fn client(address: &ListenAddress, more: &[(&str, OptionValue)]) -> Arc<dyn Module> {
    let mut options = BTreeMap::new();
    let service = match address {
        ListenAddress::Tcp(address) => format!("icap://{address}/test"),
        ListenAddress::Unix(path) => {
            let path = path.to_string_lossy().into_owned();
            options.insert("socket".to_owned(), OptionValue::Text(path));
            "icap://localhost/test".to_owned()
        }
    };
    options.insert("service".to_owned(), OptionValue::Text(service));
    let more = more.iter().cloned();
    options.extend(more.map(|(name, value)| (name.to_owned(), value)));
    Icap.load(Options::new(options)).expect("it is loaded")
}

pub(super) fn pair(does: Does) -> (IcapServer, Arc<dyn Module>) {
    let server = serve(&anywhere(), Scripted::new(does));
    let client = client(server.address(), &[]);
    (server, client)
}

#[test]
fn message_that_is_left_alone_is_the_same_byte_for_byte() {
    let (_server, client) = pair(Does::Nothing);
    for bytes in LENGTHS {
        for script in [Script::response(&text(bytes)), Script::post(&text(bytes))] {
            for script in [script.clone(), script.without_length()] {
                let found = play(&client, &script);
                assert!(found.content() == script.content, "{bytes}");
                let start = match script.response {
                    Some(_) => "200",
                    None => "a.example/form",
                };
                assert_eq!(found.start(), start);
            }
        }
    }
}

#[test]
fn changed_content_and_head_come_back() {
    let (_server, client) = pair(Does::Upper);
    for bytes in LENGTHS {
        for script in [Script::response(&text(bytes)), Script::post(&text(bytes))] {
            for mut script in [script.clone(), script.without_length()] {
                script.piece = 1 + bytes / 7;
                let found = play(&client, &script);
                assert!(
                    found.content() == script.content.to_ascii_uppercase(),
                    "{bytes}"
                );
                assert_eq!(found.field("x-upper"), Some("yes"));
                if script.response.is_some() {
                    assert_eq!(found.field("etag"), Some("\"v1\""));
                    assert_eq!(found.field("content-length"), None);
                }
            }
        }
    }
}

#[test]
fn request_that_the_service_answers_is_answered() {
    let (_server, client) = pair(Does::Block);
    let found = play(&client, &Script::get("/block"));
    assert_eq!(found.start(), "responded 403");
    assert_eq!(found.content(), b"refused by the test");
    assert_eq!(found.field("x-refused"), Some("yes"));
    let found = play(&client, &Script::get("/other"));
    assert_eq!(found.start(), "a.example/other");
}

#[test]
fn response_that_the_service_replaces_has_its_status_and_content() {
    let (_server, client) = pair(Does::Block);
    for bytes in LENGTHS {
        let found = play(&client, &Script::response(&text(bytes)));
        assert_eq!(found.start(), "403");
        assert_eq!(found.content(), b"refused by the test", "{bytes}");
    }
}

#[test]
fn content_that_must_not_be_changed_can_be_refused_and_not_changed() {
    let (_server, block) = pair(Does::Block);
    let script = Script::response(&text(10_000)).with("Cache-Control", "no-transform");
    let found = play(&block, &script);
    assert_eq!(found.start(), "responded 403");
    assert_eq!(found.content(), b"refused by the test");

    let (_server, nothing) = pair(Does::Nothing);
    let found = play(&nothing, &script);
    assert!(found.content() == script.content);
    assert_eq!(found.field("etag"), Some("\"v1\""));

    let (server, _) = pair(Does::Upper);
    let pass = [("no_transform", OptionValue::Text("pass".to_owned()))];
    let found = play(&client(server.address(), &pass), &script);
    assert!(found.content() == script.content);
    assert_eq!(found.field("x-upper"), None);
}

/// Our server obeys, too, and changes the head alone: it sends back the content that it was sent.
#[test]
fn content_that_must_not_be_changed_passes_if_the_service_sends_back_the_same() {
    let (_server, upper) = pair(Does::Upper);
    for bytes in LENGTHS {
        let mut part = Script::response(&text(bytes));
        part.response.as_mut().expect("a response").0 = 206;
        for script in [
            Script::response(&text(bytes)).with("Cache-Control", "no-transform"),
            Script::post(&text(bytes)).with("Cache-Control", "no-transform"),
            part,
        ] {
            for mut script in [script.clone(), script.without_length()] {
                script.piece = 1 + bytes / 7;
                let found = play(&upper, &script);
                assert!(found.content() == script.content, "{bytes}");
                assert_eq!(found.field("x-upper"), Some("yes"));
                if script.response.is_some() {
                    assert_eq!(found.field("etag"), Some("\"v1\""));
                }
            }
        }
    }
}

#[test]
fn word_in_content_is_found_wherever_it_is_cut() {
    let (_server, client) = pair(Does::Scan);
    let mut content = text(3000);
    assert_eq!(play(&client, &Script::response(&content)).start(), "200");
    content[1500..1505].copy_from_slice(b"EICAR");
    for piece in [1, 7, 1501, 3000] {
        let mut script = Script::response(&content);
        script.piece = piece;
        let found = play(&client, &script);
        // the server refuses before a byte of an answer was sent, or cuts it
        assert!(
            matches!(&found, Played::Failed(_)) || found.start() == "403",
            "{found:?}"
        );
    }
}

#[test]
fn module_that_panics_on_the_server_fails_its_message_alone() {
    let (_server, client) = pair(Does::Panics);
    for _ in 0..2 {
        assert_eq!(play(&client, &Script::get("/")), Played::Failed(false));
    }
}

#[test]
fn response_without_content_is_adapted_by_its_head() {
    let (_server, client) = pair(Does::Upper);
    let mut head = Script::response(b"");
    head.method = "HEAD";
    let mut not_modified = Script::response(b"");
    not_modified.response.as_mut().expect("a response").0 = 304;
    for script in [head, not_modified] {
        let found = play(&client, &script);
        assert_eq!(found.field("x-upper"), Some("yes"));
        assert!(found.content().is_empty());
    }
}

#[test]
fn state_of_the_module_is_that_of_the_service() {
    let module = Scripted::new(Does::Nothing);
    let server = serve(&anywhere(), Arc::clone(&module) as Arc<dyn Module>);
    let client = client(server.address(), &[]);
    assert_eq!(client.state(), "");
    play(&client, &Script::get("/"));
    let first = client.state();
    assert_eq!(first.len(), 32);
    *module.state.lock().unwrap() = "another".to_owned();
    play(&client, &Script::get("/"));
    let second = client.state();
    assert_ne!(first, second);
    // OPTIONS are requested anew, by the clock of the proxy
    on_a_worker(async {
        let work = client.tick(&host());
        work.expect("the state is another").await;
        assert!(client.tick(&host()).is_none());
    });
    assert_eq!(client.state(), second);
}

#[test]
fn responses_are_a_variant_of_each_client_where_the_service_knows_it() {
    let server = serve(&anywhere(), Scripted::new(Does::Nothing));
    let variant = |more: &[(&str, OptionValue)], client_address: &str| {
        let more = more.iter().cloned();
        let options: Vec<_> = more
            .chain([("request", OptionValue::Flag(false))])
            .collect();
        let module = client(server.address(), &options);
        let mut head = RequestHead::new("GET", "a.example", "/", Fields::default());
        let call = Call {
            client: client_address.parse().expect("an address"),
            mode: ListenerMode::Forward,
            now_ms: 0,
        };
        if module.hooks().contains(Hook::RequestReceived) {
            let answer = module.begin(&host()).request_received(&mut head, &call);
            assert_eq!(answer, Answer::Continue);
        }
        head.take_variant()
    };
    let sends = [("send_client", OptionValue::Flag(true))];
    assert_eq!(variant(&[], "192.0.2.1"), None);
    assert_eq!(variant(&sends, "192.0.2.1").as_deref(), Some("192.0.2.1"));
    assert_eq!(
        variant(&sends, "2001:db8::1").as_deref(),
        Some("2001-db8--1")
    );
}

#[test]
fn socket_in_the_file_system_serves_as_tcp_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = ListenAddress::Unix(folder.path().join("icap.sock"));
    let server = serve(&address, Scripted::new(Does::Upper));
    let found = play(&client(server.address(), &[]), &Script::response(b"text"));
    assert_eq!(found.content(), b"TEXT");
    server.stop();
    let ListenAddress::Unix(path) = &address else {
        unreachable!("it is one")
    };
    assert!(!path.exists());
}

#[test]
fn message_begins_with_the_modules_in_force_and_ends_with_them() {
    let server = serve(&anywhere(), Scripted::new(Does::Upper));
    let client = client(server.address(), &[]);
    let script = Script::response(&text(100_000));
    on_a_worker(async {
        let mut tasks = JoinSet::new();
        for turn in 0..40 {
            let (client, script) = (Arc::clone(&client), script.clone());
            tasks.spawn_local(async move {
                let found = played(&client, &script).await;
                let content = found.content();
                assert!(
                    content == script.content || content == script.content.to_ascii_uppercase()
                );
            });
            let does = if turn % 2 == 0 {
                Does::Nothing
            } else {
                Does::Upper
            };
            server.replace_modules(vec![named(Scripted::new(does))]);
            tokio::task::yield_now().await;
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("it ends");
        }
    });
    server.replace_modules(vec![named(Scripted::new(Does::Nothing))]);
    assert!(play(&client, &script).content() == script.content);
    server.replace_modules(Vec::new());
    assert_eq!(play(&client, &script), Played::Failed(false));
}

/// Two users at once, whose content must not meet.
#[test]
fn messages_at_the_same_time_get_their_own_content() {
    let (server, _) = pair(Does::Upper);
    let one = [("connections_max", OptionValue::Number(3))];
    let client = client(server.address(), &one);
    on_a_worker(async {
        let mut tasks = JoinSet::new();
        for user in 0..40_u8 {
            let client = Arc::clone(&client);
            tasks.spawn_local(async move {
                let content = vec![b'a' + user % 20; 1000 * usize::from(user)];
                let script = match user % 2 {
                    0 => Script::response(&content),
                    _ => Script::post(&content),
                };
                let found = played(&client, &script).await;
                assert!(found.content() == content.to_ascii_uppercase());
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("it ends");
        }
    });
}

#[test]
fn server_that_is_away_fails_messages_and_serves_again_when_it_is_back() {
    let module = Scripted::new(Does::Upper);
    let server = serve(&anywhere(), Arc::clone(&module) as Arc<dyn Module>);
    let address = server.address().clone();
    let client = client(&address, &[]);
    let script = Script::response(b"text");
    assert_eq!(play(&client, &script).content(), b"TEXT");
    server.stop();
    assert_eq!(play(&client, &script), Played::Failed(false));
    let server = serve(&address, Arc::clone(&module) as Arc<dyn Module>);
    assert_eq!(play(&client, &script).content(), b"TEXT");
    assert_eq!(module.begun.load(Ordering::Relaxed), 2);
    server.stop();
}

/// The connection that the client keeps is closed by then: its request is repeated on another one.
#[test]
fn server_that_restarts_between_messages_is_not_noticed() {
    let server = serve(&anywhere(), Scripted::new(Does::Upper));
    let address = server.address().clone();
    let client = client(&address, &[]);
    for _ in 0..3 {
        let script = Script::response(&text(100_000));
        assert!(play(&client, &script).content() == script.content.to_ascii_uppercase());
        // a stopped server closes connections; the port is taken again at once
    }
    server.stop();
    let _server = serve(&address, Scripted::new(Does::Upper));
    let script = Script::response(&text(100_000));
    assert!(play(&client, &script).content() == script.content.to_ascii_uppercase());
}
