//! A seed names a run.

use super::{conduct, local, plan, support};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use weir_bench::conduct::{Interrupt, LocalPlan, RunPlan};

/// What each agent asked for, in its order.
fn asked(path: &Path) -> BTreeMap<u32, Vec<(String, u32, u64)>> {
    let reader = SerializedFileReader::new(File::open(path).expect("it was written"))
        .expect("it is Parquet");
    let mut asked: BTreeMap<u32, Vec<(String, u32, u64)>> = BTreeMap::new();
    for row in reader.get_row_iter(None).expect("rows") {
        let row = row.expect("a row");
        let request = (
            row.get_string(0).expect("a phase").clone(),
            row.get_uint(2).expect("a server"),
            row.get_ulong(3).expect("a target"),
        );
        asked
            .entry(row.get_uint(1).expect("an agent"))
            .or_default()
            .push(request);
    }
    asked
}

fn streams(plan: &RunPlan, threads: u32) -> BTreeMap<u32, Vec<(String, u32, u64)>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("samples.parquet");
    let mut local: LocalPlan = local(threads);
    local.clients.samples = Some((path.clone(), 1));
    let gathered = conduct(plan, &local, &Interrupt::default()).expect("it runs");
    assert_eq!(gathered.samples, [path.display().to_string()]);
    asked(&path)
}

#[test]
fn same_seed_gives_the_same_requests_on_any_number_of_threads() {
    let one = plan(support::wpb(&[]), None);
    let first = streams(&one, 1);
    assert_eq!(
        first.values().map(Vec::len).collect::<Vec<_>>(),
        [20, 20, 20, 20]
    );
    assert_eq!(streams(&one, 1), first);
    // how many threads share it is no matter
    assert_eq!(streams(&one, 3), first);
    let other = RunPlan {
        seed: one.seed + 1,
        ..one
    };
    assert_ne!(streams(&other, 1), first);
}
