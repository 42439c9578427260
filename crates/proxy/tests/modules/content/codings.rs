//! Content codings that are undone for a module that wants plain content.

use crate::support::{Setup, deciding, scripted};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::Write as _;
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::Config;

/// Content that takes many reads, also when it is coded.
fn long() -> Vec<u8> {
    let mut state = 1_u32;
    let letters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + u8::try_from((state >> 16) % 26).expect("a letter")
    });
    letters.take(500_000).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory is enough");
    encoder.finish().expect("memory is enough")
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory is enough");
    encoder.finish().expect("memory is enough")
}

/// A fresh response with this content, coded so.
fn response(codings: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Encoding: {codings}\r\n\
         ETag: \"v1\"\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    [head.as_bytes(), content].concat()
}

fn with(hook: &str) -> impl Fn(&mut Config) {
    let module = scripted("m0", &[(hook, "content plain")]);
    move |config| config.modules = vec![module.clone()]
}

const HOOKS: [&str; 2] = ["response-received", "response-sent"];

#[test]
fn module_gets_plain_content_and_the_client_what_it_makes_of_that() {
    for content in [b"short".to_vec(), long()] {
        let zstd = zstd::encode_all(&content[..], 1).expect("memory is enough");
        let twice = gzip(&deflate(&content));
        for (codings, coded) in [
            ("gzip", gzip(&content)),
            ("identity, X-GZip", gzip(&content)),
            ("zstd", zstd),
            ("deflate, gzip", twice),
        ] {
            for hook in HOOKS {
                Setup::each_with(with(hook), |setup| {
                    let mut client = setup.proxy.client();
                    client.send(setup.get("/"));
                    let mut hop = setup.origin.accept();
                    hop.read_head();
                    let sent = hop.sending(response(codings, &coded));
                    let plain = client.read_response();
                    assert_eq!(plain.head.field("content-encoding"), None, "{codings}");
                    let tag = plain.head.field("etag").expect("a tag");
                    assert!(tag.starts_with("W/\"v1"), "{tag}");
                    assert!(plain.body == content.to_ascii_uppercase(), "{codings}");
                    drop(sent);
                    if hook == "response-sent" {
                        // what is stored is coded as it came
                        setup.proxy.reload(|config| config.modules.clear());
                        let hit = client.ask(setup.get("/"));
                        assert!(hit.is_hit() && hit.body == coded);
                        assert_eq!(hit.head.field("content-encoding"), Some(codings));
                    }
                });
            }
        }
    }
}

#[test]
fn content_with_an_unknown_coding_passes_as_it_is() {
    for hook in HOOKS {
        Setup::each_with(with(hook), |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            hop.send(response("aes128gcm", b"secret"));
            let response = client.read_response();
            assert_eq!(response.head.field("content-encoding"), Some("aes128gcm"));
            assert_eq!(response.text(), "secret");
        });
    }
}

#[test]
fn damaged_content_is_refused_or_cut_and_not_the_fault_of_its_module() {
    for content in [b"short".to_vec(), long()] {
        let mut damaged = gzip(&content);
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        let cut = gzip(&content)[..last].to_vec();
        for coded in [damaged, cut, b"plain".to_vec()] {
            for hook in HOOKS {
                Setup::each_with(with(hook), |setup| {
                    let mut client = setup.proxy.client();
                    client.send(setup.head("GET", "/", "1.1", "Connection: close\r\n"));
                    let mut hop = setup.origin.accept();
                    hop.read_head();
                    let sent = hop.sending(response("gzip", &coded));
                    let (bytes, _) = client.into_peer().read_to_end();
                    let is_refused = bytes.starts_with(b"HTTP/1.1 502 ");
                    assert!(
                        is_refused || !bytes.ends_with(b"0\r\n\r\n"),
                        "it looks whole"
                    );
                    drop(sent);
                    let gave_up = Metric::ModuleFailures(ModuleFault::GaveUp);
                    assert_eq!(setup.proxy.count(gave_up), 1);
                });
            }
        }
    }
}

/// What is sent, in the head and behind it, is decoded from its beginning on.
#[test]
fn module_that_has_touched_no_content_may_still_want_it_plain() {
    let long = "The quick brown fox jumps over the lazy dog.\n".repeat(10_000);
    for (text, what) in [("short", "plain"), (&long, "plain"), (&long, "plain-late")] {
        let module = deciding("m", "response-received", 10, what);
        let change = move |config: &mut Config| config.modules = vec![module.clone()];
        Setup::each_with(change, |setup| {
            let coded = gzip(text.as_bytes());
            let mut sent = format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                coded.len()
            )
            .into_bytes();
            sent.extend(coded);
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let (_hop, _) = setup.origin.answer(sent);
            let response = client.read_response();
            if what == "plain-late" {
                // it has taken some that is coded
                assert_eq!(response.status(), 502);
            } else {
                assert_eq!(response.head.field("content-encoding"), None);
                assert!(response.text() == text.to_uppercase(), "{what}");
            }
        });
    }
}
