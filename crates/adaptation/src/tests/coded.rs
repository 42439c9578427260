//! Content that the origin has coded, behind the server, for modules that want it plain.

use super::pair::{pair, text};
use super::play::{Played, Script, play};
use super::scripted::Does;
use std::io::Write as _;

/// What is sent, and the value of Content-Encoding.
type Coded = (&'static str, Vec<u8>);

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("memory is enough");
    encoder.finish().expect("memory is enough")
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("memory is enough");
    encoder.finish().expect("memory is enough")
}

fn brotli(content: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 3, 18);
    encoder.write_all(content).expect("memory is enough");
    encoder.into_inner()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).expect("memory is enough")
}

/// `content` in each coding, and in two of them.
fn codings_of(content: &[u8]) -> [Coded; 5] {
    [
        ("gzip", gzip(content)),
        ("deflate", zlib(content)),
        ("br", brotli(content)),
        ("zstd", zstd(content)),
        ("gzip, br", brotli(&gzip(content))),
    ]
}

fn script(coding: &str, coded: &[u8], piece: usize) -> Script {
    let mut script = Script::response(coded).with("Content-Encoding", coding);
    script.piece = piece;
    script
}

#[test]
fn module_that_wants_plain_content_gets_what_the_origin_coded() {
    for does in [Does::PlainUpper, Does::LatePlainUpper, Does::WholeUpper] {
        let (_server, client) = pair(does);
        for bytes in [0, 1, 4096, 65_537, 1_000_000] {
            let content = text(bytes);
            for (coding, coded) in codings_of(&content) {
                for piece in [1 + coded.len() / 7, 10_000] {
                    let script = script(coding, &coded, piece);
                    for script in [script.clone(), script.without_length()] {
                        let found = play(&client, &script);
                        let is_upper = found.content() == content.to_ascii_uppercase();
                        assert!(is_upper, "{does:?}, {coding}, {bytes}");
                        assert_eq!(found.field("content-encoding"), None);
                        let is_whole = does == Does::WholeUpper;
                        assert_eq!(found.field("x-whole").is_some(), is_whole);
                    }
                }
            }
        }
    }
}

#[test]
fn module_that_takes_content_as_it_is_gets_it_coded() {
    let (_server, client) = pair(Does::Nothing);
    for (coding, coded) in codings_of(&text(100_000)) {
        let found = play(&client, &script(coding, &coded, 10_000));
        assert!(found.content() == coded);
        assert_eq!(found.field("content-encoding"), Some(coding));
    }
}

#[test]
fn content_that_is_damaged_cut_or_grows_too_much_fails() {
    for does in [Does::PlainUpper, Does::WholeUpper] {
        let (_server, client) = pair(does);
        for (coding, mut coded) in codings_of(&text(100_000)) {
            coded.truncate(coded.len() - 1);
            let found = play(&client, &script(coding, &coded, 10_000));
            assert!(matches!(found, Played::Failed(_)), "{coding} was cut");
            let found = play(&client, &script(coding, b"not coded so", 10_000));
            assert!(matches!(found, Played::Failed(_)), "{coding} is none");
        }
        for (coding, bomb) in codings_of(&vec![0; 30_000_000]) {
            let found = play(&client, &script(coding, &bomb, 10_000));
            assert!(matches!(found, Played::Failed(_)), "{coding} grows");
        }
        // the server serves on
        let found = play(&client, &script("gzip", &gzip(b"text"), 10));
        assert_eq!(found.content(), b"TEXT");
    }
}

#[test]
fn content_with_a_coding_that_is_not_known_stays_as_it_is() {
    for does in [Does::PlainUpper, Does::WholeUpper] {
        let (_server, client) = pair(does);
        let found = play(&client, &script("compress", b"as it is", 10));
        assert_eq!(found.content(), b"as it is");
        assert_eq!(found.field("content-encoding"), Some("compress"));
    }
}
