//! Request heads that were received of late, with what was found out of them.
//!
//! What is read, judged and hashed of a head depends on its bytes, on the settings in force, and on
//! the mode and scheme of its listener. Clients that ask for popular targets send the same bytes
//! again and again: a head with the same bytes as one that is known is not parsed, judged and
//! hashed again. Nothing else is remembered: who asks, what time it is and what is stored is looked
//! at for each request.
//!
//! * A head is known if *all* of its bytes are those of the one that is remembered. The hash says
//!   only where to look: clients that make it collide have their heads parsed, no more.
//! * Other settings forget all.
//! * A head takes a place when it came twice, and the one that has the place did not come between.
//!   So heads that come once cost a hash and a comparison each, and no copy.
//! * Heads with credentials or cookies are not remembered: they are for one user, and are to be in
//!   memory for no longer than their requests last.

use super::facts::Request;
use super::judge::ReceivedRequest;
use super::who_asked::has_claims;
use crate::config::Mode;
use crate::settings::Settings;
use std::rc::Rc;
use std::sync::{self, Arc};
use weir_policy::{Digest, Secret};
use weir_semantics::{Known, RequestFacts, Scheme, identify};
use weir_wire::{RequestHead, Version};

/// Heads that a worker remembers, one for each value of a byte.
const RECENT_HEADS: usize = 1 << u8::BITS;

/// The largest head that is remembered, bytes: those of browsers have some hundred. All of a worker
/// take at most 1 MiB, with what was found out of them.
const HEAD_BYTES_MAX: usize = 1024;

/// A head, and what was found out of it.
#[derive(Debug)]
pub(crate) struct RecentHead {
    /// The head as received.
    bytes: Box<[u8]>,
    /// The scheme of requests to the listener that name none.
    scheme: Scheme,
    pub(super) request: Request,
    pub(super) facts: RequestFacts,
    /// Digest of the cache key.
    pub(super) key: Digest,
    /// It says for whom it is forwarded, which not each client may.
    has_claims: bool,
}

impl RecentHead {
    /// What was received.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Whether it has a field that is believed of trusted proxies alone.
    pub(crate) const fn has_claims(&self) -> bool {
        self.has_claims
    }

    fn is(&self, listener: (Mode, Scheme), bytes: &[u8]) -> bool {
        *self.bytes == *bytes && (self.request.mode, self.scheme) == listener
    }
}

/// A number made of the bytes of a head, and of the mode and scheme of its listener: clients of
/// several listeners may send the same ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadHash(u64);

impl HeadHash {
    fn of((mode, scheme): (Mode, Scheme), bytes: &[u8]) -> Self {
        // the golden ratio spreads neighbours (Knuth, volume 3, 6.4)
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
        let (words, _) = bytes.as_chunks();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let last = bytes.last_chunk().map_or(0, |it| u64::from_le_bytes(*it));
        let listener = match (mode, scheme) {
            (Mode::Forward, Scheme::Http) => 0,
            (Mode::Forward, Scheme::Https) => 1,
            (Mode::Gateway, Scheme::Http) => 2,
            (Mode::Gateway, Scheme::Https) => 3,
        };
        let start = mix(listener, bytes.len() as u64);
        Self(mix(words.fold(start, mix), last))
    }

    /// The place of the head: by the bits that all bytes have a part in.
    fn place(self) -> usize {
        let [highest, ..] = self.0.to_be_bytes();
        usize::from(highest)
    }
}

/// What is known of bytes that were received.
#[derive(Clone, Debug)]
pub(crate) enum Recent {
    /// They are this head, from the first to the last.
    Known(Rc<RecentHead>),
    /// Nothing; if they are a head, it may be remembered.
    New(HeadHash),
    /// Nothing, and they are not to be remembered.
    Unfit,
}

/// The heads of one worker.
#[derive(Debug, Default)]
pub(crate) struct RecentHeads {
    /// The settings that they were judged by.
    settings: sync::Weak<Settings>,
    /// Empty until the first head.
    places: Vec<Place>,
}

#[derive(Clone, Debug, Default)]
struct Place {
    /// Of the last bytes that came here.
    last: HeadHash,
    head: Option<Rc<RecentHead>>,
}

impl RecentHeads {
    /// What is known of `bytes` that a listener of this mode and scheme has received.
    #[inline]
    pub(crate) fn find(
        &mut self,
        settings: &Arc<Settings>,
        listener: (Mode, Scheme),
        bytes: &[u8],
    ) -> Recent {
        if bytes.len() > HEAD_BYTES_MAX {
            return Recent::Unfit;
        }
        // no other settings get the place of these while there is a reference to it
        if !std::ptr::eq(self.settings.as_ptr(), Arc::as_ptr(settings)) {
            self.begin(settings);
        }
        let hash = HeadHash::of(listener, bytes);
        let Some(place) = self.places.get_mut(hash.place()) else {
            return Recent::New(hash);
        };
        match &place.head {
            Some(head) if head.is(listener, bytes) => {
                place.last = hash;
                Recent::Known(Rc::clone(head))
            }
            _ => Recent::New(hash),
        }
    }

    /// Forgets all: they were judged by other settings.
    #[cold]
    fn begin(&mut self, settings: &Arc<Settings>) {
        *self = Self {
            settings: Arc::downgrade(settings),
            places: Vec::new(),
        };
    }

    /// The head with this hash has come, and was judged by these settings; it is made if it is to
    /// be remembered.
    #[inline]
    pub(crate) fn came(
        &mut self,
        settings: &Arc<Settings>,
        hash: HeadHash,
        make: impl FnOnce() -> Option<RecentHead>,
    ) {
        if !std::ptr::eq(self.settings.as_ptr(), Arc::as_ptr(settings)) {
            return;
        }
        match self.places.get_mut(hash.place()) {
            Some(place) if place.last == hash => {
                if let Some(head) = make() {
                    place.head = Some(Rc::new(head));
                }
            }
            Some(place) => place.last = hash,
            None => {
                self.places = vec![Place::default(); RECENT_HEADS];
                self.places[hash.place()].last = hash;
            }
        }
    }
}

impl RecentHead {
    /// `received` was judged of `head`, all of these bytes, which a listener of this scheme has
    /// received; `None` if it is not to be remembered.
    #[inline(never)]
    pub(crate) fn of(
        bytes: &[u8],
        head: &RequestHead<'_, '_>,
        received: &ReceivedRequest<'_>,
        (scheme, secret): (Scheme, &Secret),
    ) -> Option<Self> {
        let facts = received.facts;
        let is_login = |name| identify(name) == Some(Known::ProxyAuthorization);
        let has_login = head.fields.iter().any(|line| is_login(line.name));
        let has_secrets = facts.has_authorization || facts.has_cookie || has_login;
        // of HTTP/1.0 the authority of the listener may have a part in the target
        let is_fit = head.version == Version::Http11 && !has_secrets;
        is_fit.then(|| Self {
            bytes: bytes.into(),
            scheme,
            request: Request::new(received, head),
            facts,
            key: received.key(secret),
            has_claims: has_claims(head.fields),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::request::judge::JudgeRules;
    use std::net::IpAddr;
    use weir_semantics::{Authority, HostName};
    use weir_wire::{LineBuffer, Progress, parse_request};

    const SECRET: Secret = Secret([7; 16]);
    const GATEWAY: (Mode, Scheme) = (Mode::Gateway, Scheme::Http);

    /// Receives heads, as the fast path does.
    struct Receiver {
        settings: Arc<Settings>,
        heads: RecentHeads,
        listener: (Mode, Scheme),
        client: IpAddr,
    }

    impl Receiver {
        fn new(listener: (Mode, Scheme)) -> Self {
            Self {
                settings: Arc::new(Settings::new(Config::default(), "x")),
                heads: RecentHeads::default(),
                listener,
                client: IpAddr::from([127, 0, 0, 1]),
            }
        }

        /// Whether the head was known, and what was found out of it; the status if it is refused.
        fn receive(&mut self, text: &str) -> (bool, Result<String, u16>) {
            let (mode, scheme) = self.listener;
            let rules = JudgeRules {
                settings: &self.settings,
                mode,
                default: &Authority::parse("default.example").expect("an authority"),
                scheme,
                tls: None,
                client: Some(self.client),
            };
            let bytes = text.as_bytes();
            let recent = self.heads.find(&self.settings, self.listener, bytes);
            let mut lines = LineBuffer::new();
            let mut host = HostName::EMPTY;
            if let Recent::Known(known) = &recent {
                let head = known.request().head_in(&mut lines);
                let received = ReceivedRequest::again(known, &rules);
                let found = received.map(|received| found(&head, &received));
                return (true, found.map_err(|answer| answer.status));
            }
            let parsed = parse_request(bytes, &self.settings.heads, &mut lines);
            let Ok(Progress::Complete { head, consumed }) = parsed else {
                panic!("a head: {parsed:?}");
            };
            let received = match ReceivedRequest::judge(&head, &rules, &mut host) {
                Ok(received) => received,
                Err(answer) => return (false, Err(answer.status)),
            };
            if let Recent::New(hash) = recent
                && consumed == bytes.len()
            {
                self.heads.came(&self.settings, hash, || {
                    RecentHead::of(bytes, &head, &received, (scheme, &SECRET))
                });
            }
            (false, Ok(found(&head, &received)))
        }

        /// Receives it until it is known; `false` if it never is.
        fn learn(&mut self, text: &str) -> bool {
            (0..4).any(|_| self.receive(text).0)
        }
    }

    /// All that the head says.
    fn found(head: &RequestHead<'_, '_>, received: &ReceivedRequest<'_>) -> String {
        let ReceivedRequest {
            mode,
            method,
            target,
            form,
            version,
            body,
            facts,
            is_persistent,
            upgrade,
            ..
        } = received;
        let key = received.key(&SECRET);
        format!(
            "{head:?} {mode:?} {method:?} {target:?} {form:?} {version:?} {body:?} {facts:?} \
             {is_persistent} {upgrade} {key:?}"
        )
    }

    fn get(path: &str, fields: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
    }

    #[test]
    fn head_is_known_once_it_came_twice() {
        let mut receiver = Receiver::new(GATEWAY);
        let text = get("/a", "");
        let known = [(); 4].map(|()| receiver.receive(&text).0);
        assert_eq!(known, [false, false, true, true]);
    }

    #[test]
    fn known_head_says_what_it_said_when_it_was_read() {
        let lines: String = (0..20)
            .map(|line| format!("x-{line}: {line}\r\n"))
            .collect();
        let heads = [
            get("/", ""),
            get("/a?b=c", "Accept: */*\r\nX:\r\nx:  two words \r\n"),
            get("/cgi-bin/x", "Cache-Control: max-age=5, no-transform\r\n"),
            get(
                "/a",
                "Pragma: no-cache\r\nRange: bytes=0-5\r\nIf-Range: \"a\"\r\n",
            ),
            get("/a", "If-None-Match: \"b\"\r\nExpect: 100-continue\r\n"),
            get("/a", "Connection: close, x\r\nX: 1\r\n"),
            get("/a", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
            get("/a", &lines),
            get("http://B.example:81/x", ""),
            get("http://b.example", ""),
            "HEAD /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n".to_owned(),
            "OPTIONS * HTTP/1.1\r\nhOST: [::1]:8080\r\n\r\n".to_owned(),
            "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n".to_owned(),
            "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            "\r\nPURGE /a HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        ];
        let mut receiver = Receiver::new(GATEWAY);
        for text in &heads {
            let first = receiver.receive(text);
            assert!(receiver.learn(text), "{text}");
            let again = receiver.receive(text);
            assert!(!first.0 && again.0 && first.1.is_ok(), "{text}");
            assert_eq!(first.1, again.1, "{text}");
        }
    }

    #[test]
    fn head_that_differs_in_any_byte_is_not_known() {
        let mut receiver = Receiver::new(GATEWAY);
        let text = get("/abc", "Accept-Encoding: gzip\r\n");
        assert!(receiver.learn(&text));
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] ^= 1;
            let recent = receiver.heads.find(&receiver.settings, GATEWAY, &other);
            assert!(!matches!(recent, Recent::Known(_)), "{at}");
            let recent = receiver
                .heads
                .find(&receiver.settings, GATEWAY, &other[..at]);
            assert!(!matches!(recent, Recent::Known(_)), "{at}");
        }
        let behind = text.clone() + &text;
        let recent = receiver
            .heads
            .find(&receiver.settings, GATEWAY, behind.as_bytes());
        assert!(!matches!(recent, Recent::Known(_)));
        assert!(receiver.receive(&text).0);
    }

    #[test]
    fn same_hash_with_other_bytes_is_another_head() {
        let mut receiver = Receiver::new(GATEWAY);
        let text = get("/abc", "");
        assert!(receiver.learn(&text));
        let places = &mut receiver.heads.places;
        let place = &mut places[HeadHash::of(GATEWAY, text.as_bytes()).place()];
        let known = place.head.take().expect("it is known");
        // as if these bytes had the hash of the others
        let other = get("/abd", "");
        receiver.heads.places[HeadHash::of(GATEWAY, other.as_bytes()).place()].head = Some(known);
        assert!(!receiver.receive(&other).0);
    }

    #[test]
    fn head_with_secrets_of_a_user_is_not_remembered() {
        let mut receiver = Receiver::new(GATEWAY);
        for field in ["Authorization", "cookie", "Proxy-Authorization"] {
            assert!(
                !receiver.learn(&get("/a", &format!("{field}: x\r\n"))),
                "{field}"
            );
        }
        let http10 = "GET /a HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n";
        assert!(!receiver.learn(http10));
        assert!(receiver.learn(&get("/a", "X-Cookie: x\r\n")));
    }

    #[test]
    fn known_head_tells_whether_it_has_what_few_clients_may_say() {
        let mut receiver = Receiver::new(GATEWAY);
        for (fields, expected) in [
            ("", false),
            ("Accept: */*\r\n", false),
            ("forwarded: for=a\r\n", true),
            ("X-Forwarded-For: 192.0.2.1\r\n", true),
            ("x_forwarded_host: b\r\n", true),
        ] {
            let text = get("/a", fields);
            assert!(receiver.learn(&text), "{fields}");
            let heads = &mut receiver.heads;
            let recent = heads.find(&receiver.settings, GATEWAY, text.as_bytes());
            let Recent::Known(known) = recent else {
                panic!("it is known");
            };
            assert_eq!(known.has_claims(), expected, "{fields}");
        }
    }

    #[test]
    fn large_head_is_not_remembered() {
        let mut receiver = Receiver::new(GATEWAY);
        let rest = get("/", "").len();
        let of = |bytes: usize| get(&format!("/{}", "a".repeat(bytes - rest)), "");
        assert!(receiver.learn(&of(HEAD_BYTES_MAX)));
        assert!(!receiver.learn(&of(HEAD_BYTES_MAX + 1)));
    }

    #[test]
    fn client_that_may_not_use_the_listener_is_refused_with_a_known_head() {
        let mut receiver = Receiver::new((Mode::Forward, Scheme::Http));
        let text = get("http://a.example/a", "");
        assert!(receiver.learn(&text));
        receiver.client = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(receiver.receive(&text), (true, Err(403)));
        receiver.client = IpAddr::from([127, 0, 0, 2]);
        assert!(receiver.receive(&text).1.is_ok());
    }

    #[test]
    fn head_is_read_again_under_other_settings_and_at_other_listeners() {
        let mut receiver = Receiver::new(GATEWAY);
        let text = get("http://a.example/a", "");
        assert!(receiver.learn(&text));
        receiver.listener = (Mode::Gateway, Scheme::Https);
        assert!(!receiver.receive(&text).0);
        receiver.listener = (Mode::Forward, Scheme::Http);
        assert!(!receiver.receive(&text).0);
        receiver.listener = GATEWAY;
        assert!(receiver.receive(&text).0);
        receiver.settings = Arc::new(Settings::new(Config::default(), "x"));
        assert!(!receiver.receive(&text).0);
        assert!(receiver.learn(&text));
    }

    #[test]
    fn head_takes_a_place_if_it_comes_twice_and_the_other_one_does_not() {
        let mut receiver = Receiver::new(GATEWAY);
        let place = |text: &str| HeadHash::of(GATEWAY, text.as_bytes()).place();
        let one = get("/0", "");
        let mut others = (1..).map(|number| get(&format!("/{number}"), ""));
        let other = others.find(|other| place(other) == place(&one));
        let other = other.expect("one in 256");
        assert!(receiver.learn(&one));
        for _ in 0..3 {
            assert!(!receiver.receive(&other).0);
            assert!(receiver.receive(&one).0);
        }
        assert!(receiver.learn(&other));
        assert!(!receiver.receive(&one).0 && receiver.receive(&other).0);
        assert_eq!(receiver.heads.places.len(), RECENT_HEADS);
    }
}
