//! The page of the admin interface in headless Chromium: `make test-browser`.
//!
//! Plain `cargo test` leaves this program out (`test = false` in the manifest): a browser is a
//! large thing to install. Pictures of the page are put into `target/dashboard`, for people to look
//! at. With `WEIR_BLESS=1` the picture of the README is taken anew, of minutes of traffic.

mod chromium;
#[path = "../../support/mod.rs"]
mod support;

use chromium::Chromium;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{Config, Nginx, RawClient, Weir, content};

const DESKTOP: (u32, u32) = (1200, 900);
const PHONE: (u32, u32) = (390, 844);

/// What the picture of the README shows.
const README: (u32, u32) = (985, 712);

const PEOPLE: &str = "
    location /page { add_header Cache-Control max-age=20; }
    location /private { add_header Cache-Control no-store; return 200 secret; }
";

const LOCATIONS: &str = "
    location /hit { add_header Cache-Control max-age=3600; return 200 0123456789; }
    location /private { add_header Cache-Control no-store; return 200 secret; }
    location / { add_header Cache-Control max-age=3600; return 200 whatever; }
";

/// The page shows the events of this process.
const LIVE: &str = "!document.body.classList.contains('lost') && $('savings').rows.length === 3";

/// The text of a cell of the table of what is saved.
fn saving(row: u32, cell: u32) -> String {
    format!("$('savings').rows[{row}].cells[{cell}].innerText")
}

fn pictures() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../dashboard")
}

fn open(weir: &Weir) -> Chromium {
    let mut browser = Chromium::start();
    browser.look(DESKTOP, false);
    browser.open(&format!("http://{}/", weir.admin));
    browser.until(LIVE);
    browser
}

/// Nothing went wrong, and nothing is wider than the window.
fn check(browser: &mut Chromium) {
    assert_eq!(browser.complaints(), [""; 0]);
    let widths = "[document.documentElement.scrollWidth, innerWidth]";
    let widths = browser.value(widths);
    assert!(widths[0].as_u64() <= widths[1].as_u64(), "{widths}");
}

/// The values of all rows are within the window, beside or under the titles of their columns.
fn check_rows(browser: &mut Chromium) {
    let wide = "Array.from(document.querySelectorAll('.scroll:has(> .rows)'))\
        .filter((it) => it.scrollWidth > it.clientWidth).length";
    assert_eq!(browser.value(wide), json!(0), "tables that scroll sideways");
    let small = "Array.from(document.querySelectorAll('.rows th, .rows td'))\
        .filter((it) => parseFloat(getComputedStyle(it).fontSize) < 14).length";
    assert_eq!(browser.value(small), json!(0), "values in small letters");
}

#[test]
fn page_without_traffic_says_so_and_is_legible_on_a_phone() {
    let weir = Weir::serve(&Config::forward());
    let mut browser = open(&weir);
    assert_eq!(browser.text(&saving(2, 1)), "0");
    assert_eq!(browser.text(&saving(2, 2)), "–");
    browser.until("$('misses').innerText.includes('No request was forwarded')");
    browser.until("$('top').innerText.includes('Nothing was counted yet')");
    assert_eq!(browser.text("document.title"), "Weir");
    check(&mut browser);
    browser.look(PHONE, false);
    check(&mut browser);
    browser.picture(&pictures(), "empty-phone");
}

#[test]
fn page_shows_requests_bytes_reasons_and_names_by_mouse_keyboard_and_screen_reader() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward());
    let mut client = RawClient::connect(weir.address());
    for _ in 0..30 {
        client.get(&nginx.url("/hit")).expect(200);
    }
    for _ in 0..10 {
        client.get(&nginx.url("/private?q=word")).expect(200);
    }
    let mut browser = open(&weir);
    browser.until(&format!("{} === '40'", saving(2, 1)));
    assert_eq!(browser.text(&saving(2, 2)), "72.5\u{a0}%");
    assert_eq!(browser.text(&saving(1, 1)), "40", "today");
    browser.until("$('reasons').innerText.includes('response-no-store')");
    let url = nginx.url("/hit");
    browser.until(&format!("$('top').innerText.includes('{url}')"));
    browser.until("$('misses').rows.length === 11");
    let misses = browser.text("$('misses').innerText");
    assert!(
        misses.contains("/private") && !misses.contains("word"),
        "{misses}"
    );
    assert!(
        misses.contains("client-") && !misses.contains("127.0.0.1\t"),
        "{misses}"
    );
    browser.until("$('charts').querySelectorAll('path.line[d]').length > 20");
    // a chart has words for a screen reader, and says each point that a key moves to
    let title = browser.text("$('charts').querySelector('svg[role=img] title').textContent");
    assert!(
        title.starts_with("Requests a second. hits: mean "),
        "{title}"
    );
    browser.value("$('charts').querySelector('.plot').focus()");
    browser.press("End");
    for _ in 0..3 {
        browser.press("ArrowLeft");
    }
    browser.until("$('charts').querySelector('output').textContent.includes('hits ')");
    browser.press("Escape");
    browser.until("$('charts').querySelector('output').textContent === ''");
    // the table under it opens by keyboard
    browser.value("$('charts').querySelector('summary').focus()");
    browser.press("Enter");
    browser.until("$('charts').querySelector('details table').rows.length > 1");
    let rings = "getComputedStyle($('charts').querySelector('summary')).outlineStyle";
    assert_eq!(browser.text(rings), "solid", "the focus is seen");
    for range in ["3600", "86400", "604800", "300"] {
        browser.value(&format!(
            "document.querySelector('input[value=\"{range}\"]').click()"
        ));
        browser.until("$('charts').querySelectorAll('path.line').length > 20");
    }
    browser.value("{ const of = document.getElementById('top-of'); of.value = 'hosts'; of.dispatchEvent(new Event('change')); }");
    let host = nginx.address.to_string();
    browser.until(&format!(
        "$('top').rows.length === 1 && $('top').innerText.startsWith('{host}')"
    ));
    check(&mut browser);
    let pictures = pictures();
    browser.picture(&pictures, "light");
    browser.look(DESKTOP, true);
    browser.picture(&pictures, "dark");
    let back = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.text(back), "rgb(20, 23, 26)");
    browser.look(PHONE, false);
    check(&mut browser);
    check_rows(&mut browser);
    let title = "getComputedStyle($('savings').rows[2].cells[2], '::before').content";
    assert_eq!(browser.text(title), "\"Hit ratio\"");
    browser.picture(&pictures, "phone");
}

#[test]
fn what_weir_sends_of_its_own_is_not_shown_as_saved() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward());
    let mut client = RawClient::connect(weir.address());
    for _ in 0..20 {
        client.get(&nginx.url("/private")).expect(200);
    }
    // nothing listens there
    let port = xtask::ports::take().expect("a port");
    let failed = weir.get(&format!("http://127.0.0.1:{port}/"));
    assert_eq!(failed.status(), 502);
    let mut browser = open(&weir);
    browser.until(&format!("{} === '21'", saving(2, 1)));
    assert_eq!(browser.text(&saving(2, 6)), "0\u{a0}B");
    // 10 bytes of content are fetched once, and sent to three clients
    for _ in 0..3 {
        client.get(&nginx.url("/hit")).expect(200);
    }
    browser.until(&format!("{} === '24'", saving(2, 1)));
    assert_eq!(browser.text(&saving(2, 6)), "20\u{a0}B");
}

#[test]
fn small_rates_are_not_shown_as_none() {
    let weir = Weir::serve(&Config::forward());
    let mut browser = open(&weir);
    for (value, expected) in [
        ("0", "0"),
        ("1 / 30", "0.033"),
        ("0.0001", "<0.001"),
        ("0.5", "0.5"),
        ("3.257", "3.26"),
        ("12.34", "12.3"),
        ("1234", "1,234"),
        ("1500000", "1.50\u{a0}M"),
    ] {
        let found = browser.text(&format!("count({value})"));
        assert_eq!(found, expected, "{value}");
    }
    assert_eq!(browser.text("rate(0.25)"), "0.25\u{a0}B/s");
    assert_eq!(browser.text("rate(1500)"), "1.50\u{a0}kB/s");
}

/// Eight clients that request pages as people do, a few often and many seldom, until a time.
fn people(nginx: &Nginx, proxy: SocketAddr, until: Instant) {
    for number in 0..60 {
        let length = 1_000 << (number % 9);
        nginx.file(&format!("page{number}"), &content(number, length));
    }
    let request = |client: &mut RawClient, number: u32| {
        let path = match number % 17 {
            0 => "/private?q=word".to_owned(),
            // a product of two numbers is small more often than it is large
            _ => format!("/page{}", (number % 61) * (number / 61 % 59) / 60),
        };
        client.get(&nginx.url(&path)).expect(200);
    };
    std::thread::scope(|scope| {
        for seed in 1..=8_u32 {
            scope.spawn(move || {
                let mut client = RawClient::connect(proxy);
                let mut state = seed.wrapping_mul(0x9e37_79b9);
                while Instant::now() < until {
                    state ^= state << 13;
                    state ^= state >> 17;
                    state ^= state << 5;
                    request(&mut client, state);
                }
            });
        }
    });
}

#[test]
fn page_shows_what_is_saved_while_people_browse() {
    let is_blessed = std::env::var_os("WEIR_BLESS").is_some_and(|value| value == "1");
    let duration = Duration::from_secs(if is_blessed { 330 } else { 5 });
    let nginx = Nginx::start(PEOPLE);
    // people do not take all that a machine can give
    let weir = Weir::serve(&Config::forward().rule("rate = \"4MiB/s\""));
    let begun = Instant::now();
    let mut browser = open(&weir);
    let proxy = weir.address();
    let until = Instant::now() + duration;
    std::thread::scope(|scope| {
        scope.spawn(|| people(&nginx, proxy, until));
        let saved = format!("parseFloat({}) > 0", saving(2, 6));
        browser.until(&saved);
        let first = begun.elapsed();
        assert!(first < Duration::from_secs(60), "{first:?} to a saved byte");
        if !is_blessed {
            browser.picture(&pictures(), "people");
            return;
        }
        // the charts of 5 minutes are full
        let full = "sumOver(1, ALL, latest - 298, latest - 290) > 0";
        while browser.value(full) != json!(true) {
            assert!(Instant::now() < until, "the charts are not full");
        }
        browser.look(README, false);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
        browser.view(&folder, "dashboard");
    });
    check(&mut browser);
}

#[test]
fn page_goes_on_when_weir_has_stopped_and_returned() {
    let nginx = Nginx::start(LOCATIONS);
    let folder = tempfile::tempdir().expect("a folder");
    let port = xtask::ports::take().expect("a port");
    let history = folder.path().join("history");
    let config = Config::forward()
        .set("admin.address", &format!("\"127.0.0.1:{port}\""))
        .set(
            "admin.history_file",
            &format!("{:?}", history.display().to_string()),
        );
    let mut weir = Weir::serve(&config);
    weir.get(&nginx.url("/hit")).expect(200);
    let mut browser = open(&weir);
    browser.until(&format!("{} === '1'", saving(1, 1)));
    weir.stop();
    browser.until("document.body.classList.contains('lost')");
    let state = "document.getElementById('state').textContent";
    assert!(browser.text(state).starts_with("Not reached since "));
    browser.picture(&pictures(), "lost");
    let again = Weir::serve(&config);
    browser.until(LIVE);
    again.get(&nginx.url("/hit")).expect(200);
    browser.until(&format!("{} === '1'", saving(2, 1)));
    // what the first process did in seconds that have ended is still there
    browser.until("$('charts').querySelectorAll('path.line[d]').length > 20");
    let seconds = "fetch('/history?series=requests.uri-miss').then((it) => it.json())\
        .then((it) => it.columns[0].reduce((sum, one) => sum + (one || 0), 0))";
    assert_eq!(browser.value(seconds), json!(2));
}

#[test]
fn ten_thousand_hostile_urls_run_nothing_and_break_nothing() {
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::forward()
        .set("admin.top_queries", "\"whole\"")
        .set("admin.top_clients", "\"addresses\"");
    let weir = Weir::serve(&config);
    let mut browser = open(&weir);
    browser.value("globalThis.ran = 0");
    let host = nginx.address;
    let long = "%F0%9F%8F%94/".repeat(500);
    let hostile = [
        "/<script>ran=1</script>".to_owned(),
        "/<img src=x onerror=ran=2>".replace(' ', "%20"),
        "/\"onmouseover=\"ran=3".to_owned(),
        "/%E2%80%AE%E2%80%AEtxt.exe".to_owned(),
        "/\u{202e}\u{202e}gnp.exe".to_owned(),
        "/?q=</bdi></td></tr></table><h1>broken</h1>".to_owned(),
        "/javascript:ran=4".to_owned(),
        format!("/{long}"),
    ];
    let mut client = RawClient::connect(weir.address());
    let mut served = 0;
    for number in 0..10_000 {
        let path = &hostile[number % hostile.len()];
        // each is another URL, and each form of them is asked for more than all others
        let url = match number % 4 {
            0 => format!("http://{host}{path}"),
            _ => format!("http://{host}{path}{number}"),
        };
        match client.try_get(&url) {
            Ok(reply) => served += usize::from(reply.status() != 400),
            Err(_) => client = RawClient::connect(weir.address()),
        }
        if number % 4 == 0 {
            client = RawClient::connect(weir.address());
        }
    }
    assert!(served > 5_000, "{served}");
    browser.until("$('misses').rows.length === 20 && $('top').rows.length > 0");
    for of in ["urls", "hosts", "clients", "next-hops"] {
        browser.value(&format!("{{ const of = document.getElementById('top-of'); of.value = '{of}'; of.dispatchEvent(new Event('change')); }}"));
        browser.until("$('top').rows.length > 0");
    }
    let parts = "[document.scripts.length, document.images.length, \
        document.querySelectorAll('h1, iframe, object').length, globalThis.ran]";
    assert_eq!(browser.value(parts), json!([1, 0, 1, 0]));
    // names are cut, and the whole is there for those who open it
    let longest = "Math.max(...Array.from($('misses').querySelectorAll('summary'), (it) => Array.from(it.textContent).length))";
    assert!(browser.value(longest).as_u64() <= Some(121));
    check(&mut browser);
    browser.picture(&pictures(), "hostile");
    browser.look(PHONE, true);
    check(&mut browser);
    browser.picture(&pictures(), "hostile-phone");
}
