use super::*;
use crate::digest::{KeyHasher, Secret};

fn key(number: u64) -> Digest {
    let mut hasher = KeyHasher::new(&Secret([7; 16]));
    hasher.number(number);
    hasher.finish()
}

#[test]
fn request_count_of_a_key_is_capped_at_fifteen() {
    let mut popularity = Popularity::new(Popularity::DEFAULT_BYTES);
    assert_eq!(popularity.asked(key(1)), 0);
    for times in 1..=20 {
        popularity.note(key(1));
        assert_eq!(popularity.asked(key(1)), times.min(15));
    }
    assert_eq!(popularity.asked(key(2)), 0);
}

#[test]
fn memory_is_the_configured_size_rounded_down_and_never_grows() {
    for (bytes, heap_bytes) in [
        (0, 2048),
        (4095, 2048),
        (4096, 4096),
        (Popularity::DEFAULT_BYTES, 128 * 1024),
    ] {
        let mut popularity = Popularity::new(bytes);
        assert_eq!(popularity.heap_bytes(), heap_bytes);
        (0..100).for_each(|number| popularity.note(key(number)));
        assert_eq!(popularity.heap_bytes(), heap_bytes);
    }
}

#[test]
fn few_keys_are_overcounted_when_the_sketch_is_full() {
    // as many keys as a row has counters
    let mut popularity = Popularity::new(64 * 1024);
    (0..32_768).for_each(|number| popularity.note(key(number)));
    let wrong = (0..32_768).filter(|&number| popularity.asked(key(number)) > 1);
    assert!(wrong.count() < 32_768 / 20);
    let seen = (32_768..65_536).filter(|&number| popularity.asked(key(number)) > 0);
    assert!(seen.count() < 32_768 / 4);
}

#[test]
fn counts_are_halved_after_ten_notes_per_counter() {
    let mut popularity = Popularity::new(BYTES_MIN);
    (0..15).for_each(|_| popularity.note(key(1)));
    // a row of 2048 bytes has 1024 counters; after ten notes for each all are halved
    for _ in 15..10_239 {
        popularity.note(key(2));
    }
    assert_eq!(popularity.asked(key(1)), 15);
    popularity.note(key(2));
    assert_eq!(popularity.asked(key(1)), 7);
    assert_eq!(popularity.asked(key(2)), 7);
}

#[test]
fn initial_chance_of_another_request_is_one_third() {
    let popularity = Popularity::new(BYTES_MIN);
    let third = popularity.again(key(1)).per_1024();
    assert!((330..=342).contains(&third), "{third}");
}

#[test]
fn chance_of_another_request_is_learnt_from_earlier_keys() {
    // of ten keys one is asked for again, and then often
    let mut popularity = Popularity::new(Popularity::DEFAULT_BYTES);
    for number in 0..5000 {
        popularity.note(key(number));
        if number % 10 == 0 {
            (0..9).for_each(|_| popularity.note(key(number)));
        }
    }
    let once = popularity.again(key(1)).per_1024();
    let often = popularity.again(key(10)).per_1024();
    let stranger = popularity.again(key(1_000_000)).per_1024();
    assert!((90..=120).contains(&once), "{once}");
    assert_eq!(stranger, once);
    // asked for ten times, and never again: that is learnt too
    assert!(often < 120, "{often}");
    popularity.note(key(1));
    let twice = popularity.again(key(1)).per_1024();
    assert!(twice > 900, "{twice}");
}

#[test]
fn chance_is_rounded_down_and_at_most_certain() {
    assert_eq!(Chance::of(1, 3).per_1024(), 341);
    assert_eq!(Chance::of(3, 3), Chance::CERTAIN);
    assert_eq!(Chance::of(4, 3), Chance::CERTAIN);
    assert_eq!(Chance::of(0, 3), Chance::NEVER);
    assert_eq!(Chance::of(3, 0), Chance::NEVER);
    assert_eq!(Chance::CERTAIN.of_bytes(u64::MAX), u64::MAX);
    assert_eq!(Chance::NEVER.of_bytes(u64::MAX), 0);
    assert_eq!(Chance::of(1, 2).of_bytes(1001), 500);
}
