//! `rate`: how fast clients are sent content.

use crate::support::{OriginConnection, PATIENCE, RawClient, Setup, span};
use crate::{answer, ruled};
use std::net::Ipv4Addr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_measure::Metric;

const LIMITED: &str = r#"[
    {"path": ["/free"], "rate": "off"},
    {"content_type": ["image/*"], "rate": "1KiB/s"},
    {"status": ["200"], "rate": "40KiB/s"}
]"#;

/// Bytes a second of most of them.
const RATE: usize = 40 << 10;

/// Bytes of a grant.
const GRANT: usize = 1460;

/// Content of the responses: more than is sent in what a test lets pass.
const LENGTH: usize = 200_000;

fn setup() -> Setup {
    let setup = Setup::gateway_with(|config| {
        ruled(LIMITED)(config);
        config.limits.client_silence = span("1s");
    });
    // a client that was never seen has its quarter of a second
    setup.proxy.clock.advance_ms(10_000);
    setup
}

fn response(fields: &str) -> String {
    let content = "a".repeat(LENGTH);
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {LENGTH}\r\n{fields}\r\n\
         {content}"
    )
}

/// A client that is sent content, and how much it got.
struct Reader {
    client: RawClient,
    /// Of all of it.
    length: usize,
    got: usize,
}

impl Reader {
    /// Asks for `path` from this address.
    fn asking(setup: &Setup, path: &str, address: u8) -> Self {
        let mut client = setup.proxy.client_at(Ipv4Addr::new(127, 0, 0, address));
        client.send(setup.get(path));
        Self {
            client,
            length: LENGTH,
            got: 0,
        }
    }

    /// The first reader of what is forwarded and answered with these fields, as it has its head.
    fn of_forwarded(setup: &Setup, fields: &str) -> (Self, JoinHandle<OriginConnection>) {
        let mut reader = Self::asking(setup, "/", 1);
        let mut hop = setup.origin.accept();
        hop.read_head();
        let sending = hop.sending(response(fields));
        reader.head(false);
        (reader, sending)
    }

    /// Reads the head; of a hit, or of what was forwarded.
    fn head(&mut self, is_hit: bool) {
        let head = self.client.read_head();
        assert_eq!(head.status(), 200);
        assert_eq!(head.cache_status().starts_with("hit"), is_hit);
    }

    fn read_available(&mut self) {
        let content = self.client.read_available();
        assert!(content.iter().all(|byte| *byte == b'a'));
        self.got += content.len();
    }

    fn read_rest(mut self) {
        let rest = self.client.read_exactly(self.length - self.got);
        assert!(rest.iter().all(|byte| *byte == b'a'));
    }
}

/// The readers have what one client is sent in so many milliseconds and a quarter of a second, and
/// not more.
#[track_caller]
fn have(setup: &Setup, readers: &mut [&mut Reader], ms: usize) {
    let expected = RATE * (ms + 250) / 1000;
    let until = Instant::now() + PATIENCE;
    let mut turns = 0;
    loop {
        readers
            .iter_mut()
            .for_each(|reader| reader.read_available());
        let got: usize = readers.iter().map(|reader| reader.got).sum();
        assert!(got <= expected + GRANT, "{got} after {ms} ms");
        // more would come, though the clock stands
        turns += usize::from(got >= expected);
        if turns > 3 {
            return;
        }
        assert!(
            Instant::now() < until,
            "{got} of {expected} after {ms} ms: {:?}",
            readers.iter().map(|reader| reader.got).collect::<Vec<_>>()
        );
        setup.proxy.turn();
    }
}

/// The same each 200 ms up to a second later: what is not used of a longer time is lost.
#[track_caller]
fn have_in_a_second(setup: &Setup, readers: &mut [&mut Reader]) {
    for ms in (200..=1000).step_by(200) {
        setup.proxy.clock.advance_ms(200);
        have(setup, readers, ms);
    }
}

/// Time passes until they have all of it.
fn have_all(setup: &Setup, readers: Vec<Reader>) {
    std::thread::scope(|scope| {
        let reading: Vec<_> = readers
            .into_iter()
            .map(|reader| scope.spawn(|| reader.read_rest()))
            .collect();
        let until = Instant::now() + PATIENCE;
        while !reading
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            setup.proxy.clock.advance_ms(200);
            assert!(Instant::now() < until, "not all of it comes");
            setup.proxy.turn();
        }
    });
}

#[test]
fn client_gets_a_quarter_of_a_second_at_once_and_then_its_rate() {
    for fields in [
        "Cache-Control: max-age=60\r\n",
        "Cache-Control: no-store\r\n",
    ] {
        let setup = setup();
        let (mut reader, sending) = Reader::of_forwarded(&setup, fields);
        have(&setup, &mut [&mut reader], 0);
        assert_eq!(setup.proxy.count(Metric::RuleLimited), 0);
        have_in_a_second(&setup, &mut [&mut reader]);
        setup.proxy.clock.advance_ms(200);
        setup.proxy.wait_for(Metric::RuleLimited, 1);
        have_all(&setup, vec![reader]);
        drop(sending.join().expect("sent"));
    }
}

#[test]
fn hit_is_limited_as_a_miss_is_and_by_what_the_response_is() {
    let setup = setup();
    let image = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=600\r\n\
                 Content-Length: 2000\r\nConnection: close\r\n\r\n";
    let image = format!("{image}{}", "a".repeat(2000));
    for is_hit in [false, true] {
        let mut reader = Reader::asking(&setup, "/image", 1);
        if !is_hit {
            setup.origin.answer(&image);
        }
        reader.head(is_hit);
        assert_eq!(reader.client.read_exactly(GRANT).len(), GRANT);
        for _ in 0..3 {
            setup.proxy.turn();
            reader.client.expect_nothing_more();
        }
        setup.proxy.clock.advance_ms(10_000);
        assert_eq!(reader.client.read_exactly(2000 - GRANT).len(), 2000 - GRANT);
        setup.proxy.clock.advance_ms(10_000);
    }
}

/// Nothing waits for what is limited but that.
#[test]
fn limited_client_holds_back_no_other_client_and_no_other_rule() {
    let setup = setup();
    let (mut limited, sending) = Reader::of_forwarded(&setup, "Cache-Control: max-age=60\r\n");
    have(&setup, &mut [&mut limited], 0);
    // the same response, which is not here yet
    let mut other = Reader::asking(&setup, "/", 2);
    other.head(true);
    have(&setup, &mut [&mut other], 0);
    // for the first client there is nothing left, however often it asks
    let mut second = Reader::asking(&setup, "/", 1);
    second.head(true);
    have(&setup, &mut [&mut limited, &mut second], 0);
    assert_eq!(second.got, 0);
    let free = answer("Connection: close\r\n");
    for address in [1, 2] {
        let mut client = Reader::asking(&setup, "/free", address).client;
        setup.origin.answer(&free);
        assert_eq!(client.read_response().text(), "ok");
    }
    have_in_a_second(&setup, &mut [&mut limited, &mut second]);
    assert!(second.got > 0);
    have_all(&setup, vec![limited, second, other]);
    drop(sending.join().expect("sent"));
}

/// Content of a response that its readers keep in memory.
const PINNED: usize = 1 << 20;

/// With little memory, in which responses of that size are.
fn setup_with_little_memory(rate: &str) -> Setup {
    let rules = format!(r#"[{{"client": ["127.0.0.9"], "rate": "off"}}, {{"rate": "{rate}"}}]"#);
    let setup = Setup::gateway_with(|config| {
        ruled(&rules)(config);
        config.cache.memory = "16MiB".parse().expect("a size");
        // so large that the memory is not divided
        config.cache.largest_response = "6MiB".parse().expect("a size");
    });
    setup.proxy.clock.advance_ms(10_000);
    setup
}

/// A response of that size. One of `/tagged` can be fetched in parts.
fn large(path: &str) -> String {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nConnection: close\r\n";
    let content = "a".repeat(PINNED);
    let tag = match path.starts_with("/tagged") {
        true => "ETag: \"a\"\r\n",
        false => "",
    };
    format!("{head}{tag}Content-Length: {PINNED}\r\n\r\n{content}")
}

/// A client without a limit gets one.
fn get_large(setup: &Setup, path: &str, is_hit: bool) {
    let mut reader = Reader::asking(setup, path, 9);
    let sending = (!is_hit).then(|| {
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.sending(large(path))
    });
    reader.head(is_hit);
    assert_eq!(reader.client.read_exactly(PINNED).len(), PINNED, "{path}");
    drop(sending.map(|sending| sending.join().expect("sent")));
}

/// A client at this address has the head of one that is stored.
fn reading_large(setup: &Setup, path: &str, address: u8) -> Reader {
    let mut reader = Reader::asking(setup, path, address);
    reader.length = PINNED;
    reader.head(true);
    reader
}

/// The rest of `/tagged` is asked for, and sent.
fn send_rest(mut hop: OriginConnection) -> JoinHandle<OriginConnection> {
    let head = hop.read_head();
    assert!(
        head.start_line().starts_with("GET /tagged "),
        "{}",
        head.start_line()
    );
    assert_eq!(head.field("if-range"), Some("\"a\""));
    let range = head.field("range").expect("a range");
    let from = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split('-').next());
    let from: usize = from.and_then(|from| from.parse().ok()).expect("a number");
    let rest = PINNED - from;
    let last = PINNED - 1;
    hop.sending(format!(
        "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nConnection: close\r\n\
         Content-Range: bytes {from}-{last}/{PINNED}\r\nContent-Length: {rest}\r\n\r\n{}",
        "a".repeat(rest)
    ))
}

/// What is sent slowly is kept in memory until it is sent, in a quarter of the memory at most.
#[test]
fn clients_that_are_held_back_keep_no_new_response_from_being_stored() {
    let setup = setup_with_little_memory("1KiB/s");
    for number in 0..12 {
        get_large(&setup, &format!("/{number}"), false);
    }
    let mut held_back = Vec::new();
    for number in 0..12 {
        let mut reader = reading_large(&setup, &format!("/{number}"), 10 + number);
        // by then it is known whether it is kept
        reader.got += reader.client.read_exactly(1).len();
        held_back.push(reader);
    }
    setup.proxy.wait_for(Metric::RuleNotKept, 9);
    for number in 0..12 {
        let path = format!("/new/{number}");
        get_large(&setup, &path, false);
        get_large(&setup, &path, true);
    }
    for reader in &mut held_back[..3] {
        reader.read_available();
        assert!(reader.got < PINNED / 2, "{}", reader.got);
    }
    assert_eq!(setup.proxy.count(Metric::RuleUnlimited), 0);
}

#[test]
fn client_with_many_slow_responses_lifts_no_rate_and_takes_no_memory_of_others() {
    let setup = setup_with_little_memory("40KiB/s");
    for number in 0..8 {
        get_large(&setup, &format!("/{number}"), false);
    }
    let mut many: Vec<Reader> = (0..6)
        .map(|number| reading_large(&setup, &format!("/{number}"), 10))
        .collect();
    setup.proxy.wait_for(Metric::RuleNotKept, 5);
    let mut others =
        [11, 12].map(|address| reading_large(&setup, &format!("/{}", address - 5), address));
    for ms in (0..=1000).step_by(200) {
        if ms > 0 {
            setup.proxy.clock.advance_ms(200);
        }
        have(&setup, &mut many.iter_mut().collect::<Vec<_>>(), ms);
        for other in &mut others {
            have(&setup, &mut [other], ms);
        }
    }
    assert_eq!(setup.proxy.count(Metric::RuleNotKept), 5);
    assert_eq!(setup.proxy.count(Metric::RuleUnlimited), 0);
}

#[test]
fn response_that_is_evicted_while_it_is_sent_slowly_is_fetched_to_its_end() {
    let setup = setup_with_little_memory("40KiB/s");
    get_large(&setup, "/kept", false);
    get_large(&setup, "/tagged", false);
    let kept = reading_large(&setup, "/kept", 10);
    let evicted = reading_large(&setup, "/tagged", 10);
    setup.proxy.wait_for(Metric::RuleNotKept, 1);
    let mut number = 0;
    let hop = loop {
        if setup.origin.is_touched() {
            break setup.origin.accept();
        }
        assert!(number < 100, "it is not evicted");
        get_large(&setup, &format!("/new/{number}"), false);
        number += 1;
        setup.proxy.turn();
    };
    let sending = send_rest(hop);
    have_all(&setup, vec![kept, evicted]);
    drop(sending.join().expect("sent"));
    assert_eq!(setup.proxy.count(Metric::RuleUnlimited), 0);
}

/// It is in memory for this client alone, once the others have it.
#[test]
fn response_that_another_has_had_fetched_is_fetched_again_for_a_client_with_its_share() {
    let setup = setup_with_little_memory("40KiB/s");
    get_large(&setup, "/kept", false);
    let kept = reading_large(&setup, "/kept", 10);
    let mut leader = Reader::asking(&setup, "/tagged", 9);
    let mut hop = setup.origin.accept();
    hop.read_head();
    let response = large("/tagged");
    let (begin, end) = response.split_at(response.len() - 1000);
    let sending = hop.sending(begin);
    leader.head(false);
    assert_eq!(
        leader.client.read_exactly(PINNED - 1000).len(),
        PINNED - 1000
    );
    let mut follower = reading_large(&setup, "/tagged", 10);
    while follower.got == 0 {
        setup.proxy.clock.advance_ms(200);
        setup.proxy.turn();
        follower.read_available();
    }
    assert_eq!(setup.proxy.count(Metric::RuleNotKept), 0);
    let mut hop = sending.join().expect("sent");
    hop.send(end);
    assert_eq!(leader.client.read_exactly(1000).len(), 1000);
    while !setup.origin.is_touched() {
        setup.proxy.clock.advance_ms(200);
        setup.proxy.turn();
        follower.read_available();
        assert!(follower.got < PINNED, "it was kept for it");
    }
    let sending = send_rest(setup.origin.accept());
    have_all(&setup, vec![kept, follower]);
    drop(sending.join().expect("sent"));
    assert_eq!(setup.proxy.count(Metric::RuleNotKept), 1);
    assert_eq!(setup.proxy.count(Metric::RuleUnlimited), 0);
}

#[test]
fn response_of_a_client_that_has_its_share_of_memory_passes_at_its_rate() {
    let setup = setup_with_little_memory("40KiB/s");
    get_large(&setup, "/kept", false);
    let kept = reading_large(&setup, "/kept", 10);
    let mut passing = Reader::asking(&setup, "/passing", 10);
    passing.length = PINNED;
    let mut hop = setup.origin.accept();
    hop.read_head();
    let sending = hop.sending(large("/passing"));
    passing.head(false);
    have_all(&setup, vec![kept, passing]);
    drop(sending.join().expect("sent"));
    assert_eq!(setup.proxy.count(Metric::RuleNotKept), 1);
    assert_eq!(setup.proxy.count(Metric::RuleUnlimited), 0);
    get_large(&setup, "/passing", false);
}

#[test]
fn client_that_is_held_back_is_not_taken_for_a_silent_one() {
    let setup = setup();
    let (mut reader, sending) = Reader::of_forwarded(&setup, "Cache-Control: max-age=60\r\n");
    have(&setup, &mut [&mut reader], 0);
    // twice as long as a client may be silent
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        setup.proxy.turn();
    }
    have_all(&setup, vec![reader]);
    assert_eq!(setup.proxy.count(Metric::ClientAborts), 0);
    drop(sending.join().expect("sent"));
}

#[test]
fn response_that_is_held_back_ends_with_its_client() {
    let aborted = |setup: &Setup, mut reader: Reader, count| {
        have(setup, &mut [&mut reader], 0);
        reader.client.into_peer().reset();
        // the clock stands: no byte is sent to the client that has left
        setup.proxy.wait_for(Metric::ClientAborts, count);
    };
    for fields in [
        "Cache-Control: max-age=60\r\n",
        "Cache-Control: no-store\r\n",
    ] {
        let setup = setup();
        let (reader, sending) = Reader::of_forwarded(&setup, fields);
        aborted(&setup, reader, 1);
        // it was sent, or the fetch ended with its only reader
        drop(sending.join());
    }
    let setup = setup();
    let fields = "Cache-Control: max-age=600\r\nConnection: close\r\n";
    let (mut reader, sending) = Reader::of_forwarded(&setup, fields);
    have(&setup, &mut [&mut reader], 0);
    have_all(&setup, vec![reader]);
    drop(sending.join().expect("sent"));
    setup.proxy.clock.advance_ms(10_000);
    let mut hit = Reader::asking(&setup, "/", 1);
    hit.head(true);
    aborted(&setup, hit, 1);
    // what was granted to it is not lost for its client
    let mut next = Reader::asking(&setup, "/", 1);
    next.head(true);
    setup.proxy.clock.advance_ms(10_000);
    have_all(&setup, vec![next]);
}
