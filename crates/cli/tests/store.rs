//! `weir store` against a store that is written here by hand: what is live is listed and exported,
//! what is damaged is named.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use weir_disk::format::{
    BodyId, NewExtent, NewRecord, SUPERBLOCK_FILE, SegmentHeader, StoreId, Superblock, Volume,
    encode_embedded, segment_file_name,
};
use weir_policy::{Digest, Secret};
use weir_proxy::config::Mode;
use weir_proxy::on_disk::key_of_url;

const VOLUME: Volume = Volume {
    store: StoreId([7; 16]),
    directory: 0,
};

const SECRET: Secret = Secret([9; 16]);

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";

/// Meta of a response with this content: see `weir_store::record`.
fn meta(complete_length: u64) -> Vec<u8> {
    let has_complete_length: u16 = 1 << 7;
    let mut meta = vec![1, 1];
    meta.extend(has_complete_length.to_le_bytes());
    meta.extend(200_u16.to_le_bytes());
    meta.extend(1_i64.to_le_bytes());
    meta.extend(60_u32.to_le_bytes());
    meta.extend(0_u32.to_le_bytes());
    meta.extend(1_i64.to_le_bytes());
    meta.extend(complete_length.to_le_bytes());
    meta.extend(0_u64.to_le_bytes());
    meta.extend(
        u32::try_from(HEAD.len())
            .expect("a short head")
            .to_le_bytes(),
    );
    meta.extend(HEAD.as_bytes());
    meta
}

fn key(url: &str) -> Digest {
    key_of_url(Mode::Forward, url, &SECRET).expect("what is made here can be written")
}

/// Responses as (URL, generation, content, complete length).
fn store(responses: &[(&str, u64, &str, u64)]) -> TempDir {
    let directory = tempfile::tempdir().expect("what is made here can be written");
    let superblock = Superblock {
        volume: VOLUME,
        secret: SECRET,
        made_s: 1,
        segment_bytes: 1 << 20,
    };
    let header = SegmentHeader {
        volume: VOLUME,
        number: 0,
        begun_s: 1,
        generation: 0,
        purged: 0,
        capacity: 1 << 20,
    };
    let mut segment = header.encode();
    for (url, generation, content, complete_length) in responses {
        let meta = meta(*complete_length);
        let new = NewRecord {
            key: key(url),
            generation: *generation,
            purged: 0,
            meta: &meta,
        };
        let content = [content.as_bytes()];
        let extent = NewExtent {
            from: 0,
            content: &content,
        };
        let (seal, at) = (VOLUME.segment(0), segment.len() as u64);
        let record = encode_embedded(seal, at, &new, BodyId(*generation), &[extent]);
        segment.extend(record.expect("what is made here can be written"));
    }
    std::fs::write(directory.path().join(SUPERBLOCK_FILE), superblock.encode())
        .expect("what is made here can be written");
    std::fs::write(directory.path().join(segment_file_name(0)), segment)
        .expect("what is made here can be written");
    directory
}

fn example() -> TempDir {
    store(&[
        ("http://a.example/", 1, "old", 3),
        ("http://a.example/", 2, "hello", 5),
        ("http://b.example/part", 3, "half", 8),
    ])
}

/// What `weir store ... --dir DIR` says, with DIR for the directory.
fn said(directory: &Path, arguments: &str) -> String {
    let path = directory.display().to_string();
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("store")
        .args(arguments)
        .args(["--dir", &path])
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary was built with this test");
    let code = output.status.code().expect("not killed by a signal");
    let said = [output.stdout, b"--- stderr\n".to_vec(), output.stderr].concat();
    let said = String::from_utf8_lossy(&said).replace(&path, "DIR");
    format!("exit {code}\n--- stdout\n{said}")
}

#[test]
fn list_shows_live_responses_and_with_all_superseded_ones_too() {
    let directory = example();
    let found = said(directory.path(), "ls");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 5, "{found}");
    let first = key("http://a.example/");
    assert!(lines[2].starts_with(&format!("{:016x}{:016x}           2  ", first.0, first.1)));
    assert!(
        lines[2].ends_with("           5  200  text/plain"),
        "{found}"
    );
    let all = said(directory.path(), "ls --all");
    assert!(
        all.lines()
            .any(|line| line.ends_with("3  200  text/plain  superseded")),
        "{all}"
    );
}

#[test]
fn verify_reports_corrupt_content_by_file_and_offset() {
    let directory = example();
    let found = said(directory.path(), "verify");
    assert!(found.starts_with("exit 0\n"), "{found}");
    assert!(
        found.contains("DIR: 1 segments, 3 records (2 live), 0 extents, "),
        "{found}"
    );
    let path = directory.path().join(segment_file_name(0));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|five| five == b"hello").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let found = said(directory.path(), "verify");
    assert!(found.starts_with("exit 1\n"), "{found}");
    let line =
        format!("DIR/0000000000000000.seg offset {at}: content: the checksum does not fit\n");
    assert!(found.contains(&line), "{found}");
    let found = said(directory.path(), "export http://a.example/");
    assert!(found.starts_with("exit 1\n"), "{found}");
    assert!(!found.contains("iello"), "{found}");
}

#[test]
fn export_writes_the_stored_response_unchanged() {
    let directory = example();
    let response = format!("{HEAD}\r\nhello");
    let expected = format!("exit 0\n--- stdout\n{response}--- stderr\n");
    assert_eq!(said(directory.path(), "export http://A.example"), expected);
    let digest = key("http://a.example/");
    let by_key = format!("export --key {:016x}{:016x}", digest.0, digest.1);
    assert_eq!(said(directory.path(), &by_key), expected);
    let silent = "exit 0\n--- stdout\n--- stderr\n";
    let to_file = "export http://a.example/ --out response";
    assert_eq!(said(directory.path(), to_file), silent);
    let file = std::fs::read(directory.path().join("response")).unwrap();
    assert_eq!(file, response.as_bytes());
}

#[test]
fn export_of_a_partial_or_absent_response_is_refused() {
    let directory = example();
    let refused = |arguments: &str, code: u8, text: &str| {
        let found = said(directory.path(), arguments);
        assert!(
            found.starts_with(&format!("exit {code}\n--- stdout\n--- stderr\n")),
            "{found}"
        );
        assert!(found.contains(text), "{found}");
    };
    refused(
        "export http://b.example/part",
        1,
        "only a part of it is stored, 4 of 8 bytes",
    );
    refused("export http://c.example/", 1, "it is not stored");
    refused(
        "export http://a.example/ --mode gateway",
        1,
        "it is not stored",
    );
    refused("export a.example", 2, "it has no scheme and host");
}

#[test]
fn stats_count_live_and_superseded_records_purges_and_problems() {
    let directory = example();
    let found = said(directory.path(), "stats");
    for line in [
        "  live         2 records, ",
        "  superseded   1 records, ",
        "  purges       0 in the journal",
        "  problems     0 ",
    ] {
        assert!(found.contains(line), "{found}");
    }
}
