use super::*;

/// Changes the default configuration and compares what `validate` says: the key at fault, or
/// nothing.
fn check(change: impl FnOnce(&mut Config), expected: Option<&str>) {
    let mut config = Config::default();
    change(&mut config);
    let found = config.validate().err();
    let key = found.as_ref().map(|invalid| invalid.key_path.as_str());
    assert_eq!(key, expected, "{found:?}");
}

fn listener(address: &str, mode: Mode) -> Listener {
    Listener {
        address: address.parse().unwrap(),
        mode: mode.into(),
        name: None,
        tls: None,
        http2: None,
        proxy_protocol: Vec::new(),
    }
}

fn route(host: Option<&str>, path: &str, next_hops: &[&str]) -> Route {
    Route {
        host: host.map(|host| host.parse().unwrap()),
        path: path.parse().unwrap(),
        next_hops: next_hops.iter().map(|hop| hop.parse().unwrap()).collect(),
        ..Route::default()
    }
}

fn gateway(config: &mut Config, routes: Vec<Route>) {
    config.listeners = vec![listener("127.0.0.1:8080", Mode::Gateway)];
    config.routes = routes;
}

#[test]
fn default_configuration_is_valid_and_round_trips() {
    check(|_| (), None);
    let text = serde_json::to_string(&Config::default()).unwrap();
    let again: Config = serde_json::from_str(&text).unwrap();
    assert_eq!(again, Config::default());
    let empty: Config = serde_json::from_str("{}").unwrap();
    assert_eq!(empty, Config::default());
}

#[test]
fn listeners_with_conflicting_addresses_are_refused() {
    let pair = |one: &str, other: &str, expected: Option<&str>| {
        let listeners = vec![listener(one, Mode::Forward), listener(other, Mode::Forward)];
        check(|config| config.listeners = listeners, expected);
    };
    let second = Some("listener[1].address");
    pair("127.0.0.1:1", "127.0.0.1:1", second);
    pair("127.0.0.1:1", "127.0.0.1:2", None);
    pair("127.0.0.1:1", "127.0.0.2:1", None);
    pair("0.0.0.0:1", "127.0.0.1:1", second);
    pair("127.0.0.1:1", "0.0.0.0:1", second);
    pair("[::]:1", "127.0.0.1:1", None);
    pair("127.0.0.1:0", "127.0.0.1:0", None);
    pair("127.0.0.1:1", "127.0.0.1:3129", Some("admin.address"));
    check(|config| config.listeners.clear(), Some("listener"));
}

#[test]
fn name_of_a_listener_is_a_name_of_no_other_one_and_no_mode() {
    let names = |one: &str, other: &str, expected: Option<&str>| {
        let named = |address: &str, name: &str| Listener {
            name: Some(name.to_owned()),
            ..listener(address, Mode::Forward)
        };
        let listeners = vec![named("127.0.0.1:1", one), named("127.0.0.1:2", other)];
        check(|config| config.listeners = listeners, expected);
    };
    names("lan", "wan", None);
    names("lan", "lan", Some("listener[1].name"));
    names("lan 1", "wan", Some("listener[0].name"));
    names("lan", "gateway", Some("listener[1].name"));
}

#[test]
fn gateway_without_route_or_route_without_gateway_is_refused() {
    check(
        |config| gateway(config, Vec::new()),
        Some("listener[0].mode"),
    );
    check(
        |config| gateway(config, vec![route(None, "/", &["http://a"])]),
        None,
    );
    check(
        |config| config.routes = vec![route(None, "/", &["http://a"])],
        Some("route"),
    );
}

#[test]
fn empty_duplicate_or_looping_route_is_refused() {
    let routes = |routes: Vec<Route>, expected: Option<&str>| {
        check(|config| gateway(config, routes), expected);
    };
    routes(vec![route(None, "/", &[])], Some("route[0].next_hops"));
    routes(
        vec![
            route(Some("a"), "/x", &["http://b"]),
            route(Some("A"), "/x", &["http://c"]),
        ],
        Some("route[1]"),
    );
    routes(
        vec![
            route(Some("a"), "/x", &["http://b"]),
            route(Some("*.a"), "/x", &["http://c"]),
            route(None, "/x", &["http://c"]),
            route(None, "/x/", &["http://c"]),
        ],
        None,
    );
    let back = Some("route[0].next_hops[1]");
    routes(
        vec![route(None, "/", &["http://a", "http://127.0.0.1:8080"])],
        back,
    );
    routes(
        vec![route(
            None,
            "/",
            &["http://a", "http://[::ffff:127.0.0.1]:8080"],
        )],
        back,
    );
    routes(
        vec![route(
            None,
            "/",
            &["http://127.0.0.1:8081", "http://127.0.0.2:8080"],
        )],
        None,
    );
    check(
        |config| {
            gateway(config, vec![route(None, "/", &["http://127.0.0.1:8080"])]);
            config.listeners = vec![listener("0.0.0.0:8080", Mode::Gateway)];
        },
        Some("route[0].next_hops[0]"),
    );
}

#[test]
fn value_one_step_outside_its_range_is_refused() {
    check(|config| config.workers = 1024, None);
    check(|config| config.workers = 1025, Some("workers"));
    let connect = |span: Span, expected: Option<&str>| {
        check(|config| config.limits.connect = span, expected);
    };
    connect(Span::from_millis(10), None);
    connect(Span::from_millis(9), Some("limits.connect"));
    connect(Span::ZERO, Some("limits.connect"));
    connect(Span::from_hours(1), None);
    connect(Span::from_millis(3_600_001), Some("limits.connect"));
    check(
        |config| config.limits.head_fields_max = 129,
        Some("limits.head_fields_max"),
    );
    check(|config| config.limits.response_fields_max = 1000, None);
    check(
        |config| config.limits.response_fields_max = 1001,
        Some("limits.response_fields_max"),
    );
    check(
        |config| config.cache.heuristic_fraction_percent = 101,
        Some("cache.heuristic_fraction_percent"),
    );
}

#[test]
fn all_mistakes_are_found_and_not_the_first_alone() {
    let mut config = Config {
        workers: 1025,
        ..Config::default()
    };
    config.limits.connect = Span::ZERO;
    gateway(
        &mut config,
        vec![
            route(None, "/", &["http://127.0.0.1:8080"]),
            route(None, "/", &[]),
        ],
    );
    config.rules = serde_json::from_str(
        r#"[{}, {"rate": "1B/s", "name": "a b"}, {"deny": ""}, {"preset": "packages"}]"#,
    )
    .unwrap();
    let mistakes = config.mistakes();
    let keys: Vec<&str> = mistakes
        .described()
        .iter()
        .map(|it| &*it.key_path)
        .collect();
    let expected = [
        "workers",
        "limits.connect",
        "route[0].next_hops[0]",
        "route[1].next_hops",
        "rule[1].rate",
        "rule[1].name",
        "rule[0]",
        "rule[2].deny",
        "rule[3].preset",
    ];
    assert_eq!(keys, expected);
    assert_eq!(mistakes.more(), 0);
}

#[test]
fn read_ahead_limit_outside_its_range_is_refused() {
    let read_ahead = |text: &str, expected: Option<()>| {
        let read_ahead: ReadAhead = text.parse().unwrap();
        let key = |table: &str| expected.map(|()| format!("{table}.read_ahead"));
        check(
            |config| config.fetch.read_ahead = read_ahead,
            key("fetch").as_deref(),
        );
        check(
            |config| {
                let with_read_ahead = Route {
                    read_ahead: Some(read_ahead),
                    ..route(None, "/", &["http://a"])
                };
                gateway(config, vec![with_read_ahead]);
            },
            key("route[0]").as_deref(),
        );
    };
    read_ahead("16KiB", None);
    read_ahead("16383", Some(()));
    read_ahead("1GiB", None);
    read_ahead("1073741825", Some(()));
    read_ahead("unbounded", None);
}

#[test]
fn limit_exceeding_the_limit_that_encloses_it_is_refused() {
    let response = |bytes: u64, expected: Option<&str>| {
        check(
            |config| config.cache.largest_response = ByteSize::from_bytes(bytes),
            expected,
        );
    };
    let memory = ByteSize::from_mib(256).bytes();
    response(memory, None);
    response(memory + 1, Some("cache.largest_response"));
    check(
        |config| config.limits.connections_per_next_hop_max = 4097,
        Some("limits.connections_per_next_hop_max"),
    );
    check(
        |config| config.limits.idle_per_next_hop_max = 257,
        Some("limits.idle_per_next_hop_max"),
    );
    check(
        |config| config.limits.idle_next_hop_connections_max = 4097,
        Some("limits.idle_next_hop_connections_max"),
    );
    check(|config| config.dns.ttl_min = Span::from_hours(1), None);
    check(
        |config| {
            config.dns.ttl_min = Span::from_secs(2);
            config.dns.ttl_max = Span::from_secs(1);
        },
        Some("dns.ttl_min"),
    );
}

#[test]
fn contradictory_or_open_proxy_access_rules_are_refused() {
    let cidr = |text: &str| text.parse::<Cidr>().unwrap();
    check(
        |config| config.access.deny_clients = vec![cidr("::1")],
        Some("access.deny_clients[0]"),
    );
    check(
        |config| config.access.deny_clients = vec![cidr("127.0.0.2")],
        None,
    );
    check(
        |config| {
            config.access.allow_destinations = vec![cidr("10.0.0.0/8")];
            config.access.deny_destinations = vec![cidr("10.0.0.0/8")];
        },
        Some("access.deny_destinations[0]"),
    );
    check(
        |config| config.access.clients.clear(),
        Some("access.clients"),
    );
    let open = |address: &str, clients: &str, expected: Option<&str>| {
        check(
            |config| {
                config.listeners = vec![listener(address, Mode::Forward)];
                config.access.clients = vec![cidr(clients)];
            },
            expected,
        );
    };
    open("0.0.0.0:3128", "0.0.0.0/0", Some("access.clients[0]"));
    open("0.0.0.0:3128", "10.0.0.0/8", None);
    open("127.0.0.1:3128", "0.0.0.0/0", None);
    check(
        |config| config.access.connect_ports = vec![443, 0],
        Some("access.connect_ports[1]"),
    );
    check(|config| config.access.connect_ports = Vec::new(), None);
}

#[test]
fn clients_of_forward_listeners_are_refused_without_one_and_warned_of_beside_a_gateway() {
    let named = |list: &str| -> Vec<Cidr> { vec![list.parse().unwrap()] };
    let (clients, denied) = (Some("access.clients"), Some("access.deny_clients"));
    let refused = |change: fn(&mut Access, Vec<Cidr>), modes: &[Mode], expected: Option<&str>| {
        let ports = (8080..).zip(modes);
        let each = ports.map(|(port, mode)| listener(&format!("127.0.0.1:{port}"), *mode));
        let mut config = Config {
            listeners: each.collect(),
            routes: vec![route(None, "/", &["http://a"])],
            ..Config::default()
        };
        change(&mut config.access, named("10.0.0.0/8"));
        let mistakes = config.mistakes();
        let keys = |found: &[Invalid]| found.first().map(|it| it.key_path.clone());
        let is_alone = modes == [Mode::Gateway];
        let found = match is_alone {
            true => keys(mistakes.described()),
            false => {
                assert_eq!(mistakes.described(), []);
                keys(&config.warnings())
            }
        };
        assert_eq!(found.as_deref(), expected, "{modes:?}");
    };
    let both = [Mode::Forward, Mode::Gateway];
    for modes in [&[Mode::Gateway][..], &both] {
        refused(|access, list| access.clients = list, modes, clients);
        refused(|access, list| access.deny_clients = list, modes, denied);
        refused(|_, _| (), modes, None);
        refused(|access, list| access.deny_destinations = list, modes, None);
    }
    let mut forward = Config::default();
    forward.access.deny_clients = named("10.0.0.0/8");
    assert_eq!(forward.mistakes().described(), []);
    assert_eq!(forward.warnings(), []);
}

#[test]
fn every_setting_is_documented_with_its_default_and_reason() {
    let settings = settings();
    for setting in &settings {
        assert!(setting.reason.len() > 30, "{setting:?}");
        assert_eq!(
            setting.minimum.is_some(),
            setting.maximum.is_some(),
            "{setting:?}"
        );
    }
    let text = serde_json::to_value(Config::default()).unwrap();
    for (table, value) in text.as_object().unwrap() {
        let Some(keys) = value.as_object() else {
            continue;
        };
        for (key, default) in keys {
            let path = format!("{table}.{key}");
            let setting = settings.iter().find(|setting| setting.path == path);
            let stated = setting.and_then(|setting| setting.default.clone());
            assert_eq!(stated, Some(default.to_string()), "{path}");
        }
    }
}
