//! The transmission of a response: what of its content is sent, how fast, and what becomes of the
//! connection.

use weir_workload::{BodyPoint, FaultKind};

use super::counts::PhaseCounts;
use super::impairment::InjectedFault;

/// What happens to the connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionAction {
    /// The next request is waited for.
    Keep,
    /// It is closed in order.
    Close,
    /// It is reset.
    Reset,
    /// Nothing more comes, until the peer closes or [`HANG_MAX`](super::connection::HANG_MAX) has
    /// passed.
    Hang,
}

/// How content of a length is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transmission {
    /// Bytes that `Content-Length` says.
    pub(super) declared: u64,
    /// Bytes that are sent.
    pub(super) sent: u64,
    /// Behind so many bytes, so many a second.
    pub(super) slow: Option<(u64, u64)>,
    pub(super) then: ConnectionAction,
}

impl Transmission {
    /// All of it.
    pub(super) const fn whole(length: u64, keeps: bool) -> Self {
        Self {
            declared: length,
            sent: length,
            slow: None,
            then: if keeps {
                ConnectionAction::Keep
            } else {
                ConnectionAction::Close
            },
        }
    }

    /// Spoilt: what can be spoilt of content of this length, and is counted. A status is none of
    /// its business.
    pub(super) fn inject(&mut self, injected: InjectedFault, counts: &mut PhaseCounts) {
        let length = self.declared;
        if length == 0 {
            return;
        }
        match injected {
            InjectedFault::Abort(share) => {
                self.sent = BodyPoint::Share(share).of(length).min(length - 1);
                self.then = ConnectionAction::Close;
                counts.aborted += 1;
            }
            InjectedFault::Fault(kind, at) => self.fault(kind, at, &mut counts.faulted),
        }
    }

    fn fault(&mut self, kind: FaultKind, at: BodyPoint, counts: &mut super::FaultCounts) {
        let length = self.declared;
        let point = at.of(length);
        let is_inside = point < length;
        match kind {
            FaultKind::Cut if is_inside => {
                (self.sent, self.then) = (point, ConnectionAction::Close);
                counts.cut += 1;
            }
            FaultKind::Reset if is_inside => {
                (self.sent, self.then) = (point, ConnectionAction::Reset);
                counts.reset += 1;
            }
            FaultKind::Hang if is_inside => {
                (self.sent, self.then) = (point, ConnectionAction::Hang);
                counts.hang += 1;
            }
            FaultKind::Slow { bytes_per_s } if is_inside => {
                self.slow = Some((point, bytes_per_s));
                counts.slow += 1;
            }
            FaultKind::WrongLength => {
                // a number of bytes may be more than there are
                let declared = match at {
                    BodyPoint::Bytes(bytes) => bytes,
                    BodyPoint::Share(_) => point,
                };
                if declared != length {
                    (self.declared, self.then) = (declared, ConnectionAction::Close);
                    counts.wrong_length += 1;
                }
            }
            FaultKind::Status(_)
            | FaultKind::Cut
            | FaultKind::Reset
            | FaultKind::Hang
            | FaultKind::Slow { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(length: u64, injected: InjectedFault, expected: Transmission, counted: u64) {
        let (mut transmission, mut counts) =
            (Transmission::whole(length, true), PhaseCounts::default());
        transmission.inject(injected, &mut counts);
        assert_eq!(transmission, expected, "{length} {injected:?}");
        let total = counts.aborted + counts.faulted.total();
        assert_eq!(total, counted, "{length} {injected:?}");
    }

    #[test]
    fn abort_drops_at_least_the_last_byte_and_spares_empty_content() {
        let cut_at = |length, sent| Transmission {
            sent,
            then: ConnectionAction::Close,
            ..Transmission::whole(length, true)
        };
        check(100, InjectedFault::Abort(0.0), cut_at(100, 0), 1);
        check(100, InjectedFault::Abort(0.999_999), cut_at(100, 99), 1);
        check(1, InjectedFault::Abort(0.5), cut_at(1, 0), 1);
        check(
            0,
            InjectedFault::Abort(0.5),
            Transmission::whole(0, true),
            0,
        );
    }

    #[test]
    fn fault_at_or_beyond_the_end_has_no_effect_and_is_not_counted() {
        let kinds = [
            FaultKind::Cut,
            FaultKind::Reset,
            FaultKind::Hang,
            FaultKind::Slow { bytes_per_s: 1 },
        ];
        for kind in kinds {
            for at in [
                BodyPoint::Bytes(100),
                BodyPoint::Bytes(1000),
                BodyPoint::Share(1.0),
            ] {
                check(
                    100,
                    InjectedFault::Fault(kind, at),
                    Transmission::whole(100, true),
                    0,
                );
            }
            check(
                0,
                InjectedFault::Fault(kind, BodyPoint::Bytes(0)),
                Transmission::whole(0, true),
                0,
            );
        }
    }

    #[test]
    fn fault_inside_the_content_takes_effect_at_its_offset() {
        let whole = Transmission::whole(100, true);
        let half = BodyPoint::Share(0.5);
        let cut = Transmission {
            sent: 50,
            then: ConnectionAction::Close,
            ..whole
        };
        check(100, InjectedFault::Fault(FaultKind::Cut, half), cut, 1);
        let reset = Transmission {
            then: ConnectionAction::Reset,
            ..cut
        };
        check(100, InjectedFault::Fault(FaultKind::Reset, half), reset, 1);
        let hang = Transmission {
            then: ConnectionAction::Hang,
            ..cut
        };
        check(100, InjectedFault::Fault(FaultKind::Hang, half), hang, 1);
        let slow = Transmission {
            slow: Some((50, 7)),
            ..whole
        };
        check(
            100,
            InjectedFault::Fault(FaultKind::Slow { bytes_per_s: 7 }, half),
            slow,
            1,
        );
    }

    #[test]
    fn wrong_length_fault_declares_another_length_and_closes() {
        let wrong = |declared| Transmission {
            declared,
            then: ConnectionAction::Close,
            ..Transmission::whole(100, true)
        };
        let kind = FaultKind::WrongLength;
        check(
            100,
            InjectedFault::Fault(kind, BodyPoint::Share(0.5)),
            wrong(50),
            1,
        );
        check(
            100,
            InjectedFault::Fault(kind, BodyPoint::Bytes(120)),
            wrong(120),
            1,
        );
        check(
            100,
            InjectedFault::Fault(kind, BodyPoint::Bytes(100)),
            Transmission::whole(100, true),
            0,
        );
    }
}
