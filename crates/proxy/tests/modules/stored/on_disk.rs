//! Responses that modules have changed, on disk: found after a restart by the same configuration
//! alone.

use super::{TAGGED, content, with};
use crate::support::{Answering, Running, ScriptedOrigin};
use std::path::Path;
use std::sync::Arc;
use weir_disk::files::simulated::{Fault, Plan, SimulatedFiles};
use weir_disk::files::{Files, SystemFiles};
use weir_measure::Metric;
use weir_proxy::config::{ByteSize, Config, Directory};

fn origin() -> Answering {
    ScriptedOrigin::new().answering(|head, _| {
        let path = head.start_line().split(' ').nth(1).expect("a target");
        let content = content(path);
        let length = content.len();
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=6000\r\nETag: \"v1\"\r\n\
             Content-Length: {length}\r\n\r\n{content}"
        )
        .into()
    })
}

/// A process with the store in `folder`.
fn start(origin: &Answering, folder: &Path, change: impl Fn(&mut Config)) -> Running {
    start_on(
        &(Arc::new(SystemFiles) as Arc<dyn Files>),
        origin,
        folder,
        change,
    )
}

/// The same on a machine with these files.
fn start_on(
    files: &Arc<dyn Files>,
    origin: &Answering,
    folder: &Path,
    change: impl Fn(&mut Config),
) -> Running {
    let directory = Directory {
        path: folder.join("store"),
        size: Some(ByteSize::from_bytes(64 << 20)),
    };
    let running = Running::gateway_on(origin.address(), files, 0, |config| {
        config.disk.enabled = true;
        config.disk.directories = vec![directory];
        change(config);
    });
    let running = running.expect("a proxy");
    running.wait_for(Metric::DiskLoading, 0);
    running
}

fn stop(proxy: Running) {
    assert!(proxy.stop().join().expect("no panic"));
}

fn ask(proxy: &Running, path: &str, tag: &str) -> (bool, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nX-Tag: {tag}\r\n\r\n");
    let response = proxy.client().ask(request);
    (response.is_hit(), response.text())
}

#[test]
fn changed_response_is_found_after_a_restart_by_its_own_configuration_and_tag() {
    for path in ["/short", "/long"] {
        let (origin, folder) = (origin(), tempfile::tempdir().expect("a folder"));
        let upper = with(&[("response-received", "content upper")]);
        let tagged = |tag: &str| format!("[{tag}]{}", content(path));
        let proxy = start(&origin, folder.path(), with(&TAGGED));
        assert!(ask(&proxy, path, "a") == (false, tagged("a")));
        stop(proxy);
        let proxy = start(&origin, folder.path(), &upper);
        assert!(ask(&proxy, path, "a") == (false, content(path).to_uppercase()));
        stop(proxy);
        let proxy = start(&origin, folder.path(), |_| {});
        assert!(ask(&proxy, path, "a") == (false, content(path)));
        stop(proxy);
        // that without modules has taken the place of the others
        let proxy = start(&origin, folder.path(), with(&TAGGED));
        assert!(ask(&proxy, path, "a") == (false, tagged("a")));
        stop(proxy);
        let proxy = start(&origin, folder.path(), with(&TAGGED));
        assert!(ask(&proxy, path, "a") == (true, tagged("a")));
        assert!(ask(&proxy, path, "b") == (false, tagged("b")));
    }
}

#[test]
fn purged_response_of_a_former_configuration_does_not_come_back_with_it() {
    for path in ["/short", "/long"] {
        let (origin, folder) = (origin(), tempfile::tempdir().expect("a folder"));
        let proxy = start(&origin, folder.path(), with(&TAGGED));
        for tag in ["a", "b"] {
            assert!(!ask(&proxy, path, tag).0);
        }
        stop(proxy);
        let upper = with(&[("response-received", "content upper")]);
        let proxy = start(&origin, folder.path(), upper);
        proxy.purge(&format!("http://a.example{path}"));
        assert!(!ask(&proxy, path, "a").0);
        stop(proxy);
        let proxy = start(&origin, folder.path(), with(&TAGGED));
        for tag in ["a", "b"] {
            assert!(!ask(&proxy, path, tag).0, "{tag}");
        }
    }
}

#[test]
fn changed_responses_are_whole_while_the_disk_is_full() {
    let both = [
        ("response-received", "content upper"),
        ("response-sent", "content twice"),
    ];
    for actions in [&both[..1], &both[1..], &both] {
        let (origin, machine) = (origin(), SimulatedFiles::new(1));
        let files: Arc<dyn Files> = Arc::new(machine.clone());
        let proxy = start_on(&files, &origin, Path::new("/"), with(actions));
        machine.plan(Plan {
            nth: Some((0, Fault::NoSpace)),
            lasting: true,
            ..Plan::default()
        });
        for path in ["/short", "/long"] {
            let mut expected = content(path);
            if actions.contains(&both[0]) {
                expected = expected.to_uppercase();
            }
            if actions.contains(&both[1]) {
                expected = expected.chars().flat_map(|one| [one; 2]).collect();
            }
            // from the next hop, and from memory
            for _ in 0..3 {
                assert!(ask(&proxy, path, "a").1 == expected, "{path} {actions:?}");
            }
        }
        proxy.wait_for(Metric::RequestsInFlight, 0);
        proxy.wait_for(Metric::FetchesUnderWay, 0);
        proxy.wait_for(Metric::DiskQueuedBytes, 0);
        assert!(proxy.count(Metric::DiskErrors) > 0);
        machine.plan(Plan::default());
        stop(proxy);
    }
}
