//! Where the store is, and who may use it.

use super::depot::Depot;
use crate::support::Representation;

#[test]
fn second_process_uses_the_same_store() {
    Depot::each(|depot| {
        let refusal = depot.another(0).err().expect("it starts");
        assert!(refusal.contains("process"), "{refusal}");
        assert!(refusal.contains("--disk-dir"), "{refusal}");
        depot.store_whole(&Representation::new("/a", 10));
    });
}

#[test]
fn store_is_made_although_it_is_not_wanted() {
    let depot = Depot::real(|config| config.disk.enabled = false);
    depot.fetch_whole(&Representation::new("/a", 10));
    assert!(!depot.store().exists());
}
