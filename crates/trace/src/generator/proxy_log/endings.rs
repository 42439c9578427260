//! How a transfer ends: whole, aborted, or longer than it was declared.

use super::deficit::Deficit;
use super::profile::Ends;
use weir_workload::Chance;
use weir_workload::whole;

/// How one transfer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) is_aborted: bool,
    /// Bytes that the client has then.
    pub(super) received: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Endings {
    ends: Ends,
    aborted: Deficit,
    overlong: Deficit,
    /// The received share is `u^power`, u uniform.
    power: f64,
}

impl Endings {
    pub(super) fn new(ends: &Ends) -> Self {
        Self {
            ends: ends.clone(),
            aborted: Deficit::new(ends.aborted),
            overlong: Deficit::new(ends.overlong),
            // the mean of u^power is 1 / (1 + power)
            power: 1.0 / ends.received - 1.0,
        }
    }

    /// Draws how a transfer of so many declared bytes ends.
    pub(super) fn draw(&mut self, bytes: u64, chance: &mut Chance) -> Ending {
        let deficit = self.aborted.deficit() / PATIENCE;
        let is_aborted = bytes > 1 && chance.is(self.chance(bytes as f64, deficit));
        let is_overlong = !is_aborted && chance.is(self.overlong.chance(self.ends.overlong));
        self.aborted.count(1.0, f64::from(u8::from(is_aborted)));
        self.overlong.count(1.0, f64::from(u8::from(is_overlong)));
        let share = if is_aborted {
            libm::pow(chance.unit(), self.power)
        } else if is_overlong {
            self.ends.overlong_factor
        } else {
            1.0
        };
        let received = cut(bytes, share);
        Ending {
            is_aborted,
            received: match (is_aborted, is_overlong) {
                (true, _) => received.clamp(1, bytes - 1),
                (_, true) => received.max(bytes + 1),
                _ => bytes,
            },
        }
    }

    /// Bytes that a client receives of a response, on average.
    pub(super) fn expected(&self, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        bytes * (1.0 - self.chance(bytes, 0.0) * (1.0 - self.ends.received))
    }

    /// The larger the likelier: odds of 1 at `even_bytes`, by a power of the size; raised by what
    /// is owed.
    fn chance(&self, bytes: f64, deficit: f64) -> f64 {
        if self.ends.aborted == 0.0 {
            return 0.0;
        }
        let logit = self.ends.slope * libm::log(bytes / self.ends.even_bytes) + deficit;
        1.0 / (1.0 + libm::exp(-logit))
    }
}

/// A debt of so many aborts raises the odds of the next by e.
const PATIENCE: f64 = 50.0;

fn cut(bytes: u64, share: f64) -> u64 {
    whole(bytes as f64 * share)
}

#[cfg(test)]
mod tests {
    use super::super::Profile;
    use super::*;

    #[test]
    fn aborted_transfer_receives_a_part_and_the_aborted_share_is_met() {
        let profile = Profile::built_in("modem-1997").unwrap();
        let mut endings = Endings::new(&profile.ends);
        let mut chance = Chance::new(1, 1);
        let mut aborted = 0_u32;
        for number in 0..20_000_u64 {
            let bytes = 1 + number % 50_000;
            let ending = endings.draw(bytes, &mut chance);
            if ending.is_aborted {
                aborted += 1;
                assert!(
                    ending.received >= 1 && ending.received < bytes,
                    "{ending:?}"
                );
            } else {
                assert!(ending.received >= bytes, "{ending:?}");
            }
        }
        let share = f64::from(aborted) / 20_000.0;
        assert!((share - profile.ends.aborted).abs() < 0.01, "{share}");
    }

    #[test]
    fn larger_transfer_is_more_likely_to_be_aborted() {
        let profile = Profile::built_in("modem-1997").unwrap();
        let endings = Endings::new(&profile.ends);
        let chances = [1e2, 1e3, 1e4, 1e5, 1e6].map(|bytes| endings.chance(bytes, 0.0));
        assert!(
            chances.windows(2).all(|pair| pair[0] < pair[1]),
            "{chances:?}"
        );
    }
}
