//! Where what is spent is kept.

use super::{ask, linked, page, quota, spend, spent};
use crate::support::Setup;
use tempfile::TempDir;

#[test]
fn quota_is_kept_over_restart_and_reload() {
    let folder = TempDir::new().unwrap();
    let change = linked(&quota(folder.path(), ""));
    let setup = Setup::gateway_with(&change);
    setup.fetch("/a", &page("Cache-Control: no-store\r\n", 100_000));
    let before = spent(&setup);
    assert!((100_000..110_000).contains(&before), "{before}");
    setup
        .proxy
        .reload(|config| config.links[0].rate = Some("10MiB/s".parse().unwrap()));
    assert_eq!(spent(&setup), before);
    drop(setup);
    let setup = Setup::gateway_with(change);
    assert_eq!(spent(&setup), before);
    spend(&setup);
    assert_eq!(ask(&setup, "/other").status(), 429);
}

#[test]
fn quota_without_a_place_to_keep_it_is_refused_at_the_start() {
    let refused = std::panic::catch_unwind(|| {
        Setup::gateway_with(linked(
            r#"[{"name": "a", "quota": "1MiB", "period": "day"}]"#,
        ))
    });
    let why = refused.err().and_then(|why| why.downcast::<String>().ok());
    let why = why.expect("it is refused");
    for part in [
        "no store on disk, and no directory of a service",
        "name a file with `link[0].state_file`",
    ] {
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn state_file_that_is_cut_to_nothing_grants_no_quota_anew() {
    let folder = TempDir::new().unwrap();
    let text = quota(folder.path(), "");
    let line = "what the link `a` has spent cannot be read: it is taken to be as much of the quota as has passed of the period";
    let is_told = |setup: &Setup| setup.proxy.said(line) == 1;
    // one that the proxy has created is written before anything is fetched
    for _ in 0..2 {
        let setup = Setup::gateway_with(linked(&text));
        assert!(!is_told(&setup));
        let length = std::fs::metadata(folder.path().join("link")).unwrap().len();
        assert!(length > 0);
    }
    std::fs::write(folder.path().join("link"), "").unwrap();
    let setup = Setup::gateway_with(linked(&text));
    assert!(is_told(&setup));
}

#[test]
fn file_of_another_link_is_left_as_it_is_and_one_in_use_is_said_to_be() {
    let folder = TempDir::new().unwrap();
    let text = quota(folder.path(), "");
    let setup = Setup::gateway_with(linked(&text));
    setup.fetch("/a", &page("", 1000));
    let other = text.replace("\"name\": \"a\"", "\"name\": \"b\"");
    let refused = setup.proxy.try_reload(linked(&other)).unwrap_err();
    for part in [
        "another process uses it, or another link of this one",
        "name another file with `link[0].state_file`",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    drop(setup);
    let before = std::fs::read(folder.path().join("link")).unwrap();
    let refused = std::panic::catch_unwind(|| Setup::gateway_with(linked(&other)));
    let why = refused.err().and_then(|why| why.downcast::<String>().ok());
    let why = why.expect("it is refused");
    assert!(why.contains("a link with another name"), "{why}");
    assert_eq!(std::fs::read(folder.path().join("link")).unwrap(), before);
}
