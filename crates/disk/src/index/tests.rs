use super::*;
use crate::files::simulated::Random;
use std::collections::HashMap;

fn key(random: &mut Random) -> Digest {
    Digest(random.next(), random.next())
}

fn place(number: u64) -> Place {
    let slot = u16::try_from(number % 1000).unwrap();
    let offset = u32::try_from(number % (1 << 26) * 16).unwrap();
    Place::new(slot, offset, 1000)
}

#[test]
fn index_matches_a_reference_map_under_random_operations() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let (index, mut map) = (Index::new(), HashMap::new());
        let keys: Vec<Digest> = (0..1 + random.below(300))
            .map(|_| key(&mut random))
            .collect();
        for _ in 0..1000 {
            let number = usize::try_from(random.below(keys.len() as u64)).unwrap();
            let key = keys[number];
            let here = place(random.next());
            match random.below(6) {
                0..=2 => {
                    index.insert(key, here);
                    map.insert(key, here);
                }
                3 => assert_eq!(index.remove(key), map.remove(&key).is_some(), "{seed}"),
                4 => {
                    index.insert_new(key, here);
                    map.entry(key).or_insert(here);
                }
                _ => assert_eq!(index.ask(key), map.get(&key).copied(), "{seed}"),
            }
        }
        assert_eq!(index.len(), map.len() as u64);
        for key in keys {
            assert_eq!(
                index.peek(key).map(|(place, _)| place),
                map.get(&key).copied()
            );
        }
    }
}

#[test]
fn index_entry_that_has_moved_is_neither_removed_nor_relocated() {
    let (index, key) = (Index::new(), Digest(5, 6));
    index.insert(key, place(1));
    assert!(!index.remove_at(key, place(2)));
    assert!(!index.relocate(key, place(2), place(3)));
    assert_eq!(index.ask(key), Some(place(1)));
    assert!(index.relocate(key, place(1), place(3)));
    assert_eq!(index.peek(key), Some((place(3), false)));
    assert!(index.remove_at(key, place(3)));
    assert_eq!(index.len(), 0);
}

#[test]
fn residents_lists_exactly_the_entries_of_a_segment_in_offset_order() {
    let index = Index::new();
    let mut random = Random(1);
    for number in 0..10_000 {
        index.insert(key(&mut random), place(number));
    }
    let residents = index.residents(7);
    assert_eq!(residents.len(), 10);
    assert!(residents.is_sorted_by_key(|resident| resident.place.unit));
    for resident in &residents {
        assert_eq!(resident.place.slot, 7);
        assert!(index.remove_resident(resident));
        assert!(!index.remove_resident(resident));
    }
    assert_eq!(index.residents(7), []);
    assert_eq!(index.len(), 9990);
}

/// The limit is 32 bytes a stored response. What there is without any entry (a shard's mutex and
/// header, 2560 bytes in all) is counted apart: it is no more than that of a hundred entries.
#[test]
fn index_costs_at_most_32_bytes_per_stored_response_at_any_size() {
    let index = Index::new();
    let fixed = index.bytes();
    assert!(fixed <= 2560, "{fixed}");
    let mut random = Random(2);
    let mut worst = (0.0_f64, 0);
    for len in 1..=300_000_u32 {
        index.insert(key(&mut random), place(u64::from(len)));
        if len < 2000 || len % 101 == 0 {
            #[expect(clippy::cast_precision_loss, reason = "megabytes")]
            let each = (index.bytes() - fixed) as f64 / f64::from(len);
            assert!(each <= 32.0, "{each} bytes at {len}");
            if len >= 10_000 && each > worst.0 {
                worst = (each, len);
            }
        }
    }
    // sixteen bytes, seven tenths full at worst
    assert!(worst.0 > 20.0 && worst.0 < 23.5, "{worst:?}");
}

#[test]
fn index_releases_memory_after_most_entries_are_removed() {
    let index = Index::new();
    let mut random = Random(3);
    let keys: Vec<Digest> = (0..50_000).map(|_| key(&mut random)).collect();
    for key in &keys {
        index.insert(*key, place(key.0));
    }
    for key in &keys[500..] {
        assert!(index.remove(*key));
    }
    assert!(index.bytes() < 500 * 33 + 2560, "{}", index.bytes());
    assert!(keys[..500].iter().all(|key| index.ask(*key).is_some()));
}
