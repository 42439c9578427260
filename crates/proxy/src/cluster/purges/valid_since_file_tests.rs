//! What is demanded is there after a crash, or is said not to be.

use super::*;
use weir_disk::files::simulated::{Fault, Plan, SimulatedFiles};

/// The last ticket and the time when the file is opened.
const START: (u64, Timestamp) = (100, Timestamp(1000));

/// The same later.
const LATER: (u64, Timestamp) = (200, Timestamp(2000));

/// All that there is at the start.
const ALL: Demand = demand(100, i64::MIN);

const fn demand(ticket: u64, then: i64) -> Demand {
    Demand {
        ticket,
        then: Timestamp(then),
    }
}

/// What happens to the bytes of the file.
type Damage = fn(&mut Vec<u8>);

/// A file system, and what was said.
struct Machine {
    files: SimulatedFiles,
    said: Arc<Mutex<Vec<String>>>,
}

impl Machine {
    fn new() -> Self {
        let files = SimulatedFiles::new(7);
        files
            .create_directory(Path::new("/store"))
            .expect("a folder");
        Self {
            files,
            said: Arc::default(),
        }
    }

    fn path() -> PathBuf {
        "/store/valid-since".into()
    }

    fn open(&self, start: (u64, Timestamp)) -> (Arc<ValidSinceFile>, Demand) {
        let said = Arc::clone(&self.said);
        let say: Say = Arc::new(move |line: &str| lock(&said).push(line.to_owned()));
        ValidSinceFile::open(Self::path(), Arc::new(self.files.clone()), say, start)
    }

    fn said(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.said))
    }

    fn crash_and_read(&self) -> Demand {
        self.files.crash();
        self.open(START).1
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn what_is_demanded_is_read_after_a_crash() {
    let machine = Machine::new();
    let (file, found) = machine.open(START);
    assert_eq!(found, Demand::NONE);
    for (ticket, then) in [(40, 400), (42, 390), (43, 395)] {
        assert_eq!(block_on(file.demand(demand(ticket, then))), Ok(()));
    }
    assert_eq!(machine.crash_and_read(), demand(43, 400));
    assert_eq!(machine.said(), [""; 0]);
}

#[test]
fn full_file_system_does_not_prevent_it() {
    let machine = Machine::new();
    let (file, _) = machine.open(START);
    let space = machine
        .files
        .space(Path::new("/store"))
        .expect("it is known");
    machine.files.limit_space(space.total - space.free);
    assert!(
        machine
            .files
            .content(&Machine::path())
            .is_ok_and(|it| !it.is_empty())
    );
    assert_eq!(block_on(file.demand(demand(40, 400))), Ok(()));
    assert_eq!(machine.crash_and_read(), demand(40, 400));
    assert_eq!(machine.said(), [""; 0]);
}

#[test]
fn without_room_at_the_start_it_is_said_and_done_when_there_is_room() {
    let machine = Machine::new();
    machine.files.limit_space(0);
    let (file, _) = machine.open(START);
    for ticket in [40, 41] {
        let lost = block_on(file.demand(demand(ticket, 400)));
        assert_eq!(lost.map_err(|it| it.path), Err(Machine::path()));
    }
    assert!(!file.write_if_due(), "it is tried, and has failed");
    let said = machine.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("/store/valid-since"), "{said:?}");
    assert!(said[0].contains("make room"), "{said:?}");
    machine.files.limit_space(u64::MAX);
    assert_eq!(file.write_now(demand(42, 400)), Ok(()));
    assert!(file.write_if_due());
    assert_eq!(machine.crash_and_read(), demand(42, 400));
}

#[test]
fn fault_at_any_operation_leaves_what_was_answered_and_no_damage() {
    for fault in [
        Fault::Torn,
        Fault::Device,
        Fault::NoSpace,
        Fault::Short,
        Fault::Stop,
    ] {
        for nth in 0.. {
            let machine = Machine::new();
            let (file, _) = machine.open(START);
            assert_eq!(file.write_now(demand(40, 400)), Ok(()));
            machine.files.plan(Plan {
                nth: Some((nth, fault)),
                ..Plan::default()
            });
            let written = file.write_now(demand(50, 500));
            let is_over = machine.files.operations() <= nth;
            machine.files.plan(Plan::default());
            let found = machine.crash_and_read();
            assert!(
                found == demand(50, 500) || found == demand(40, 400) && fault == Fault::Stop,
                "{fault:?} at {nth}: {found:?}, {written:?}"
            );
            let is_said = !machine.said().is_empty();
            assert_eq!(is_said, written.is_err(), "{fault:?} at {nth}");
            assert!(
                written.is_ok() || fault == Fault::Stop,
                "{fault:?} at {nth}"
            );
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn lasting_fault_is_an_answer_that_it_is_not_durable() {
    let machine = Machine::new();
    let (file, _) = machine.open(START);
    machine.files.plan(Plan {
        nth: Some((0, Fault::Device)),
        lasting: true,
        ..Plan::default()
    });
    assert!(file.write_now(demand(50, 500)).is_err());
    assert_eq!(machine.said().len(), 1);
    machine.files.plan(Plan::default());
    assert_eq!(machine.crash_and_read(), Demand::NONE);
}

#[test]
fn damage_of_one_copy_is_mended_and_of_both_has_all_validated_once() {
    let damages: [(Damage, bool); 7] = [
        (|bytes| bytes[20] ^= 1, true),
        (|bytes| bytes[PAGE_BYTES + 20] ^= 1, true),
        (|bytes| bytes.truncate(PAGE_BYTES), true),
        (|bytes| bytes.push(0), true),
        (Vec::clear, false),
        (|bytes| *bytes = b"1790000000\n".to_vec(), false),
        (
            |bytes| bytes.swap_with_slice(&mut vec![1; COPIES * PAGE_BYTES]),
            false,
        ),
    ];
    for (at, (damage, is_known)) in damages.into_iter().enumerate() {
        let machine = Machine::new();
        let (file, _) = machine.open(START);
        assert_eq!(file.write_now(demand(40, 400)), Ok(()));
        let damaged = machine.files.damage(&Machine::path(), damage);
        damaged.expect("a file");
        let found = machine.open(START).1;
        assert_eq!(found, if is_known { demand(40, 400) } else { ALL }, "{at}");
        assert_eq!(machine.said().len(), usize::from(!is_known), "{at}");
        // it is whole again, with what was found
        assert_eq!(machine.open(LATER).1, found, "{at}");
        assert_eq!(machine.said(), [""; 0], "{at}");
    }
}

#[test]
fn time_from_the_future_is_now_for_good() {
    let machine = Machine::new();
    let (file, _) = machine.open(START);
    assert_eq!(file.write_now(demand(40, 9_999_999_999)), Ok(()));
    assert_eq!(machine.open(START).1, demand(40, 1000));
    assert_eq!(machine.open(LATER).1, demand(40, 1000));
}

#[test]
fn file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("valid-since");
    let files = Arc::new(weir_disk::files::SystemFiles);
    let (file, _) = ValidSinceFile::open(path.clone(), files, Arc::new(|_: &str| {}), START);
    let metadata = std::fs::metadata(&path).expect("a file");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(metadata.len(), (COPIES * PAGE_BYTES) as u64);
    drop(folder);
    assert!(
        file.write_now(demand(50, 500)).is_err(),
        "there is no folder"
    );
}
