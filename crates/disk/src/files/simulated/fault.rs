//! What goes wrong, and when.

use std::io;

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device says `EIO`; nothing was done.
    Device,
    /// `ENOSPC`; nothing was done.
    NoSpace,
    /// `EINTR`; nothing was done.
    Interrupted,
    /// A read or a write does half and says so; anything else succeeds.
    Short,
    /// A write does half and fails; anything else fails.
    Torn,
    /// From here on nothing has any effect: the machine is about to crash.
    Stop,
}

/// What will go wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// The operation of this number, counted from 0, goes wrong in this way.
    pub nth: Option<(u64, Fault)>,
    /// Operations behind it go wrong too.
    pub lasting: bool,
    /// One operation in so many goes wrong by chance; 0: none.
    pub one_in: u64,
    /// Seed of that chance.
    pub seed: u64,
    /// Nothing is in the page cache: reads that must not wait find nothing.
    pub uncached: bool,
    /// The file system cannot be read past the page cache.
    pub indirect: bool,
    /// It is not known without a read what the page cache has.
    pub untold_residency: bool,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    plan: Plan,
    operations: u64,
    random: Random,
}

impl Faults {
    pub(super) fn set(&mut self, plan: Plan) {
        *self = Self {
            plan,
            operations: 0,
            random: Random(plan.seed),
        };
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn is_cached(&self) -> bool {
        !self.plan.uncached
    }

    /// Whether nothing has any effect any more.
    pub(super) fn has_stopped(&self) -> bool {
        let nth = self.plan.nth;
        nth.is_some_and(|(nth, fault)| fault == Fault::Stop && self.operations > nth)
    }

    pub(super) fn is_direct(&self) -> bool {
        !self.plan.indirect
    }

    pub(super) fn tells_residency(&self) -> bool {
        !self.plan.untold_residency
    }

    fn draw(&mut self) -> Option<Fault> {
        let number = self.operations;
        self.operations += 1;
        if let Some((nth, fault)) = self.plan.nth
            && (number == nth || (number > nth && (self.plan.lasting || fault == Fault::Stop)))
        {
            return Some(fault);
        }
        if self.plan.one_in > 0 && self.random.below(self.plan.one_in) == 0 {
            let kinds = [
                Fault::Device,
                Fault::NoSpace,
                Fault::Interrupted,
                Fault::Short,
                Fault::Torn,
            ];
            return usize::try_from(self.random.below(5))
                .ok()
                .and_then(|kind| kinds.get(kind))
                .copied();
        }
        None
    }

    /// An operation that is done or fails.
    pub(super) fn next(&mut self) -> io::Result<Option<Fault>> {
        match self.draw() {
            Some(Fault::Device | Fault::Torn | Fault::Stop) => Err(device_error()),
            Some(Fault::NoSpace) => Err(no_space()),
            // only transfers are short or interrupted
            Some(Fault::Short | Fault::Interrupted) | None => Ok(None),
        }
    }

    pub(super) fn next_read(&mut self) -> io::Result<Option<Fault>> {
        match self.draw() {
            Some(Fault::Device | Fault::Torn | Fault::Stop) => Err(device_error()),
            Some(Fault::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
            Some(Fault::Short) => Ok(Some(Fault::Short)),
            Some(Fault::NoSpace) | None => Ok(None),
        }
    }

    pub(super) fn next_write(&mut self) -> io::Result<Option<Fault>> {
        match self.draw() {
            Some(Fault::Device | Fault::Stop) => Err(device_error()),
            Some(Fault::NoSpace) => Err(no_space()),
            Some(Fault::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
            other => Ok(other),
        }
    }
}

pub(super) fn device_error() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error())
}

pub(super) fn no_space() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error())
}

/// `SplitMix64`: small, fast, and the same everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[expect(
        clippy::should_implement_trait,
        reason = "a generator that never ends is not iterated over"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
