//! What nodes tell each other of what they hold, and what that is good for.

use crate::nodes::{Nodes, ask_as_peer, fresh, member};
use crate::support::{RawClient, ScriptedOrigin, span};
use std::sync::{Arc, Mutex};
use weir_measure::Metric;
use weir_proxy::config::Config;
use xtask::closed_port::ClosedPort;

const ASKED: &str = "GET /weir/digest HTTP/1.1\r\nHost: b\r\n";
const MEMBER: &str = "Weir-Peer: node=a, mode=digests\r\n";

pub(crate) fn ask_often(config: &mut Config) {
    config.cluster.digest_interval = span("1s");
    config.cluster.digest_memory = "1MiB".parse().expect("a size");
}

/// Waits until node number `at` has begun and ended a round of questions.
pub(crate) fn wait_for_round(cluster: &Nodes, at: usize) {
    let node = &cluster.nodes[at];
    let taken = node.count(Metric::DigestsTaken);
    // one may be under way that began before
    let each_round = cluster.nodes.len() as u64 - 1;
    node.wait_for_at_least(Metric::DigestsTaken, taken + 2 * each_round);
}

#[test]
fn while_the_owner_is_gone_what_another_node_holds_is_not_requested_from_the_origin() {
    let mut cluster = Nodes::start(fresh);
    let paths: Vec<String> = cluster.paths_of(2).take(8).collect();
    // node a stores them while it reaches none of the others
    let closed = [(); 2].map(|()| ClosedPort::hold().expect("a port"));
    cluster.nodes[0].reload(|config| {
        for (other, closed) in config.cluster.members[1..].iter_mut().zip(&closed) {
            *other = member(&other.name, closed.address());
        }
    });
    for path in &paths {
        assert_eq!(cluster.get(0, path).text(), *path);
        assert_eq!(cluster.asked(path), 2);
    }
    cluster.nodes[1].reload(ask_often);
    wait_for_round(&cluster, 1);
    let owner = cluster.nodes.pop().expect("three nodes");
    assert!(owner.stop().join().expect("no panic"));
    for path in &paths {
        let response = cluster.get(1, path);
        assert_eq!(response.text(), *path);
        assert!(
            response
                .head
                .all("cache-status")
                .join(",")
                .contains("weir;hit")
        );
        assert_eq!(cluster.asked(path), 2, "{path}");
    }
    assert!(cluster.nodes[1].count(Metric::DigestBytes) > 0);
}

#[test]
fn digest_is_for_members_alone() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    let told = RawClient::connect(peers).ask(format!("{ASKED}{MEMBER}\r\n"));
    assert_eq!(told.status(), 200);
    assert!(told.body.starts_with(b"weirdgst\x01\x00"));
    assert!(told.head.has("weir-peer"));
    for refused in [
        format!("{ASKED}\r\n"),
        format!("{ASKED}Weir-Peer: node=z, mode=digests\r\n\r\n"),
        format!("{ASKED}{MEMBER}{MEMBER}\r\n"),
        format!("{ASKED}Weir-Peer: node=a, mode=gateway, proof=:YQ==:\r\n\r\n"),
    ] {
        let response = RawClient::connect(peers).ask(&refused);
        assert_eq!(response.status(), 403, "{refused}");
    }
    let of_client = cluster.nodes[1]
        .client()
        .ask(format!("{ASKED}{MEMBER}\r\n"));
    assert_eq!(
        of_client.text(),
        "/weir/digest",
        "it is a path of the origin"
    );
    let absolute = ask_as_peer(peers, "/weir/digest", "Weir-Peer: node=a, mode=gateway\r\n");
    assert_eq!(
        absolute.text(),
        "/weir/digest",
        "it is a path of the origin"
    );
}

#[test]
fn node_is_told_what_was_stored_since_it_asked() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    let ask = |known: &str| {
        let target = format!("GET /weir/digest{known} HTTP/1.1\r\nHost: b\r\n{MEMBER}\r\n");
        RawClient::connect(peers).ask(target).body
    };
    let whole = ask("");
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("8 bytes"));
    let (epoch, additions) = (number(10), number(18));
    cluster.path_of(1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let since = ask(&format!("?{epoch}-{additions}"));
        assert_eq!(
            since[..26],
            [b"weirdgst\x01\x01", &whole[10..26]].concat()[..]
        );
        // the store is walked at most once a second
        if since.len() == 30 + 16 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{since:?}");
    }
    assert_eq!(ask(&format!("?{}-0", epoch ^ 1))[9], 0, "the whole");
}

/// A whole message as a node without a secret has it: what each response has at first, and blocks.
fn whole(blocks: u32, sent: usize) -> Vec<u8> {
    let mut message = b"weirdgst\x01\x00".to_vec();
    message.extend_from_slice(&7_u64.to_le_bytes());
    message.extend_from_slice(&0_u64.to_le_bytes());
    message.extend_from_slice(&blocks.to_le_bytes());
    message.resize(62 + 64 * sent, 0);
    message
}

/// What node c answers to a question for its digest, and how node a counts it.
struct Answer {
    name: &'static str,
    fields: String,
    content: Vec<u8>,
    counted: Metric,
}

const REPORT: &str = "Weir-Peer: node=c, state=in, outstanding=0, miss-pressure=0";

impl Answer {
    fn new(name: &'static str, content: impl Into<Vec<u8>>, counted: Metric) -> Self {
        let content = content.into();
        Self {
            name,
            fields: format!("{REPORT}\r\nContent-Length: {}", content.len()),
            content,
            counted,
        }
    }

    /// With these fields in their place.
    fn with(self, fields: String) -> Self {
        Self { fields, ..self }
    }
}

/// Has node a ask the others once for each of `answers`, with so much memory for digests.
fn check_answers(memory: &str, answers: Vec<Answer>) {
    let cluster = Nodes::start(fresh);
    let answer: Arc<Mutex<Vec<u8>>> = Arc::default();
    let next = Arc::clone(&answer);
    let impostor = ScriptedOrigin::new().answering(move |head, _| {
        let asked = head.start_line();
        assert_eq!(asked, "GET /weir/digest HTTP/1.1", "for the whole");
        next.lock().expect("no panic").clone()
    });
    let node = &cluster.nodes[0];
    let counted = [
        Metric::DigestsTaken,
        Metric::DigestsRefused,
        Metric::DigestsFailed,
    ];
    let mut expected = [0, 0, 0];
    for Answer {
        name,
        fields,
        content,
        counted: by,
    } in answers
    {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
        *answer.lock().expect("no panic") = [head.as_bytes(), &content].concat();
        // each reload begins a round of questions, and nothing else does
        node.reload(|config| {
            config.cluster.members[2] = member("c", impostor.address());
            config.cluster.digest_interval = span("1h");
            config.cluster.digest_memory = memory.parse().expect("a size");
        });
        // node b has a digest each time, and is asked first
        expected[0] += 1;
        node.wait_for_at_least(Metric::DigestsTaken, expected[0]);
        let place = counted.iter().position(|metric| *metric == by);
        expected[place.expect("one of them")] += 1;
        node.wait_for_at_least(by, expected[place.expect("one of them")]);
        let counts = counted.map(|metric| node.count(metric));
        assert_eq!(counts, expected, "{name}");
    }
    assert_eq!(node.count(Metric::PeersFailed), 0, "it is not ejected");
    let other = cluster.path_of(1);
    assert_eq!(cluster.get(0, &other).text(), other);
}

#[test]
fn digest_that_cannot_be_read_is_refused_and_counted_and_all_nodes_are_asked_on() {
    use Metric::{DigestsFailed, DigestsRefused};
    let additions = [b"weirdgst\x01\x01", &[0; 20][..]].concat();
    let sealed = {
        let mut message = whole(1, 1);
        message[46] = 1;
        message
    };
    check_answers(
        "1GiB",
        vec![
            Answer::new("another file", *b"squiddgst", DigestsRefused),
            Answer::new("nothing", *b"", DigestsRefused),
            Answer::new("another version", *b"weirdgst\x09\x00", DigestsRefused),
            Answer::new("another kind", *b"weirdgst\x01\x02", DigestsRefused),
            Answer::new("a head cut short", *b"weirdgst\x01\x00abc", DigestsRefused),
            Answer::new("no blocks", whole(0, 0), DigestsRefused),
            Answer::new("fewer blocks", whole(2, 1), DigestsRefused),
            Answer::new("more blocks", whole(1, 2), DigestsRefused),
            Answer::new("another secret", sealed, DigestsRefused),
            Answer::new("additions to nothing", additions, DigestsRefused),
            Answer::new("a stranger's", whole(1, 1), DigestsFailed)
                .with("Content-Length: 126".into()),
            Answer::new("its own", whole(1, 1), DigestsFailed)
                .with(format!("{REPORT}, own\r\nContent-Length: 126")),
            Answer::new("another node's", whole(1, 1), DigestsFailed).with(format!(
                "{}\r\nContent-Length: 126",
                REPORT.replace("node=c", "node=b")
            )),
        ],
    );
}

#[test]
fn digest_of_64_mebibytes_is_taken_and_one_of_a_block_more_is_refused() {
    const BLOCKS: usize = (64 << 20) / 64;
    let blocks = u32::try_from(BLOCKS).expect("blocks");
    let length = |bytes: usize| format!("{REPORT}\r\nContent-Length: {bytes}");
    check_answers(
        "1GiB",
        vec![
            // no byte of it is sent: its length alone is too much
            Answer::new("a long one", *b"", Metric::DigestsRefused)
                .with(length(62 + 64 * BLOCKS + 1)),
            // the rest of it is not sent
            Answer::new(
                "one that says so",
                [b"3e\r\n", &whole(blocks + 1, 0)[..]].concat(),
                Metric::DigestsRefused,
            )
            .with(format!("{REPORT}\r\nTransfer-Encoding: chunked")),
            Answer::new("the largest", whole(blocks, BLOCKS), Metric::DigestsTaken),
        ],
    );
}

#[test]
fn digest_for_which_there_is_no_memory_is_refused() {
    // node a has one of its own, and that of node b: 5120 bytes each, and what was added last
    check_answers(
        "1MiB",
        vec![
            Answer::new("too large", whole(1 << 14, 1 << 14), Metric::DigestsRefused),
            Answer::new(
                "small enough",
                whole(1 << 13, 1 << 13),
                Metric::DigestsTaken,
            ),
        ],
    );
}

#[test]
fn no_digest_is_asked_for_or_kept_without_memory_for_it() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    node.reload(ask_often);
    node.wait_for_at_least(Metric::DigestsTaken, 2);
    node.reload(|config| config.cluster.digest_memory = "0".parse().expect("a size"));
    node.wait_for_at_most(Metric::DigestBytes, 0);
}

#[test]
fn node_whose_digest_was_taken_is_known_to_answer() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    let heard_of = || {
        let cluster = node.control().cluster().expect("a cluster");
        let members = cluster.members.iter().filter(|member| !member.is_own);
        members.filter(|member| member.report.is_some()).count()
    };
    assert_eq!(heard_of(), 0);
    node.reload(ask_often);
    node.wait_for_at_least(Metric::DigestsTaken, 2);
    assert_eq!(heard_of(), 2);
}
