//! Names.

use super::{Client, LOCATIONS, names, only, record, text, traces};
use crate::support::Nginx;
use std::path::Path;
use weir_trace::{Anonymisation, Anonymiser, Reader, Row};

/// Records one request with everything in it that has a name.
fn one(folder: &Path, nginx: &Nginx, more: &[&str]) -> Row {
    let mut weir = record(folder, more);
    let fields =
        "Cookie: secret-cookie\r\nUser-Agent: secret-agent\r\nAuthorization: Basic secret=\r\n";
    let mut client = Client::new(&weir, nginx.address);
    client
        .get("/hour/secret-path?secret-query", fields)
        .expect(200);
    assert_eq!(weir.stop().code(), Some(0));
    only(folder).remove(0)
}

fn origin() -> Nginx {
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("secret-path", b"secret content");
    nginx
}

#[test]
fn keyed_trace_file_contains_no_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nginx = origin();
    let row = one(folder.path(), &nginx, &[]);
    assert_eq!(row.target_text, None);
    assert_eq!((row.has_query, row.has_cookie), (Some(true), Some(true)));
    let [path] = &traces(folder.path())[..] else {
        panic!("{:?}", names(folder.path()));
    };
    let reader = Reader::open(path).expect("a trace");
    assert_eq!(reader.meta().anonymisation, Some(Anonymisation::Keyed));
    assert_eq!(reader.meta().source, "weir serve --record");
    let bytes = std::fs::read(path).expect("a file");
    let port = format!(":{}", nginx.address.port());
    for name in ["secret", "127.0.0", "hour", &port] {
        let is_in = bytes
            .windows(name.len())
            .any(|window| window == name.as_bytes());
        assert!(!is_in, "`{name}` is in the file");
    }
}

#[test]
fn key_file_gives_the_same_hashes_in_each_run_and_a_random_key_others() {
    let nginx = origin();
    let folders: [_; 4] = std::array::from_fn(|_| tempfile::tempdir().expect("a folder"));
    let key = folders[0].path().join("key");
    let kept = ["--record-key-file", text(&key)];
    let rows = [
        one(folders[0].path(), &nginx, &kept),
        one(folders[1].path(), &nginx, &kept),
        one(folders[2].path(), &nginx, &[]),
        one(folders[3].path(), &nginx, &["--record-names"]),
    ];
    let url = nginx.url("/hour/secret-path?secret-query");
    let hide = Anonymiser::from_key_file(&key).expect("it was made");
    for row in &rows[..2] {
        assert_eq!(row.client, Some(hide.client("127.0.0.1")));
        assert_eq!(row.target, hide.target(&url));
    }
    assert_ne!(rows[2].target, rows[0].target);
    assert_ne!(rows[2].client, rows[0].client);
    assert_eq!(rows[3].target_text, Some(url));
    // a second run's connections are not the first one's
    assert_ne!(rows[0].connection, rows[1].connection);
}
