//! The labels of a family of counters.
//!
//! A label is a small closed enum: its values are known when we compile, so `/metrics` can never
//! grow with what clients send. Where a decision has a word (RFC 9211 for verdicts), the same word
//! stands here, in `Cache-Status` and in the access log.

// whole because: one table of words, each beside its meaning

/// A closed set of label values.
pub trait Label: Copy + Sized + 'static {
    /// Every value, in the order of [`Label::index`].
    const ALL: &'static [Self];
    /// The words of [`Label::ALL`].
    const WORDS: &'static [&'static str];
    /// What each of [`Label::ALL`] means, a paragraph.
    const ABOUT: &'static [&'static str];

    /// Place of this value in [`Label::ALL`].
    fn index(self) -> usize;

    /// The word shown in Prometheus, log and `Cache-Status`.
    fn word(self) -> &'static str {
        Self::WORDS[self.index()]
    }

    /// The value whose word is `word`. For start-up and tests: it searches.
    fn from_word(word: &str) -> Option<Self> {
        let place = Self::WORDS.iter().position(|known| *known == word)?;
        Self::ALL.get(place).copied()
    }
}

/// Declares label enums; adding a value is one line.
#[macro_export]
macro_rules! labels {
    ($(
        $(#[$outer:meta])*
        $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $word:literal, )+ }
    )+) => { $(
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[doc = $doc])+ #[doc = concat!("\n\nShown as `", $word, "`.")] $variant, )+ }

        impl $name {
            /// How many values there are.
            pub const COUNT: usize = <Self as $crate::Label>::ALL.len();
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str($crate::Label::word(*self))
            }
        }

        impl $crate::Label for $name {
            const ALL: &'static [Self] = &[$( Self::$variant, )+];
            const WORDS: &'static [&'static str] = &[$( $word, )+];
            const ABOUT: &'static [&'static str] = &[$( concat!($($doc),+), )+];

            #[inline]
            fn index(self) -> usize {
                self as usize
            }
        }
    )+ };
}

labels! {
    /// How a rule of the operator departs from RFC 9111.
    RuleDeviation {
        /// A directive of the request was ignored (`rule[].ignore`).
        RequestDirective = "request-directive",
        /// A stale response was served as fresh (`rule[].lifetime.forced`).
        LifetimeForced = "lifetime-forced",
        /// A response was served stale that nothing but a rule permits to be (`rule[].stale_for`).
        Stale = "stale",
        /// A response was stored, or one was used that was, since a directive of it was ignored
        /// (`rule[].ignore`).
        ResponseDirective = "response-directive",
        /// The same with one that forbids to share it (`rule[].share`).
        Shared = "shared",
        /// A query was dropped or sorted for the key (`rule[].key`).
        Key = "key",
    }

    /// How a request was answered: `hit`, the forward reasons of RFC 9211 §2.2, `collapsed` (§2.6),
    /// and what never reached the cache.
    Verdict {
        /// Answered from a stored response without a request to the next hop first.
        Hit = "hit",
        /// It waited for the response to another request and was answered by it: it was not
        /// forwarded itself.
        Collapsed = "collapsed",
        /// Nothing is stored under this target URI.
        UriMiss = "uri-miss",
        /// Something is stored, but for other values of the nominated fields (RFC 9111 §4.1).
        VaryMiss = "vary-miss",
        /// No stored response could be used, and neither `uri-miss` nor `vary-miss` says why.
        Miss = "miss",
        /// The request's own directives demanded forwarding.
        Request = "request",
        /// A stored response was stale and had to be validated or replaced.
        Stale = "stale",
        /// Only a part of the requested range is stored.
        Partial = "partial",
        /// Configuration or profile kept the request away from the cache.
        Bypass = "bypass",
        /// The method's semantics require forwarding.
        Method = "method",
        /// Refused by a rule of ours (client, destination, port, login, quota of a link) with 403
        /// or a similar status, or for want of room.
        Refused = "refused",
        /// The next hop could not be used: it cannot be reached, does not answer in time, or what
        /// it answers is no response. Answered with 502, 503 or 504, and with 404 where no route is
        /// for the host.
        Error = "error",
        /// The client's message was malformed or over a limit; answered with 4xx or 505.
        Invalid = "invalid",
        /// A `CONNECT` or an `Upgrade` that became a tunnel.
        Tunnel = "tunnel",
        /// Answered by the proxy itself: `OPTIONS *`, `Max-Forwards: 0`, `only-if-cached` without a
        /// stored response.
        Local = "local",
    }

    /// The phases of a request: the words and meanings of `weir_policy::Phase`.
    RequestPhase {
        /// The request head has arrived and is well-formed.
        RequestHead = "request-head",
        /// The client may send this request to this listener.
        Authorise = "authorise",
        /// The source of the response is decided: store, next hop, or an answer of our own.
        Choose = "choose",
        /// A connection to the next hop is ready.
        Forward = "forward",
        /// The content of the request was sent to the next hop.
        RequestContent = "request-content",
        /// The head of the response for the client is made.
        ResponseHead = "response-head",
        /// It is decided what of the response is stored.
        Store = "store",
        /// The content of the response was sent to the client.
        ResponseContent = "response-content",
        /// The request is counted and logged.
        Done = "done",
    }

    /// The hundreds of a status code (RFC 9110 §15).
    StatusClass {
        /// 1xx, interim responses are not counted: only 101.
        Informational = "1xx",
        /// 2xx.
        Successful = "2xx",
        /// 3xx.
        Redirection = "3xx",
        /// 4xx.
        ClientError = "4xx",
        /// 5xx.
        ServerError = "5xx",
        /// Outside 100-599, or the connection closed before a status was sent.
        Other = "other",
    }

    /// Why a response was not stored.
    NotStored {
        /// The request's method is not one whose response we store (RFC 9111 §3).
        Method = "method",
        /// The request said `no-store` (§5.2.1.5).
        RequestNoStore = "request-no-store",
        /// The response said `no-store` (§5.2.2.5).
        ResponseNoStore = "response-no-store",
        /// The response is `private` and this cache is shared (§5.2.2.7).
        Private = "private",
        /// The request carried `Authorization` and the response does not permit sharing (§3.5).
        Authorization = "authorization",
        /// Not a final status.
        StatusNotFinal = "status-not-final",
        /// The status code is not understood and the response demands that it is (§5.2.2.3).
        StatusNotUnderstood = "status-not-understood",
        /// A part that could not be joined with others later: no strong entity tag, no complete
        /// length, not requested as one range (§3.3).
        PartialContent = "partial-content",
        /// Some lines of the head end in LF and some in CRLF (RFC 9112 §11.1).
        LineEnds = "line-ends",
        /// `Vary: *` can never be chosen again (§4.1).
        VaryStar = "vary-star",
        /// Neither a lifetime nor a validator: it could never be used again.
        NoLifetime = "no-lifetime",
        /// It answers a condition or a range of one request (412, 416, 417), and would be served to
        /// other clients.
        Conditional = "conditional",
        /// It sets a cookie without permission to share: neither `public` nor `s-maxage`.
        SetCookie = "set-cookie",
        /// An error, or a redirect without a lifetime, where the client bypassed a fresh stored
        /// response.
        StoredIsUsable = "stored-is-usable",
        /// An update that would have the stored response vary on other fields.
        VaryChanged = "vary-changed",
        /// A module forbade it.
        Module = "module",
        /// The profile in force keeps such responses out (for example `Set-Cookie` under
        /// `http-1998`).
        Profile = "profile",
        /// Larger than one stored response may be.
        TooLarge = "too-large",
        /// Larger than the small queue of S3-FIFO, which is where a new response would go.
        TooLargeForSmallQueue = "too-large-for-small-queue",
        /// What would have had to leave for it was being read, and would have given no memory back.
        AllInUse = "all-in-use",
        /// Another node of the cluster keeps it.
        OnPeer = "on-peer",
        /// It came from a parent whose responses are not stored (`keep = false`).
        OnParent = "on-parent",
        /// It came from a sibling whose responses are not stored (`keep = false`).
        OnSibling = "on-sibling",
        /// This node is a front end of its cluster, which stores nothing.
        FrontEnd = "front-end",
        /// The admission policy chose not to keep it.
        Refused = "refused",
        /// The response was cut short or broke its framing, and is of no use in part.
        Incomplete = "incomplete",
        /// A reason without a counter of its own.
        Other = "other",
    }

    /// How a request shared the response of another one's fetch.
    Joined {
        /// It waited for the head, and was answered by the same response (RFC 9211 §2.6).
        Collapsed = "collapsed",
        /// The head was there: it was answered by what had arrived, and by the rest as it came.
        Delayed = "delayed",
    }

    /// What became of a fetch when its last reader left.
    Aborted {
        /// It continues: by configuration.
        GoOnAlways = "go-on-always",
        /// It continues: few bytes are missing.
        GoOnLittleLeft = "go-on-little-left",
        /// It continues: most of it is here (Squid's percentage).
        GoOnMostReceived = "go-on-most-received",
        /// It continues: the expected saving exceeds the missing bytes.
        GoOnWorthIt = "go-on-worth-it",
        /// It stops: by configuration.
        StopAlways = "stop-always",
        /// It stops: how much is still to come is not known.
        StopLengthUnknown = "stop-length-unknown",
        /// It stops: too much is still to come (Squid's maximum).
        StopMuchLeft = "stop-much-left",
        /// It stops: too little of it is here (Squid's percentage).
        StopLittleReceived = "stop-little-received",
        /// It stops: what is probably saved does not exceed what is still to come.
        StopNotWorthIt = "stop-not-worth-it",
        /// It stops: the background budget has not so much left.
        StopNoBudget = "stop-no-budget",
        /// It stops: it will not be stored, and no client reads it.
        StopNotKept = "stop-not-kept",
    }

    /// The source of a response: the label of the response-time histogram.
    Source {
        /// A stored response, without a request to the next hop first.
        Store = "store",
        /// The next hop, forwarded or validated.
        NextHop = "next-hop",
        /// The proxy itself: errors and refusals.
        Proxy = "proxy",
    }

    /// The result of a look-up of an idle next-hop connection in the connection cache.
    Reuse {
        /// An idle connection was there and was used.
        Hit = "hit",
        /// None was there: a connection had to be opened.
        Miss = "miss",
    }

    /// Why a response was not written to disk.
    DiskRefusal {
        /// Too much waits to be written: the device does not keep up.
        Busy = "busy",
        /// It is too large, the directory rests after errors, or the response was outdated.
        Other = "other",
        /// It was taken, and could not be written after all.
        Lost = "lost",
    }

    /// What came of looking on disk for a stored response.
    DiskLookupEnd {
        /// There was one for the request.
        Found = "found",
        /// There was none, or it was purged or replaced meanwhile.
        Missing = "missing",
        /// There was one, and it could not be read.
        Unusable = "unusable",
        /// It took too long.
        TooSlow = "too-slow",
    }

    /// What came of loading content from disk into memory.
    ContentLoadEnd {
        /// It is in memory.
        Stored = "stored",
        /// It was evicted, purged or replaced while it was read, and was sent to its client alone.
        Outdated = "outdated",
        /// It could not be read.
        Unreadable = "unreadable",
        /// It was sent from disk: too much was being loaded, or was arriving.
        NoRoom = "no-room",
        /// It was sent from disk: another request was loading it.
        Loading = "loading",
    }

    /// Why the rest of a response that a client was being sent was not here any more.
    Lost {
        /// The response passes by, and the client was too far behind the others.
        ContentDropped = "content-dropped",
        /// It is stored, and could not be read: damaged, or the device failed or took too long.
        Unreadable = "unreadable",
        /// What was missing of it may not be fetched for the clients in common: the next hop lets
        /// it be shared no more, or this client's request is for itself alone.
        NotShared = "not-shared",
    }

    /// How a request to a next hop came to its connection.
    Supply {
        /// One was opened for it.
        New = "new",
        /// It found an idle one that had carried requests before.
        Idle = "idle",
        /// It waited for one that had carried requests before.
        Waited = "waited",
        /// It was the first on one that was opened before it was needed.
        Ahead = "ahead",
        /// It found one of HTTP/2 open, which carries many at once.
        Shared = "shared",
    }

    /// Why a next-hop connection was opened: the words of the connection policy.
    OpenReason {
        /// There was none that could come back.
        NoneBusy = "none-busy",
        /// The configuration says to open one.
        Rule = "rule",
        /// No set-up or exchange had been measured yet.
        NotMeasured = "not-measured",
        /// A set-up is so quick that there is nothing to be gained.
        QuickSetUp = "quick-set-up",
        /// It was expected to be sooner than waiting.
        Sooner = "sooner",
        /// A wait was in vain.
        WaitedInVain = "waited-in-vain",
        /// The request was repeated.
        Repetition = "repetition",
        /// For whichever comes first, it or a busy one.
        Race = "race",
        /// Before a request needed it.
        Ahead = "ahead",
        /// For a tunnel.
        Tunnel = "tunnel",
        /// The next hop is told for whom it is, and no other request uses it.
        OneRequest = "one-request",
    }

    /// Why a next hop was chosen among those of its route, or a node among those of its cluster:
    /// the words and meanings of `weir_policy::route::Why`.
    RouteChoice {
        /// It was its turn.
        InTurn = "in-turn",
        /// An earlier request of the same client connection was sent there, and the route chooses
        /// for connections.
        Connection = "connection",
        /// Those that come before it are ejected, draining or gone.
        OthersEjected = "others-ejected",
        /// Its ejection is over and this request probes it; others avoid it until the outcome is
        /// known.
        Probe = "probe",
        /// All are ejected, and its ejection ends first.
        AllEjected = "all-ejected",
        /// It has the least outstanding requests for its weight.
        LeastLoad = "least-load",
        /// Of two at random, it has the less outstanding requests times response time.
        BetterOfTwo = "better-of-two",
        /// It is the first in the rendezvous order of the target.
        FirstInOrder = "first-in-order",
        /// Those before it in the rendezvous order have their share of requests.
        NextInOrder = "next-in-order",
        /// It is the least loaded of those that share a target of high rate.
        Replica = "replica",
        /// The target is mapped to it.
        Mapped = "mapped",
        /// The target was mapped to no node: the first in rendezvous order that is not overloaded,
        /// or the node that handles the connection.
        NotMapped = "not-mapped",
        /// The target was moved to it from an overloaded node.
        Moved = "moved",
        /// It was added to the nodes of the target, which are overloaded.
        Replicated = "replicated",
        /// The node that handles the connection serves it, since few reads wait there: of a route,
        /// the next hop of the request before; of a cluster, the node whose client asks, which
        /// keeps a copy of what the owner gives it.
        DiskIdle = "disk-idle",
        /// The node that handles the connection serves it, although reads wait there: it costs no
        /// less elsewhere.
        DiskBusy = "disk-busy",
        /// Sent to a node that the target is mapped to, since reads wait at the one that handles
        /// the connection. Of a cluster, that one keeps no copy.
        Lateral = "lateral",
        /// It owned the target before a node that joins, and is asked for what it has stored.
        PreviousOwner = "previous-owner",
        /// Its digest has the target, and the first in order is gone.
        Holder = "holder",
    }

    /// Why a request at a peer listener was refused.
    PeerRefusal {
        /// It has no `Weir-Peer`, more than one, or one that cannot be read.
        NoField = "no-field",
        /// It names a node, and does not prove that it knows the secret of this one: another secret
        /// or version of Weir, or a program that is no node.
        NotProved = "not-proved",
        /// The same, and it calls this node by a name that it has not.
        OtherName = "other-name",
        /// It is of a node that is none of the members that this node knows.
        Unlisted = "unlisted",
        /// Another process has the name of this node.
        Namesake = "namesake",
        /// A member asks for what this node does for no client of its own: it has no listener of
        /// that mode, and no route; or its message is none that this node understands.
        Mode = "mode",
        /// A member asks by another method than GET and HEAD, or with content.
        Method = "method",
        /// A module of this node is called for the target.
        Module = "module",
        /// The content of a message about purges is not proved, or not understood.
        Message = "message",
    }

    /// Why a connection was not handed over: the words and meanings of
    /// `weir_policy::connections::hand_off::Stay`.
    HandOffRefusal {
        /// No other node is chosen for the request.
        Own = "own",
        /// It is not to the address of the service, which all machines have.
        Address = "address",
        /// It is encrypted, with keys that this process has.
        Tls = "tls",
        /// The request is neither GET nor HEAD, has content, awaits an interim response, or leaves
        /// HTTP.
        Content = "content",
        /// It is handed over with its first request alone.
        Later = "later",
        /// The client has not acknowledged more than may travel.
        Unacknowledged = "unacknowledged",
        /// Too many connections are being handed over, or are at other nodes.
        TooMany = "too-many",
        /// Its state does not permit it: one side has closed it, or the client sent more meanwhile.
        State = "state",
        /// The chosen node does not take it, or does not answer.
        Node = "node",
        /// The front end does not hold its packets, or does not answer.
        FrontEnd = "front-end",
        /// It was handed over with this very request, which is answered where it arrives.
        Arrived = "arrived",
        /// This node has the response or will keep it.
        Kept = "kept",
        /// The chosen node is not known to have the response.
        NotHeld = "not-held",
        /// The response is so short that forwarding costs less.
        Small = "small",
        /// It has moved so often of late that it may not now.
        Often = "often",
    }

    /// Why a next-hop connection of HTTP/2 ended.
    NextHopHttp2End {
        /// It carried no request for as long as is allowed, or was open for that long.
        Idle = "idle",
        /// The next hop has announced the end (GOAWAY).
        GoAway = "goaway",
        /// The next hop has closed or broken it.
        Closed = "closed",
        /// It had sent nothing for long while a request waited for its head.
        Silent = "silent",
        /// The next hop does not speak HTTP/2.
        Foreign = "foreign",
        /// The next hop has broken the protocol.
        Protocol = "protocol",
        /// More streams were reset than requests account for.
        Resets = "resets",
        /// The next hop has sent more frames without response or content than are allowed.
        Control = "control",
        /// The next hop has opened windows more often than is allowed.
        WindowUpdates = "window-updates",
        /// It must not be used any more: settings have changed, or the process ends.
        Dropped = "dropped",
    }

    /// The version of HTTP that a client has sent a request by.
    HttpVersion {
        /// HTTP/1.1 or 1.0.
        Http1 = "1",
        /// HTTP/2.
        Http2 = "2",
    }

    /// Why a client connection of HTTP/2 ended.
    Http2End {
        /// The client has closed or broken it, or this side has for an error in its frames.
        Client = "client",
        /// No request was under way for as long as is allowed.
        Idle = "idle",
        /// The process is shutting down, or a reload has closed the listener.
        Drained = "drained",
        /// It did not begin as HTTP/2 has it, in time.
        Preface = "preface",
        /// The head of a request was not whole in time.
        Head = "head",
        /// The client has taken nothing of what was sent to it for as long as is allowed.
        Silent = "silent",
        /// More streams were reset than are allowed: Rapid Reset, MadeYouReset.
        Resets = "resets",
        /// More streams of the same client were reset, on all of its connections, than are allowed.
        /// Its requests end as usual if few of those beyond that were on this connection.
        ClientResets = "client-resets",
        /// The client has sent more frames without request or content than are allowed.
        Control = "control",
        /// The client has opened windows more often than is allowed.
        WindowUpdates = "window-updates",
        /// Requests had more field lines than are allowed, as crumbs of `Cookie`, or several heads
        /// or trailers were too large.
        FieldLines = "field-lines",
    }

    /// Why this side has reset a stream of HTTP/2.
    Http2Reset {
        /// The request was malformed (RFC 9113 §8.1.1), in what `h2` does not check.
        Malformed = "malformed",
        /// Heads of as many bytes were under way on the connection as are allowed.
        Heads = "heads",
        /// As many requests of HTTP/2 were under way as `limits.clients_max` allows.
        Streams = "streams",
        /// The client kept the window of the stream closed for too long.
        Window = "window",
        /// More streams were reset than are allowed, of requests for the same client that a trusted
        /// proxy has handed on.
        ClientResets = "client-resets",
    }

    /// How the TLS handshake with a client ended.
    TlsHandshakeEnd {
        /// With new keys, for which the server has signed.
        Full = "full",
        /// With those of an earlier session.
        Resumed = "resumed",
        /// An authority has validated a name (ACME, RFC 8737); there is no connection.
        Validation = "validation",
        /// The client has begun with HTTP in clear.
        Http = "http",
        /// The client has closed or broken the connection.
        Disconnected = "disconnected",
        /// It was not complete in time.
        Timeout = "timeout",
        /// It was the oldest, of its client or of the one that had most, when there were as many as
        /// are allowed.
        Displaced = "displaced",
        /// The client has sent more than is read for a handshake.
        TooLarge = "too-large",
        /// The client has refused the certificate, or something else, with an alert.
        Alert = "alert",
        /// The two have no version, cipher suite or protocol in common.
        Incompatible = "incompatible",
        /// The client can verify none of the certificates.
        NoCertificate = "no-certificate",
        /// What the client has sent is not as the protocol has it.
        Failed = "failed",
    }

    /// What became of an order of a certificate (ACME).
    AcmeOrderEnd {
        /// It was issued, and is used.
        Issued = "issued",
        /// The authority was not reached, or has not answered.
        Unreachable = "unreachable",
        /// The authority has refused the account, the order or the names.
        Refused = "refused",
        /// The authority did not find that the names are served here.
        Validation = "validation",
        /// The authority demands to be left alone for some time.
        Limited = "limited",
        /// The authority was not ready in time.
        Timeout = "timeout",
        /// What was issued cannot be used.
        Unusable = "unusable",
        /// It could not be kept: the folder cannot be written.
        Storage = "storage",
    }

    /// What became of the header by which a balancer says whose connection it hands on.
    ProxyHeaderEnd {
        /// It names the client.
        Client = "client",
        /// It names none: the connection is the balancer's own.
        Own = "own",
        /// The connection is of no balancer that the listener is for.
        Refused = "refused",
        /// There is none, or one that cannot be read.
        Malformed = "malformed",
        /// The balancer has closed or broken the connection.
        Disconnected = "disconnected",
        /// It was not complete in time.
        Timeout = "timeout",
    }

    /// Why a request waited for a next-hop connection: the words of the connection policy, and two
    /// of the driver's own.
    WaitReason {
        /// A busy one was expected to come back sooner than a new one would be set up.
        Sooner = "sooner",
        /// It opened one at the same time.
        Race = "race",
        /// One was being set up that no other request waited for.
        UnderWay = "under-way",
        /// As many connections to the next hop were open as may be.
        PerHopMax = "per-hop-max",
        /// As many connections in all were open as may be.
        TotalMax = "total-max",
        /// The process was out of file descriptors.
        Descriptor = "descriptor",
        /// Its client had as many requests under way to the next hop as connections were left for
        /// others.
        ClientShare = "client-share",
    }

    /// How a wait for a next-hop connection ended: the words of the connection policy.
    WaitEnd {
        /// With a connection.
        Returned = "returned",
        /// With a place to open one.
        Place = "place",
        /// It took too long: the request opened one instead.
        InVain = "in-vain",
        /// The connection it waited for could not be opened.
        Failed = "failed",
        /// The limit of waiting passed: answered with 503.
        Refused = "refused",
        /// The request went away meanwhile.
        Left = "left",
    }

    /// How opening a connection toward a next hop, or using it, ended.
    HopOutcome {
        /// The connection was established.
        Opened = "opened",
        /// The peer refused it or the network did.
        Refused = "refused",
        /// Not established within the connect limit.
        Timeout = "timeout",
        /// Our own limit or lack of file descriptors stood in the way.
        Limit = "limit",
        /// The connection was established, and the TLS handshake on it has failed.
        Tls = "tls",
        /// The address is one we do not connect to.
        Prohibited = "prohibited",
        /// Anything else.
        Failed = "failed",
    }

    /// How a question to the resolver was answered.
    DnsOutcome {
        /// From our own cache, fresh.
        CacheHit = "cache-hit",
        /// By a name server, successfully.
        Answered = "answered",
        /// The asker joined a lookup already in flight.
        Collapsed = "collapsed",
        /// The lookup failed and an older answer was used.
        Stale = "stale",
        /// The name does not exist or has no address.
        NotFound = "not-found",
        /// No answer within the limit.
        Timeout = "timeout",
        /// The name servers reported a failure or could not be reached.
        ServerFailure = "server-failure",
        /// Too many lookups in flight.
        Overloaded = "overloaded",
    }

    /// Why a request is not in the trace of `weir serve --record`.
    Unrecorded {
        /// More requests, or more bytes of them, waited to be written than may.
        QueueFull = "queue-full",
        /// Its heads together are longer than the recorder takes.
        TooLarge = "too-large",
        /// What came was no request: there is no target to write down.
        NotHttp = "not-http",
        /// The disk refused the trace a moment ago, and is left alone for a while.
        WriteFailed = "write-failed",
        /// It was in a file that could not be finished.
        Lost = "lost",
    }

    /// How a call of a module failed.
    ModuleFault {
        /// The call, or what it deferred for, took longer than it may.
        Deadline = "deadline",
        /// The module panicked or trapped.
        Crashed = "crashed",
        /// It answered where it may not, or what the proxy refuses.
        BadAnswer = "bad-answer",
        /// It could not do its work on this message, and said so.
        GaveUp = "gave-up",
        /// What it works with, such as a server of its own, was not there or failed.
        Unavailable = "unavailable",
        /// The proxy had no memory for the content that it works on.
        NoMemory = "no-memory",
        /// It had failed so often that it was not called.
        BreakerOpen = "breaker-open",
    }

    /// What became of a request of a module's own.
    ModuleRequestEnd {
        /// The module has the response.
        Answered = "answered",
        /// It was no request.
        BadRequest = "bad-request",
        /// The destination rules forbid it.
        Forbidden = "forbidden",
        /// As many as may be were under way.
        TooMany = "too-many",
        /// The next hop gave no whole response.
        Unreachable = "unreachable",
        /// It took too long.
        Timeout = "timeout",
        /// The response was longer than the module takes.
        TooLarge = "too-large",
    }

    /// What came of the login of a request.
    LoginOutcome {
        /// The user or the token is known.
        Right = "right",
        /// The request has no login.
        Missing = "missing",
        /// It has a wrong one.
        Wrong = "wrong",
        /// Too many were being verified.
        Busy = "busy",
    }

    /// What became of a new config.
    ReloadOutcome {
        /// It is in force.
        Ok = "ok",
        /// It was refused whole; the old one stays.
        Refused = "refused",
    }
}

impl StatusClass {
    /// The class of `status`.
    #[must_use]
    pub const fn of(status: u16) -> Self {
        match status {
            100..=199 => Self::Informational,
            200..=299 => Self::Successful,
            300..=399 => Self::Redirection,
            400..=499 => Self::ClientError,
            500..=599 => Self::ServerError,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests;
