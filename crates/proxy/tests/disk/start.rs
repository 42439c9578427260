//! Where the store is, and who may use it.

use super::setup::DiskSetup;
use crate::support::Representation;
use std::process::Command;
use weir_disk::format::SUPERBLOCK_FILE;

#[test]
fn second_process_on_the_same_store_is_refused() {
    DiskSetup::each(|setup| {
        let refusal = setup.another(0).err().expect("it starts");
        assert!(refusal.contains("process"), "{refusal}");
        assert!(refusal.contains("--disk-dir"), "{refusal}");
        setup.store_whole(&Representation::new("/a", 10));
    });
}

#[test]
fn disabled_store_is_not_created() {
    let setup = DiskSetup::real(|config| config.disk.enabled = false);
    setup.fetch_whole(&Representation::new("/a", 10));
    assert!(!setup.store().exists());
}

/// What identifies the store is there twice: cut short, zeroed, or gone in the middle of both.
const DAMAGE: [fn(&mut Vec<u8>); 4] = [
    |bytes| bytes.truncate(100),
    Vec::clear,
    |bytes| bytes.fill(0),
    |bytes| (bytes[20], bytes[4096 + 20]) = (!bytes[20], !bytes[4096 + 20]),
];

#[test]
fn unidentifiable_store_is_refused_and_the_advised_command_repairs_it() {
    for damage in DAMAGE {
        let mut setup = DiskSetup::real(|_| {});
        let what = Representation::new("/a", 10);
        setup.store_whole(&what);
        setup.stop();
        let store = setup.store();
        let file = store.join(SUPERBLOCK_FILE);
        let mut bytes = std::fs::read(&file).expect("a store");
        damage(&mut bytes);
        std::fs::write(&file, &bytes).expect("ours");
        let refusal = setup.another(0).err().expect("it starts");
        for part in [file.to_str().expect("text"), "both copies", "--disk off"] {
            assert!(refusal.contains(part), "{part}: {refusal}");
        }
        assert_eq!(std::fs::read(&file).expect("it is left alone"), bytes);
        let advice = refusal.split('`').find(|part| part.starts_with("mv "));
        let done = Command::new("sh")
            .args(["-c", advice.expect("a command")])
            .status();
        assert!(done.expect("a shell").success());
        setup.begin_again();
        setup.store_whole(&what);
        let aside = store.with_extension("damaged").join(SUPERBLOCK_FILE);
        assert_eq!(std::fs::read(aside).expect("nothing is dropped"), bytes);
    }
}
