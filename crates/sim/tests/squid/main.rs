//! The verdicts of the simulator beside those of a real Squid 5.7, request by request, on 6000
//! requests that were made for it.
//!
//! Squid is not the truth: it is a second reading of the same text by other people. Where the two
//! do the same for a request, both readings agree; where they do not, `explained` has the section
//! of the RFC by which they may, or the test fails.

mod deed;
mod document;
mod explained;
#[path = "../heads/mod.rs"]
mod heads;
mod origin;
mod truth;

use deed::{Words, agree};
use explained::EXPLAINED;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use truth::Done;
use weir_policy::fetch::{AbortPolicy, ReadAhead};
use weir_policy::{Profile, Verdict};
use weir_sim::link::LinkRate;
use weir_sim::tcp::Tcp;
use weir_sim::{Network, Settings, Simulator};
use weir_trace::import::Format;
use weir_trace::{AbortedBy, Row};

/// One machine: no link limits anything, and the origin is a millisecond away.
fn settings() -> Settings {
    let network = Network {
        client_link: LinkRate::of(0),
        client_rtt_us: 100,
        internet: LinkRate::of(0),
        server_rtt_us: 1000,
        tcp: Tcp::LINUX,
        ..Network::MODEM
    };
    Settings {
        // what becomes of fetches whose client has left, and how far they run ahead, as Squid has
        // it by default
        abort: AbortPolicy::SQUID,
        read_ahead: ReadAhead::Bytes(16 * 1024),
        ..Settings::of(network, Profile::Rfc9111)
    }
}

/// A request, what Squid did, and our verdict.
struct Compared {
    done: Done,
    verdict: Verdict,
}

fn compared() -> Vec<Compared> {
    let all = truth::requests();
    let mut simulator = Simulator::new(settings()).expect("the settings can be run");
    simulator.record_verdicts();
    for row in rows(&all) {
        simulator.push(&row);
    }
    simulator.settle_all();
    let verdicts: BTreeMap<u64, Verdict> = simulator.take_verdicts().into_iter().collect();
    assert_eq!(verdicts.len(), all.len(), "a request has no verdict");
    let pairs = all.into_iter().zip(verdicts.into_values());
    pairs
        .map(|(done, verdict)| Compared { done, verdict })
        .collect()
}

/// What the origin would have answered to each request.
fn rows(all: &[Done]) -> Vec<Row> {
    let lengths = origin::lengths(all.iter().map(|done| &done.asked));
    let exchanges: Vec<heads::Exchange> = all
        .iter()
        .map(|done| origin::exchange(&done.asked, &lengths))
        .collect();
    let mut rows = heads::rows(&exchanges);
    for (row, done) in rows.iter_mut().zip(all) {
        row.client = Some(u64::from(done.asked.client));
        row.aborted_by = Some(AbortedBy::Neither);
        if done.asked.aborted {
            row.aborted_by = Some(AbortedBy::Client);
            row.received_bytes = Some(done.asked.body);
        }
    }
    rows
}

/// Class, Cache-Control of the request, Squid's tag, our words.
type Case = (String, String, String, String);

fn case(compared: &Compared) -> Case {
    let asked = &compared.done.asked;
    (
        asked.class().to_owned(),
        asked.says("Cache-Control").unwrap_or_default().to_owned(),
        compared.done.tag.clone(),
        Words(&compared.verdict).to_string(),
    )
}

#[test]
fn every_difference_from_squids_verdict_has_an_explanation() {
    let mut differing: BTreeMap<Case, usize> = BTreeMap::new();
    for compared in compared() {
        if !agree(&compared.done.tag, &compared.verdict) {
            *differing.entry(case(&compared)).or_default() += 1;
        }
    }
    let mut wrong = String::new();
    for explained in EXPLAINED {
        let mut found = 0;
        for class in explained.classes {
            let words = [class, explained.request, explained.squid, explained.weir];
            let [class, request, squid, weir] = words.map(str::to_owned);
            let count = differing.remove(&(class, request, squid, weir));
            if count.is_none() {
                let _ = writeln!(wrong, "nobody of class {words:?} needs an explanation");
            }
            found += count.unwrap_or(0);
        }
        if found != explained.requests {
            let _ = writeln!(
                wrong,
                "{found} requests, not {}: {explained:?}",
                explained.requests
            );
        }
    }
    for ((class, request, squid, weir), count) in differing {
        let _ = writeln!(
            wrong,
            "nobody explains: {count} of class {class} with `{request}`: {squid}, {weir}"
        );
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn assumed_header_section_has_the_size_of_the_one_the_origin_sent() {
    let all = truth::requests();
    let lengths = origin::lengths(all.iter().map(|done| &done.asked));
    let reached = truth::reached();
    assert_eq!(reached.len(), 4043);
    for reached in reached {
        let mut fields = origin::fields(&reached.path, truth::START_US / 1_000_000);
        if reached.status != 304 {
            fields.push((
                "Content-Length".to_owned(),
                lengths[&reached.path].to_string(),
            ));
        }
        fields.push(("Content-Type".to_owned(), "text/plain".to_owned()));
        let reason = match reached.status {
            200 => "OK",
            301 => "Moved Permanently",
            304 => "Not Modified",
            404 => "Not Found",
            other => panic!("the origin does not answer {other}"),
        };
        let bytes = heads::head_bytes(&fields) - "OK".len() + reason.len();
        assert_eq!(bytes, reached.hdr, "{reached:?}");
        let has_content = reached.method != "HEAD" && reached.status != 304;
        assert_eq!(
            reached.body_sent > 0,
            has_content && lengths[&reached.path] > 0,
            "{reached:?}"
        );
    }
}

#[test]
fn assumed_header_section_matches_the_one_in_the_capture() {
    let rows = truth::rows("devcap.pcap.gz", Format::Pcap);
    assert!(rows.len() > 250, "{} rows", rows.len());
    for row in rows {
        let uri = row.target_text.clone().expect("names are kept");
        let path = uri
            .strip_prefix(truth::ORIGIN)
            .expect("there is one origin");
        let exchange = heads::Exchange {
            arrival_us: row.arrival_us,
            method: "GET".to_owned(),
            uri: uri.clone(),
            // the variant is not looked at
            request: vec![("Host".to_owned(), "127.0.0.1:41880".to_owned())],
            status: row.status.expect("each was answered"),
            response: origin::fields(path, row.date_s.expect("each has a Date")),
            content_bytes: 0,
            request_content_bytes: 0,
        };
        let assumed = &heads::rows(&[exchange])[0];
        let says = |row: &Row| {
            (
                (row.response_directives, row.max_age_s, row.s_maxage_s),
                (row.expires_s, row.vary, row.has_set_cookie),
                (
                    row.etag.is_some(),
                    row.etag_is_weak,
                    row.last_modified_s.is_some(),
                ),
            )
        };
        assert_eq!(says(&row), says(assumed), "{uri}");
    }
}
