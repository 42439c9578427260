//! What a robot requests: kinds of content, special requests, aborts.

use crate::number::whole;
use crate::request::{Method, RequestType, WorkloadRequest};
use crate::stream::abort_point;
use crate::{Chance, PolyMix, Scenario, Target};

/// The shares by which each request is decided.
#[derive(Clone, Debug)]
pub(super) struct RequestMix {
    /// The kinds that are requested directly, with the sum of the shares up to and with each.
    direct: Vec<(f64, u8)>,
    polymix: PolyMix,
    aborted_share: f64,
}

impl RequestMix {
    pub(super) fn new(scenario: &Scenario, polymix: &PolyMix) -> Self {
        let mut sum = 0.0;
        let direct = (0_u8..)
            .zip(&polymix.contents)
            .filter(|(_, content)| content.direct);
        Self {
            direct: direct
                .map(|(kind, content)| {
                    sum += content.share;
                    (sum, kind)
                })
                .collect(),
            polymix: polymix.clone(),
            aborted_share: scenario.clients.aborted_share,
        }
    }

    /// The kind of content of a direct request.
    pub(super) fn kind(&self, chance: &mut Chance) -> u8 {
        let whole = self.direct.last().map_or(0.0, |(sum, _)| *sum);
        let mark = chance.unit() * whole;
        let found = self.direct.iter().find(|(sum, _)| mark < *sum);
        // a mark next to the whole may round up to it
        found.or(self.direct.last()).map_or(0, |(_, kind)| *kind)
    }

    /// Does a repeated request go to a small neighbour of the chosen id?
    pub(super) fn prefers_small(&self, chance: &mut Chance) -> bool {
        self.polymix.small_bias > 0.0 && chance.is(self.polymix.small_bias)
    }

    /// How many ids to each side are looked at then.
    pub(super) fn small_reach(&self) -> u64 {
        u64::from(self.polymix.small_bias_reach)
    }

    /// A request for the target, where special requests come `special` times as often as in the
    /// middle of a run.
    ///
    /// Polygraph draws the type and the method apart. A `POST` or `HEAD` that is conditional or a
    /// reload as well would have no agreed meaning for a cache, so such a request is plain here.
    /// Clients hang up equally often in every phase.
    pub(super) fn request(
        &self,
        phase: u8,
        target: Target,
        special: f64,
        chance: &mut Chance,
    ) -> WorkloadRequest {
        let kind = if chance.is(special) {
            self.special_kind(chance)
        } else {
            RequestType::Plain
        };
        let method = if chance.is(special) {
            self.special_method(chance)
        } else {
            Method::Get
        };
        let hangs_up = chance.is(self.aborted_share);
        WorkloadRequest {
            kind: if method == Method::Get {
                kind
            } else {
                RequestType::Plain
            },
            method,
            abort_at: hangs_up.then(|| abort_point(chance)),
            ..WorkloadRequest::plain(phase, target)
        }
    }

    fn special_kind(&self, chance: &mut Chance) -> RequestType {
        let shares = &self.polymix;
        let mark = chance.unit();
        let ims = shares.ims200_share + shares.ims304_share;
        if mark < shares.ims200_share {
            RequestType::IfModifiedSince { newer: false }
        } else if mark < ims {
            RequestType::IfModifiedSince { newer: true }
        } else if mark < ims + shares.reload_share {
            RequestType::Reload
        } else {
            RequestType::Plain
        }
    }

    fn special_method(&self, chance: &mut Chance) -> Method {
        let shares = &self.polymix;
        let mark = chance.unit();
        if mark < shares.post_share {
            Method::Post {
                content_bytes: whole(shares.post_size.draw(chance)),
            }
        } else if mark < shares.post_share + shares.head_share {
            Method::Head
        } else {
            Method::Get
        }
    }
}

/// Whether the client receives the whole content, so that a cache may store it.
pub(super) fn is_content_read(request: &WorkloadRequest) -> bool {
    let is_304 = request.kind == RequestType::IfModifiedSince { newer: true };
    request.method == Method::Get && !is_304 && request.abort_at.is_none()
}
