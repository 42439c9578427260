//! A new config is put in force whole, while requests go on; a bad one is refused whole.

use crate::support::{ClientsEnd, Config, Nginx, RawClient, Signal, Weir};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use xtask::ports;

fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], ports::take().expect("a port")))
}

/// Puts `config` with one more listener in force, told by `tell`; the listener's address.
fn add_listener(weir: &mut Weir, config: &Config, tell: fn(&mut Weir) -> bool) -> SocketAddr {
    let address = free_address();
    let more = config.clone().listener(&address.to_string(), "forward");
    weir.rewrite(&more.text());
    assert!(tell(weir), "{}", weir.said());
    address
}

fn by_post(weir: &mut Weir) -> bool {
    let status = weir.ask("POST", "/reload").status();
    // its line must not be taken for that of a signal
    assert_eq!(weir.wait_for("config").contains("reloaded"), status == 200);
    status == 200
}

fn by_signal(weir: &mut Weir) -> bool {
    weir.signal(Signal::HangUp);
    // one of the two comes
    weir.wait_for("config").contains("reloaded")
}

#[test]
fn reload_opens_and_closes_listeners_without_failing_a_request() {
    let nginx =
        Nginx::start("location /id { add_header Cache-Control max-age=3600; return 200 id; }");
    let config = Config::forward();
    let mut weir = Weir::serve(&config);
    let (done, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (address, urls) = (
        weir.address(),
        ["/id", "/connection"].map(|path| nginx.url(path)),
    );
    std::thread::scope(|scope| {
        let _end = ClientsEnd::new(&done);
        // on one connection, and on a new one each time
        for keeps in [true, false] {
            let (done, count, urls) = (&done, &count, &urls);
            scope.spawn(move || {
                let mut client = RawClient::connect(address);
                while !done.load(Ordering::Relaxed) {
                    if !keeps {
                        client = RawClient::connect(address);
                    }
                    for url in urls {
                        client.get(url).expect(200);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for tell in [by_post, by_signal] {
            let seen = count.load(Ordering::Relaxed);
            let new = add_listener(&mut weir, &config, tell);
            RawClient::connect(new).get(&urls[0]).expect(200);
            weir.rewrite(&config.text());
            assert!(tell(&mut weir));
            wait_until_refused(new);
            weir.until("going on", |_| count.load(Ordering::Relaxed) > seen + 10);
        }
    });
    let metrics = weir.metrics();
    assert!(metrics.count("weir_reloads_total{outcome=\"ok\"}") >= 4);
    assert_eq!(metrics.count("weir_panics_total"), 0);
}

#[test]
fn listener_of_one_address_is_opened_to_all_and_closed_again_by_a_reload() {
    let nginx = Nginx::start("");
    let config = Config::forward();
    let mut weir = Weir::serve(&config);
    let address = add_listener(&mut weir, &config, by_post);
    let other = SocketAddr::from(([127, 0, 0, 2], address.port()));
    assert!(RawClient::try_connect(other).is_err());
    let url = nginx.url("/connection");
    for ip in ["0.0.0.0", "127.0.0.1"] {
        let place = format!("{ip}:{}", address.port());
        weir.rewrite(&config.clone().listener(&place, "forward").text());
        assert!(by_post(&mut weir), "{}", weir.said());
        RawClient::connect(address).get(&url).expect(200);
        match ip {
            "0.0.0.0" => {
                RawClient::connect(other).get(&url).expect(200);
            }
            _ => wait_until_refused(other),
        }
    }
}

/// The workers close a removed listener one after the other.
fn wait_until_refused(address: SocketAddr) {
    let until = std::time::Instant::now() + crate::support::PATIENCE;
    while RawClient::try_connect(address).is_ok() {
        assert!(std::time::Instant::now() < until, "{address} still accepts");
    }
}

#[test]
fn reload_by_the_admin_interface_has_a_line_in_the_log_that_names_what_changes() {
    let config = Config::forward();
    let mut weir = Weir::serve(&config);
    weir.rewrite(&config.set("limits.drain", "\"9s\"").text());
    for said in ["changed: `limits.drain`", "no setting in force has changed"] {
        let answer = weir.ask("POST", "/reload").expect(200).text();
        assert!(answer.starts_with("config reloaded\n"), "{answer}");
        assert!(answer.contains(said), "{answer}");
        let line = weir.wait_for("config reloaded");
        assert!(line.contains(said), "{line}");
    }
}

#[test]
fn refused_reload_is_explained_and_leaves_the_whole_config_unchanged() {
    let nginx = Nginx::start("");
    let config = Config::forward().set("limits.drain", "\"9s\"");
    let mut weir = Weir::serve(&config);
    let before = weir.ask("GET", "/config").text();
    let bad = config
        .clone()
        .set("access.allow_destinations", "[]")
        .set("limits.drain", "\"9\"")
        .listener(&free_address().to_string(), "forward");
    weir.rewrite(&bad.text());
    let line = bad
        .text()
        .lines()
        .position(|line| line.contains("drain"))
        .expect("set")
        + 1;
    let refused = weir.ask("POST", "/reload").expect(422).text();
    assert!(
        refused.contains(&format!("weir.toml:{line}:16: ")),
        "{refused}"
    );
    assert!(refused.contains("its unit is missing"), "{refused}");
    let line_of_log = weir.wait_for("the config in force stays as it was");
    assert!(
        line_of_log.contains(&format!("weir.toml:{line}:16: ")),
        "{line_of_log}"
    );
    weir.signal(Signal::HangUp);
    weir.wait_for(&format!("weir.toml:{line}:16: "));
    weir.wait_for("the config in force stays as it was");

    // syntax, a missing file, a listener that cannot be had: each refused whole
    weir.rewrite("[[listener]\n");
    assert!(
        weir.ask("POST", "/reload")
            .expect(422)
            .text()
            .contains("weir.toml:1:")
    );
    std::fs::remove_file(weir.file("weir.toml")).expect("it is there");
    weir.ask("POST", "/reload").expect(422);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken
        .local_addr()
        .map(|address| (taken, address))
        .expect("it is bound");
    let in_use = config
        .clone()
        .set("access.allow_destinations", "[]")
        .listener(&taken.1.to_string(), "forward");
    weir.rewrite(&in_use.text());
    let refused = weir.ask("POST", "/reload").expect(500).text();
    assert!(refused.contains("Address already in use"), "{refused}");

    assert_eq!(weir.ask("GET", "/config").text(), before);
    weir.get(&nginx.url("/connection")).expect(200);
    let metrics = weir.metrics();
    assert_eq!(metrics.count("weir_reloads_total{outcome=\"refused\"}"), 5);
    assert_eq!(metrics.count("weir_reloads_total{outcome=\"ok\"}"), 0);
}

#[test]
fn reloaded_routes_and_limits_apply_to_open_connections() {
    let (one, other) = (named("one"), named("other"));
    let weir = Weir::serve(&Config::gateway(&[&one.origin()]));
    let mut client = RawClient::connect(weir.address());
    let get = |client: &mut RawClient| {
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        client.reply().expect(200).text()
    };
    assert_eq!(get(&mut client), "one");
    weir.rewrite(
        &Config::gateway(&[&other.origin()])
            .set("limits.drain", "\"3s\"")
            .text(),
    );
    assert_eq!(weir.ask("POST", "/reload").status(), 200);
    // the connection outlives the config it was accepted under
    assert_eq!(get(&mut client), "other");
    assert!(weir.ask("GET", "/config").text().contains("drain = \"3s\""));
}

fn named(name: &str) -> Nginx {
    Nginx::start(&format!(
        "location / {{ add_header Cache-Control no-store; return 200 {name}; }}"
    ))
}

#[test]
fn smaller_memory_budget_is_reached_after_a_reload() {
    let nginx = Nginx::start("location / { add_header Cache-Control max-age=3600; }");
    let config = Config::forward().set("cache.memory", "\"8MiB\"");
    let weir = Weir::serve(&config);
    let mut client = RawClient::connect(weir.address());
    for number in 0..60 {
        nginx.file(
            &number.to_string(),
            &crate::support::content(number, 100_000),
        );
        client.get(&nginx.url(&format!("/{number}"))).expect(200);
    }
    let used = weir.metrics().count("weir_store_used_bytes");
    assert!(used > 4 << 20, "{used}");
    weir.rewrite(&config.set("cache.memory", "\"2MiB\"").text());
    weir.ask("POST", "/reload").expect(200);
    let metrics = weir.until("shrunk", |metrics| {
        metrics.count("weir_store_used_bytes") <= 2 << 20
    });
    assert_eq!(metrics.count("weir_store_budget_bytes"), 2 << 20);
}
