//! Clients: each connection asks as one user after the other, and looks at every byte.

use super::http2::{Sent, SharedConnection};
use super::purge_log::Purged;
use super::random::{Dice, PRIVATE, USER_BYTES, VARYING, user};
use super::responses::{Kind, LINE_BYTES, is_tagged, version, written};
use super::topology::Topology;
use crate::support::Head;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Users there are.
const USERS: u64 = 1000;

/// URLs there are; the first are asked for far more often.
pub(crate) const URLS: u64 = 210;
pub(crate) const POPULAR: u64 = 14;

/// Spellings of one host.
const SPELLINGS: [&str; 5] = [
    "A.EXAMPLE",
    "a.example:80",
    "a.example:080",
    "a.example:",
    "a.Example:0080",
];

/// Requests that are under way at once on a connection of HTTP/2, at most.
const TOGETHER: u64 = 6;

/// What `X-Group` says.
const GROUPS: [&str; 2] = ["red", "blue"];

/// Tags that `X-Variant` gives, beside one for each user.
const TAGS: [&str; 2] = ["small", "large"];

/// How responses came about, as far as they tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) hits: u64,
    pub(crate) from_disk: u64,
    pub(crate) collapsed: u64,
    pub(crate) delayed: u64,
    pub(crate) while_revalidate: u64,
    pub(crate) stale: u64,
    pub(crate) parts: u64,
    pub(crate) private: u64,
    pub(crate) validated: u64,
    pub(crate) cut: u64,
    /// Stored for a tag that a module gave the request.
    pub(crate) tagged_hits: u64,
    /// Answers to unsafe requests.
    pub(crate) changes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.from_disk += other.from_disk;
        self.collapsed += other.collapsed;
        self.delayed += other.delayed;
        self.while_revalidate += other.while_revalidate;
        self.stale += other.stale;
        self.parts += other.parts;
        self.private += other.private;
        self.validated += other.validated;
        self.cut += other.cut;
        self.tagged_hits += other.tagged_hits;
        self.changes += other.changes;
    }

    pub(crate) fn never_happened(&self) -> Vec<&'static str> {
        [
            ("hits", self.hits),
            ("from disk", self.from_disk),
            ("collapsed", self.collapsed),
            ("delayed", self.delayed),
            ("while revalidate", self.while_revalidate),
            ("stale", self.stale),
            ("parts", self.parts),
            ("private", self.private),
            ("validated", self.validated),
            ("cut", self.cut),
            ("tagged hits", self.tagged_hits),
            ("changes", self.changes),
        ]
        .into_iter()
        .filter(|(_, count)| *count < 3)
        .map(|(name, _)| name)
        .collect()
    }
}

/// A connection.
pub(crate) struct Client<'a> {
    purged: &'a Purged,
    address: SocketAddr,
    stream: Option<TcpStream>,
    unused: Vec<u8>,
    /// Several users at once, by HTTP/2.
    shared: Option<SharedConnection>,
    topology: Topology,
    seed: u64,
    dice: Dice,
    pub(crate) tally: Tally,
    /// What was wrong, the first of each kind of URL.
    pub(crate) wrong: BTreeMap<Kind, String>,
}

/// A request, and whose it is.
struct Request {
    user: String,
    path: u64,
    /// `X-Group`, unless it goes no further than the proxy.
    group: Option<&'static str>,
    /// What the module puts before its content, if that is for the path.
    tag: Option<String>,
    is_read: bool,
    is_head: bool,
    is_unsafe: bool,
    /// What was there before is purged.
    least_version: u64,
    text: String,
}

impl<'a> Client<'a> {
    pub(crate) fn new(
        purged: &'a Purged,
        address: SocketAddr,
        topology: Topology,
        seed: u64,
        number: u64,
    ) -> Self {
        Self {
            purged,
            address,
            topology,
            stream: None,
            unused: Vec::new(),
            shared: topology
                .speaks_http2()
                .then(|| SharedConnection::new(address)),
            seed,
            dice: Dice::new(seed, number.wrapping_add(0x0063_6c69_656e_7473)),
            tally: Tally::default(),
            wrong: BTreeMap::new(),
        }
    }

    /// Asks for something, and notes if there is something in the response that is not for its
    /// user.
    pub(crate) fn ask(&mut self) {
        if let Some(shared) = self.shared.take() {
            self.ask_together(shared);
            return;
        }
        let request = self.request();
        match self.exchange(&request) {
            Some((head, content)) => self.take(&request, &head, &content),
            None => {
                self.stream = None;
                self.unused.clear();
                self.tally.cut += 1;
            }
        }
    }

    /// Asks as several users at once, on one connection.
    fn ask_together(&mut self, mut shared: SharedConnection) {
        let count = 1 + self.dice.below(TOGETHER);
        let requests: Vec<Request> = (0..count).map(|_| self.request()).collect();
        let sent = requests.iter().map(|request| {
            let is_left = !request.is_unsafe && self.dice.percent(4);
            let left_after = usize::try_from(self.dice.below(20_000)).ok();
            Sent {
                text: request.text.clone(),
                left_after: left_after.filter(|_| is_left),
            }
        });
        let sent: Vec<Sent> = sent.collect();
        let received = shared.exchange(&sent);
        for (request, received) in requests.iter().zip(received) {
            match received {
                Some(received) if received.is_whole => {
                    self.take(request, &received.head, &received.content);
                }
                Some(received) => {
                    self.look(request, &received.head, &received.content);
                    self.tally.cut += 1;
                }
                None => self.tally.cut += 1,
            }
        }
        self.shared = Some(shared);
    }

    /// Looks at a whole response.
    fn take(&mut self, request: &Request, head: &Head, content: &[u8]) {
        self.look(request, head, content);
        if request.is_unsafe && (200..400).contains(&head.status()) {
            // no node of a cluster serves what was there before from now on
            let versions = content.split(|byte| *byte == b'\n').filter_map(version);
            let version = versions.max().expect("whole content");
            if self.topology.shares_purges() {
                self.purged.note(request.path, version);
            }
            self.tally.changes += 1;
        }
        self.count(request, head);
    }

    fn look(&mut self, request: &Request, head: &Head, content: &[u8]) {
        if let Some(wrong) = wrong(request, head, content) {
            let (text, head) = (&request.text, &head.text);
            let all = format!("{wrong}:\n{text}{head}");
            self.wrong.entry(Kind::of(request.path)).or_insert(all);
        }
    }

    fn request(&mut self) -> Request {
        let dice = &mut self.dice;
        let user = user(self.seed, dice.below(USERS));
        let path = if dice.percent(50) {
            dice.below(POPULAR)
        } else {
            dice.below(URLS)
        };
        let method = match dice.below(100) {
            0..=7 => "HEAD",
            8..=9 => "POST",
            _ => "GET",
        };
        let host = if dice.percent(30) {
            SPELLINGS[usize::try_from(dice.below(5)).expect("small")]
        } else {
            "a.example"
        };
        let token = format!("{PRIVATE}{user}");
        // what changes something reaches the origin as it is
        let in_query = (method != "POST" && dice.percent(20)).then_some(&*token);
        let target = self.topology.target(host, &written(path), in_query);
        let mut text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
        let first = dice.below(50_000);
        let last = first + dice.below(40_000);
        let tag = ["\"same\"".to_owned(), format!("\"{path}.1\"")];
        let tag = &tag[usize::from(dice.percent(50))];
        for (percent, line) in [
            (45, format!("Cookie: sid={token}\r\n")),
            (20, format!("Authorization: Bearer {token}\r\n")),
            (15, format!("Range: bytes={first}-{last}\r\n")),
            (10, format!("If-None-Match: {tag}\r\n")),
        ] {
            if dice.percent(percent) {
                text.push_str(&line);
            }
        }
        let directive = match dice.below(100) {
            0..=9 => "no-cache",
            10..=13 => "no-store",
            14..=17 => "max-age=0",
            18..=21 => "max-stale",
            22..=23 => "only-if-cached",
            _ => "",
        };
        if !directive.is_empty() {
            text.push_str(&format!("Cache-Control: {directive}\r\n"));
        }
        let group = dice
            .percent(50)
            .then(|| GROUPS[usize::from(dice.percent(50))]);
        // HTTP/2 has no such fields
        let is_hidden = dice.percent(30) && !self.topology.speaks_http2();
        if let Some(group) = group {
            text.push_str(&format!("X-Group: {group}\r\n"));
        }
        if is_hidden {
            text.push_str("Connection: X-Group\r\n");
        }
        let tag = match dice.below(10) {
            0..=4 => TAGS[usize::from(dice.percent(50))].to_owned(),
            5 => format!("{VARYING}{user}"),
            _ => String::new(),
        };
        if !tag.is_empty() {
            text.push_str(&format!("X-Variant: {tag}\r\n"));
        }
        if method == "POST" {
            text.push_str("Content-Length: 0\r\n");
        }
        text.push_str("\r\n");
        Request {
            user,
            path,
            group: group.filter(|_| !is_hidden),
            tag: is_tagged(path).then(|| format!("[{tag}]")),
            is_read: method == "GET",
            is_head: method == "HEAD",
            is_unsafe: method == "POST",
            // looked up before it is sent
            least_version: self.purged.least_version(path),
            text,
        }
    }

    /// Sends and reads; none if it was cut. What came of a response that is cut is looked at too.
    fn exchange(&mut self, request: &Request) -> Option<(Head, Vec<u8>)> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).expect("the proxy listens");
            let patience = Some(crate::support::PATIENCE);
            stream.set_read_timeout(patience).expect("a socket");
            stream.set_nodelay(true).expect("a socket");
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut()?;
        stream.write_all(request.text.as_bytes()).ok()?;
        let head = loop {
            if let Some(at) = find(&self.unused, b"\r\n\r\n") {
                let rest = self.unused.split_off(at + 4);
                break Head::new(&std::mem::replace(&mut self.unused, rest));
            }
            self.read_more()?;
        };
        let content = if request.is_head || matches!(head.status(), 204 | 304) {
            Some(Vec::new())
        } else if head.is_chunked() {
            self.read_chunks()
        } else {
            self.read(head.length().unwrap_or(0))
        };
        let Some(content) = content else {
            let came = std::mem::take(&mut self.unused);
            self.look(request, &head, &came);
            return None;
        };
        if head.field("connection") == Some("close") {
            self.stream = None;
            self.unused.clear();
        }
        Some((head, content))
    }

    fn read_more(&mut self) -> Option<()> {
        let mut buffer = [0; 65_536];
        match self.stream.as_mut()?.read(&mut buffer) {
            Ok(count @ 1..) => self.unused.extend_from_slice(&buffer[..count]),
            Ok(0) => return None,
            Err(error) => {
                let is_reset = error.kind() == std::io::ErrorKind::ConnectionReset;
                assert!(is_reset, "nothing came: {error}");
                return None;
            }
        }
        Some(())
    }

    fn read(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.unused.len() < length {
            self.read_more()?;
        }
        let rest = self.unused.split_off(length);
        Some(std::mem::replace(&mut self.unused, rest))
    }

    fn read_chunks(&mut self) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        loop {
            let end = loop {
                match find(&self.unused, b"\r\n") {
                    Some(end) => break end,
                    None => self.read_more()?,
                }
            };
            let line = String::from_utf8(self.read(end + 2)?).expect("a size");
            let size = usize::from_str_radix(line.trim_end(), 16).expect("a size");
            content.extend(self.read(size)?);
            self.read(2)?;
            if size == 0 {
                return Some(content);
            }
        }
    }

    fn count(&mut self, request: &Request, head: &Head) {
        let tally = &mut self.tally;
        let says = |word| {
            u64::from(
                head.all("cache-status")
                    .iter()
                    .any(|status| status.contains(word)),
            )
        };
        tally.hits += says("hit");
        tally.from_disk += says("detail=disk");
        tally.collapsed += says("collapsed");
        tally.delayed += says("detail=delayed");
        tally.while_revalidate += says("detail=stale-while-revalidate");
        tally.stale += says("detail=stale-if-error") + says("detail=disconnected");
        tally.parts += u64::from(head.status() == 206 && says("hit") > 0);
        tally.private += u64::from(head.text.contains(PRIVATE));
        tally.validated += says("fwd-status=304");
        let is_tagged = request.tag.as_ref().is_some_and(|tag| tag != "[]");
        tally.tagged_hits += u64::from(is_tagged) * says("hit");
    }
}

/// What stands before content that a module for the path changes, and is for requests with the same
/// tag alone; and the rest of it.
fn untagged<'c>(
    request: &Request,
    head: &Head,
    content: &'c [u8],
) -> Result<&'c [u8], &'static str> {
    let is_from_start = match head.status() {
        206 => head
            .field("content-range")
            .is_some_and(|range| range.starts_with("bytes 0-")),
        // the proxy's own
        502 | 504 => false,
        _ => true,
    };
    let Some(tag) = request.tag.as_ref().filter(|_| is_from_start) else {
        return match content.starts_with(b"[") && request.tag.is_none() {
            true => Err("a tag where there is no module"),
            false => Ok(content),
        };
    };
    let known = tag.len().min(content.len());
    match content[..known] == tag.as_bytes()[..known] {
        true => Ok(&content[known..]),
        false => Err("content of another tag"),
    }
}

/// What is wrong with a response.
fn wrong(request: &Request, head: &Head, content: &[u8]) -> Option<String> {
    for bytes in [head.text.as_bytes(), content] {
        for mark in [PRIVATE, VARYING] {
            let mut rest = bytes;
            while let Some(at) = find(rest, mark.as_bytes()) {
                rest = &rest[at + mark.len()..];
                let known = &rest[..rest.len().min(USER_BYTES)];
                // the end of what was cut
                let is_own = request.user.as_bytes().starts_with(known);
                if !is_own && !known.starts_with(b"nobody") {
                    let known = String::from_utf8_lossy(known);
                    return Some(format!("something of {known}"));
                }
            }
        }
        if let Some(at) = find(bytes, b"host=")
            && !bytes[at..].starts_with(b"host=a.example;")
        {
            return Some("another spelling of the host".to_owned());
        }
    }
    let content = match untagged(request, head, content) {
        Ok(content) => content,
        Err(wrong) => return Some(wrong.to_owned()),
    };
    if Kind::of(request.path) == Kind::VaryGroup && request.is_read && head.status() == 200 {
        let expected = request
            .group
            .map_or("pub ".to_owned(), |group| format!("group {group} "));
        if !content.is_empty() && !content.starts_with(expected.as_bytes()) {
            return Some("content for another group".to_owned());
        }
    }
    let versions = content.split(|byte| *byte == b'\n').filter_map(version);
    if let Some(old) = versions.min()
        && old < request.least_version
    {
        let least = request.least_version;
        return Some(format!(
            "version {old}, and what was before {least} is purged"
        ));
    }
    let shared = format!("pub {:05} ", request.path);
    let mut lines = content.split(|byte| *byte == b'\n').enumerate().skip(1);
    let is_other = |(_, line): &(usize, &[u8])| {
        line.len() == LINE_BYTES - 1
            && line.starts_with(b"pub ")
            && !line.starts_with(shared.as_bytes())
            && !is_joined(line, &shared, &request.user)
    };
    lines.find(is_other).map(|(number, line)| {
        let line = String::from_utf8_lossy(line);
        format!("content of another URL in line {number}: {line}")
    })
}

/// Whether a line of shared content goes on as one of the user's own: the origin sends both under
/// one strong entity tag, so that the user may get the rest of one for the other.
fn is_joined(line: &[u8], shared: &str, user: &str) -> bool {
    let own = format!("{PRIVATE}{user} ");
    (0..shared.len()).any(|at| {
        line.starts_with(&shared.as_bytes()[..at]) && line[at..].starts_with(&own.as_bytes()[at..])
    })
}

pub(crate) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == what[0]) {
        if bytes[from + at..].starts_with(what) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}
