//! Changes of the two sets, and what becomes of those that the kernel refuses.

use super::table::{HELD, STEERED};
use rustix::io::Errno;
use std::net::{Ipv4Addr, SocketAddrV4};

/// One change of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Packets of this flow are dropped.
    Hold(SocketAddrV4),
    /// They are dropped no longer.
    Release(SocketAddrV4),
    /// The same, if they were dropped without a break since they were to be: else it is refused.
    EndHold(SocketAddrV4),
    /// They are forwarded to this address.
    Steer(SocketAddrV4, Ipv4Addr),
    /// They are forwarded no longer.
    Unsteer(SocketAddrV4),
    /// The same, if they were: else it is refused.
    EndSteering(SocketAddrV4),
    /// They are forwarded to this address, after [`Self::EndSteering`].
    SteerOn(SocketAddrV4, Ipv4Addr),
}

impl Change {
    pub(super) fn flow(self) -> SocketAddrV4 {
        match self {
            Self::Hold(flow)
            | Self::Release(flow)
            | Self::EndHold(flow)
            | Self::Steer(flow, _)
            | Self::Unsteer(flow)
            | Self::EndSteering(flow)
            | Self::SteerOn(flow, _) => flow,
        }
    }

    /// The set that it is of.
    pub(super) fn set(self) -> &'static str {
        match self {
            Self::Hold(_) | Self::Release(_) | Self::EndHold(_) => HELD,
            Self::Steer(..) | Self::Unsteer(_) | Self::EndSteering(_) | Self::SteerOn(..) => {
                STEERED
            }
        }
    }

    /// Whether it adds an element, and not removes one.
    pub(super) fn is_addition(self) -> bool {
        matches!(self, Self::Hold(_)) || self.machine().is_some()
    }

    /// The address that packets are forwarded to from now on.
    pub(super) fn machine(self) -> Option<Ipv4Addr> {
        match self {
            Self::Steer(_, machine) | Self::SteerOn(_, machine) => Some(machine),
            _ => None,
        }
    }
}

/// Changes that are carried out all, or not at all; each with the request that it is of.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) changes: Vec<(usize, Change)>,
}

impl Batch {
    /// Corrects it after the kernel has refused some changes, in order of their places: what is
    /// removed may be gone already, and what is there with another address has to be removed
    /// first. Other requests are dropped from it, which are returned with their errors.
    ///
    /// A refused transaction takes the kernel milliseconds: this is for what is seldom.
    pub(super) fn correct(&mut self, refused: &[(usize, Errno)]) -> Vec<(usize, Errno)> {
        let mut failed = Vec::new();
        let changes = std::mem::take(&mut self.changes);
        for (place, (request, change)) in changes.into_iter().enumerate() {
            let found = refused.binary_search_by_key(&place, |(place, _)| *place);
            let error = found.ok().map(|found| refused[found].1);
            match (change, error) {
                (_, None) => self.changes.push((request, change)),
                (Change::Release(_) | Change::Unsteer(_), Some(Errno::NOENT)) => {}
                (Change::Steer(flow, _), Some(Errno::EXIST | Errno::BUSY))
                    if self.changes.last() != Some(&(request, Change::Unsteer(flow))) =>
                {
                    self.changes.push((request, Change::Unsteer(flow)));
                    self.changes.push((request, change));
                }
                (_, Some(error)) => failed.push((request, error)),
            }
        }
        let has_failed = |request: &usize| failed.iter().any(|(other, _)| other == request);
        self.changes.retain(|(request, _)| !has_failed(request));
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), port)
    }

    fn batch(changes: &[(usize, Change)]) -> Batch {
        Batch {
            changes: changes.to_vec(),
        }
    }

    const NODE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

    #[test]
    fn removal_of_what_is_gone_is_no_error() {
        let (steer, release) = (Change::Steer(flow(1), NODE), Change::Release(flow(1)));
        let mut batch = batch(&[(0, steer), (0, release)]);
        assert_eq!(batch.correct(&[(1, Errno::NOENT)]), []);
        assert_eq!(batch.changes, [(0, steer)]);
    }

    #[test]
    fn flow_that_is_steered_elsewhere_is_replaced_once() {
        let steer = Change::Steer(flow(1), NODE);
        for error in [Errno::EXIST, Errno::BUSY] {
            let mut batch = batch(&[(0, Change::Hold(flow(2))), (1, steer)]);
            assert_eq!(batch.correct(&[(1, error)]), []);
            let replaced = [
                (0, Change::Hold(flow(2))),
                (1, Change::Unsteer(flow(1))),
                (1, steer),
            ];
            assert_eq!(batch.changes, replaced);
            assert_eq!(batch.correct(&[(2, error)]), [(1, error)]);
            assert_eq!(batch.changes, [(0, Change::Hold(flow(2)))]);
        }
    }

    #[test]
    fn change_of_what_must_be_there_fails_whole_where_it_is_gone() {
        let moves = |number, port| {
            let flow = flow(port);
            [
                (number, Change::EndSteering(flow)),
                (number, Change::SteerOn(flow, NODE)),
                (number, Change::EndHold(flow)),
            ]
        };
        for place in [0, 2] {
            let mut batch = batch(&[moves(0, 1), moves(1, 2)].concat());
            let refused = [(place, Errno::NOENT)];
            assert_eq!(batch.correct(&refused), [(0, Errno::NOENT)]);
            assert_eq!(batch.changes, moves(1, 2));
        }
    }

    #[test]
    fn request_that_the_kernel_refuses_fails_alone_and_whole() {
        let (hold, release) = (
            |port| Change::Hold(flow(port)),
            |port| Change::Release(flow(port)),
        );
        let mut batch = batch(&[
            (0, hold(1)),
            (1, release(2)),
            (1, hold(2)),
            (1, release(3)),
            (2, release(4)),
            (3, hold(5)),
        ]);
        let refused = [(2, Errno::NFILE), (4, Errno::NOENT)];
        assert_eq!(batch.correct(&refused), [(1, Errno::NFILE)]);
        assert_eq!(batch.changes, [(0, hold(1)), (3, hold(5))]);
        assert_eq!(batch.correct(&[(7, Errno::NFILE)]), []);
    }
}
