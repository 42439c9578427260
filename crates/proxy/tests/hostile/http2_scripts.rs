//! Scripts of frames from a seed.

use super::http2_frames::play;

/// Scripts that are played.
const SCRIPTS: u64 = 300;

/// A generator of numbers: `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[3]
    }

    /// One of these, or, once in eight times, any byte.
    fn one_of(&mut self, all: &[u8]) -> u8 {
        match self.next() % 8 {
            0 => self.byte(),
            number => all[usize::try_from(number).expect("small") % all.len()],
        }
    }
}

/// Most frames are of requests, with flags and streams that fit.
fn script(dice: &mut Dice) -> Vec<u8> {
    let mut script = vec![dice.byte() & 0xfe];
    let mut stream = 1_u8;
    for _ in 0..dice.next() % 40 {
        let kind = dice.one_of(&[1, 1, 1, 0, 8, 3, 9]);
        let flags = dice.one_of(&[5, 4, 5, 4, 0, 1, 5]);
        script.extend([kind, flags, dice.one_of(&[stream, stream, stream, 0])]);
        let length = match kind % 12 {
            1 => dice.one_of(&[0, 1, 2, 0, 5]) % 6,
            0 => dice.byte() % 100,
            3 | 8 => 4,
            4 => 6 * (dice.byte() % 3),
            _ => dice.byte() % 20,
        };
        script.push(length);
        if kind % 12 != 1 {
            script.extend((0..length).map(|_| dice.one_of(&[0, 0, 1, 0xff])));
        }
        stream = stream.wrapping_add(2 * (dice.byte() % 2));
    }
    script
}

#[test]
fn connection_of_http2_ends_and_gives_whole_heads_whatever_its_client_sends() {
    for seed in 0..SCRIPTS {
        let script = script(&mut Dice(seed));
        let played = std::panic::catch_unwind(|| play(&script));
        assert!(played.is_ok(), "seed {seed}: {}", script.escape_ascii());
    }
}
