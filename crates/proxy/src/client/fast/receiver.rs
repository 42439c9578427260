//! Who receives a request: the listener of its client, under the settings in force.

use super::Front;
use super::stored_content::ContentInStore;
use crate::client::peer_listener::{NodeRequest, PeerSeal};
use crate::exchange::state::{Plan, RequestState};
use crate::log::client::{ClientFacts, ForPeers, RequestClient};
use crate::log::request_log::{LogReaders, RequestLog};
use crate::request::answer::Answer;
use crate::request::facts::Request;
use crate::request::judge::{JudgeRules, ReceivedRequest};
use crate::request::recent_heads::{HeadHash, Recent, RecentHead};
use crate::send::heads::INLINE_BYTES_MAX;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use weir_policy::{Digest, Now, Transaction};
use weir_semantics::HostName;
use weir_wire::RequestHead;

/// When a request head came.
#[derive(Clone, Copy)]
pub(crate) enum HeadTime {
    /// With one read, just now.
    Now,
    /// In the pass in which the request before it was answered, at this moment: the clock is not
    /// read again.
    Read(Instant),
    /// In several; the first byte at this moment.
    Began(Instant),
}

impl HeadTime {
    /// When the request began to take its time.
    #[inline]
    pub(super) fn started(self) -> Instant {
        match self {
            Self::Now => Instant::now(),
            Self::Read(moment) | Self::Began(moment) => moment,
        }
    }

    /// Whether it came with one read: the client has no part in its time.
    pub(in crate::client) const fn is_at_once(self) -> bool {
        matches!(self, Self::Now | Self::Read(_))
    }
}

/// The source of a request head, and the settings it is judged by.
#[derive(Clone, Copy)]
pub(crate) struct Receiver<'a> {
    pub(crate) worker: &'a Rc<Worker>,
    /// The settings in force.
    pub(crate) settings: &'a Arc<Settings>,
    /// The client, with the number of this request.
    pub(crate) client: ClientFacts<'a>,
    /// When the head came.
    pub(crate) head_time: HeadTime,
    /// The node that the request names at a peer listener.
    pub(crate) node: Option<&'a NodeRequest<'a>>,
    /// The user who has logged in, once that is known.
    pub(crate) user: Option<&'a Arc<str>>,
    /// What a response at once ends with for another node of the cluster; `None` for a client.
    pub(crate) peer_seal: Option<&'a PeerSeal>,
    /// Content of a stored response that is copied for an answer at once, bytes.
    pub(crate) copied_bytes_max: u64,
    /// Where content is put that is sent from the store behind a head made at once; `None` if such
    /// responses are exchanges.
    pub(crate) content_place: Option<&'a Cell<Option<Box<ContentInStore>>>>,
}

impl<'a> Receiver<'a> {
    /// One without a user, which is no node, and to which small content is sent at once.
    pub(crate) const fn new(
        worker: &'a Rc<Worker>,
        settings: &'a Arc<Settings>,
        client: ClientFacts<'a>,
        head_time: HeadTime,
    ) -> Self {
        Self {
            worker,
            settings,
            client,
            head_time,
            node: None,
            user: None,
            peer_seal: None,
            copied_bytes_max: INLINE_BYTES_MAX,
            content_place: None,
        }
    }
}

impl Receiver<'_> {
    /// The log of the request, whose head has `head_bytes`.
    pub(in crate::client) fn log(&self, started: Instant, head_bytes: usize) -> RequestLog {
        let shared = &self.worker.shared;
        let readers = LogReaders {
            access_log: shared.access_log.is_on(),
            recorder: shared.record.is_some(),
        };
        let mut log = RequestLog::new(started, head_bytes, readers);
        if let Some(user) = self.user {
            log.set_user(user);
        }
        log
    }

    /// The time now, of a request that `started` then: where its head did not come in parts, the
    /// clock was read as it came.
    pub(super) fn now_after(&self, started: Instant) -> Now {
        match self.head_time.is_at_once() {
            true => self.worker.now_at(started),
            false => self.worker.now(),
        }
    }

    /// The state of a request that needs more than one pass.
    pub(in crate::client) fn exchange(
        &self,
        request: Request,
        (tx, plan, key): (Transaction, Plan, Digest),
        log: RequestLog,
    ) -> Box<RequestState> {
        let client = RequestClient::new(self.client);
        Box::new(RequestState::new(
            (Rc::clone(self.worker), client),
            request,
            Arc::clone(self.settings),
            tx,
            plan,
            key,
            log,
        ))
    }

    /// Judges a head of any version of HTTP; the host of its target is written into `host`. It is
    /// part of every hit: without inlining, the copy of its result would cost 2 % of one.
    #[inline(always)]
    pub(in crate::client) fn judge<'h>(
        &self,
        head: &RequestHead<'_, 'h>,
        host: &'h mut HostName,
    ) -> Result<ReceivedRequest<'h>, Answer> {
        ReceivedRequest::judge(head, &self.judge_rules(), host)
    }

    /// The same of a head at the front of the input. It is remembered if it comes often.
    #[inline(always)]
    pub(super) fn judge_front<'h>(
        &self,
        front: &Front<'h, '_, 'h>,
        host: &'h mut HostName,
    ) -> Result<ReceivedRequest<'h>, Answer> {
        let head = front.head;
        let hash = match front.recent {
            Recent::Known(known) => return ReceivedRequest::again(known, &self.judge_rules()),
            Recent::New(hash) => Some(*hash),
            Recent::Unfit => None,
        };
        let mut judged = self.judge(head, host);
        if let (Some(hash), Ok(request)) = (hash, &mut judged) {
            let bytes = &front.input.bytes[..front.consumed];
            self.note_head(hash, (bytes, head), request);
        }
        judged
    }

    /// By what a head is judged.
    #[inline(always)]
    fn judge_rules(&self) -> JudgeRules<'_> {
        let ClientFacts { listener, peer, .. } = self.client;
        JudgeRules {
            settings: self.settings,
            mode: listener.mode,
            default: &listener.default,
            scheme: listener.scheme,
            tls: listener.tls.as_deref(),
            client: (listener.peers != ForPeers::Member).then(|| peer.ip()),
        }
    }

    /// What is known of a head of a client.
    #[inline(always)]
    pub(super) fn recent(&self, input: &[u8]) -> Recent {
        let listener = self.client.listener;
        if listener.peers != ForPeers::No {
            // it has what other nodes tell and prove, which is another thing each time
            return Recent::Unfit;
        }
        let mut heads = self.worker.recent_heads.borrow_mut();
        heads.find(self.settings, (listener.mode, listener.scheme), input)
    }

    /// A head that was judged has come.
    #[inline(always)]
    fn note_head(
        &self,
        hash: HeadHash,
        (bytes, head): (&[u8], &RequestHead<'_, '_>),
        request: &mut ReceivedRequest<'_>,
    ) {
        let secret = self.worker.shared.store.secret();
        let of = (self.client.listener.scheme, secret);
        let mut heads = self.worker.recent_heads.borrow_mut();
        heads.came(self.settings, hash, || {
            request.keep_key(secret);
            RecentHead::of(bytes, head, request, of)
        });
    }
}
