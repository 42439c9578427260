//! Golden figures: what each line of LARD's figures comes to on a small committed trace.
//!
//! `data/rice-small.parquet` is `weir trace make rice-1999 --requests 20000 --seed 1`. The counts
//! change with a policy, with an eviction algorithm, and with the model; nothing else may change
//! them.

use std::fmt::Write as _;
use std::num::NonZero;
use std::path::Path;
use weir_sim::cluster::{BackEndsSetting, ClusterRun, Http, MechanismCosts, Server};
use weir_sim::paper::lard::Line;
use weir_trace::Reader;
use weir_trace::grouping::{ConnectionTrace, GroupingRules};

/// The line, nodes, hits, files read, forwarded, handed over again, microseconds until the end.
const EXPECTED: &str = "\
WRR-PHTTP 1: 10904 8810 0 0 299376678
WRR-PHTTP 3: 9477 9786 0 0 109423487
WRR-PHTTP 6: 7644 11090 0 0 65192820
simple-LARD-PHTTP 1: 10904 8810 0 0 299376678
simple-LARD-PHTTP 3: 11218 7727 0 0 89052284
simple-LARD-PHTTP 6: 10406 7410 0 0 43930473
multiHandoff-extLARD-PHTTP 1: 10904 8810 0 0 299376678
multiHandoff-extLARD-PHTTP 3: 12156 6712 0 2403 78607210
multiHandoff-extLARD-PHTTP 6: 11463 6046 0 3025 36293223
BEforward-extLARD-PHTTP 1: 10904 8810 0 0 299376678
BEforward-extLARD-PHTTP 3: 12152 6714 3358 0 78412701
BEforward-extLARD-PHTTP 6: 11506 6038 4440 0 37003723
zeroCost-extLARD-PHTTP 1: 10904 8810 0 0 299376678
zeroCost-extLARD-PHTTP 3: 12149 6718 0 2422 78473720
zeroCost-extLARD-PHTTP 6: 11463 6043 0 3019 36272963
bounded-hash 1: 10904 8810 0 0 299376678
bounded-hash 3: 12177 6707 11283 0 78604178
bounded-hash 6: 11470 6086 13827 0 36237011
two-choices 1: 10904 8810 0 0 299376678
two-choices 3: 9680 9833 11270 0 110361880
two-choices 6: 8290 11068 14018 0 61032586
replicated-hash 1: 10904 8810 0 0 299376678
replicated-hash 3: 12177 6707 11283 0 78604178
replicated-hash 6: 11470 6086 13827 0 36237011
";

#[test]
fn each_line_on_the_committed_trace_has_the_recorded_counts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rice-small.parquet");
    let rows = Reader::open(&path)
        .expect("the trace is there")
        .rows(ConnectionTrace::COLUMNS);
    let trace = ConnectionTrace::read(rows, GroupingRules::default()).expect("it has connections");
    assert_eq!(trace.len(), 20_000);
    let mut found = String::new();
    for line in Line::ALL
        .into_iter()
        .filter(|line| line.http() == Http::Persistent)
    {
        for nodes in [1, 3, 6] {
            let server = Server::Apache.costs();
            let costs = MechanismCosts::at_crossover(&server, MechanismCosts::SCALE);
            let costs = costs.expect("published costs are above 0");
            let nodes = NonZero::new(nodes).expect("not 0");
            let mut setting = BackEndsSetting::of(nodes, server, costs);
            setting.policy = line.policy();
            setting.mechanism = line.mechanism();
            setting.http = line.http();
            // the trace has a hundredth of the requests
            setting.cache.capacity_bytes = 8_500_000;
            let run = ClusterRun::new(&setting, &trace).expect("few nodes");
            let outcome = run.run(&|| false).expect("nothing stops it");
            let busy: f64 = outcome.nodes.iter().map(|node| node.cpu_busy).sum();
            assert!(busy <= f64::from(nodes.get()), "{line}");
            writeln!(
                found,
                "{line} {nodes}: {} {} {} {} {}",
                outcome.hits,
                outcome.files_read,
                outcome.lateral,
                outcome.handed_off,
                outcome.elapsed_ns / 1000
            )
            .expect("into a string");
        }
    }
    assert_eq!(found, EXPECTED);
}
