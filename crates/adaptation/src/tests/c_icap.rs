//! The client against c-icap and its echo service.

use super::c_icap_process::{CIcap, free_address};
use super::play::{Played, Script, play};
use crate::client::Icap;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_extend::{Module, ModuleKind, OptionValue, Options};

fn client(address: SocketAddr) -> Arc<dyn Module> {
    let service = format!("icap://{address}/echo");
    let options = BTreeMap::from([("service".to_owned(), OptionValue::Text(service))]);
    Icap.load(Options::new(options)).expect("it is loaded")
}

#[test]
fn c_icap_echoes_what_it_gets_by_204_and_by_200() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let _server = CIcap::start(folder.path(), address);
    let client = client(address);
    for bytes in [0, 1, 1023, 1024, 1025, 70_000, 262_145, 1_000_000] {
        let content: Vec<u8> = (0..bytes)
            .map(|at: usize| b'a' + u8::try_from(at % 23).unwrap_or(0))
            .collect();
        for script in [Script::response(&content), Script::post(&content)] {
            for script in [script.clone(), script.without_length()] {
                let found = play(&client, &script);
                assert!(found.content() == content, "{bytes}");
            }
        }
    }
    assert_eq!(client.state(), "CI0001-XXXXXXXXX");
    assert!(client.notes()[0].contains("Echo demo service"));
}

#[test]
fn c_icap_that_is_killed_and_started_again_serves_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let server = CIcap::start(folder.path(), address);
    let client = client(address);
    let script = Script::response(b"some content");
    assert_eq!(play(&client, &script).content(), b"some content");
    drop(server);
    for _ in 0..3 {
        assert_eq!(play(&client, &script), Played::Failed(false));
    }
    let _server = CIcap::start(folder.path(), address);
    assert_eq!(play(&client, &script).content(), b"some content");
}
