//! Weir beside other programs: benchmarks that start proxies of several makers side by side and
//! ask them all the same. They know a proxy by its command line and its address only.
//!
//! `peers` measures CPU time and memory, and runs scenarios of `weir bench`; `uneven` is about
//! links that do not match, `store-bench` about stores on disk, `memory` about a slow disk,
//! `sim-bench` about the simulator; `tables` writes tables of documents from records. `cargo xtask`
//! starts this program: it is built in release, or it would be what is measured.

mod client;
mod failure;
mod host;
mod ioctl;
mod memory;
mod options;
mod origin;
mod peers;
mod process;
mod proxy;
mod record;
mod root;
mod sim;
mod spread;
mod store;
mod tables;
mod uneven;

use failure::Failure;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <benchmark>

  peers [options]          measure weir beside other caching proxies
      --install            get missing peers from Debian
      --only NAMES         comma separated: weir,floor,nginx,haproxy,varnish,squid,trafficserver
      --seconds N          length of one run (default 2)
      --rounds N           runs of each kind, interleaved over the proxies (default 5)
      --idle N             idle connections to hold (default 10000; 0 leaves it out)
      --record FILE        where the numbers go (default records/peers-DATE.json)
      --show FILE          print the table of a record and measure nothing
  peers --scenario NAME    `weir bench` against every installed proxy, and one report of all runs; NAME as of `weir bench scenarios`;
                           after wpb the load is raised until proxies fail (wpb-load)
      --install            get missing peers from Debian
      --peers NAMES        comma separated: weir,squid,nginx,apache,varnish,trafficserver
      --scale F            length of the runs, 1 is the whole scenario (default: by scenario; wpb 0.13)
      --minutes N          instead: the scale at which everything takes about so long
      --clients LIST       numbers of clients, comma separated (default for wpb: 16,32,48,64,80,96)
      --cache MIB          room of each store (default: by scenario; wpb 75)
      --set KEY=VALUE      a key of the scenario; may be repeated
      --seed N             of requests and content (default 1)
      --together yes|no    all proxies at the same time (default: by scenario; wpb and wpb-modem yes)
      --out DIR            where records, report and figures go (default records/bench-NAME-DATE)
  uneven [options]         the same where links are uneven: read-ahead, aborts, joined fetches, long paths
      --install            get missing peers from Debian
      --peers NAMES        comma separated: weir,nginx,varnish,squid,trafficserver,haproxy
      --experiments NAMES  comma separated: abort,read-ahead,join,herd,memory,path
      --pairs N            downloads over the long path with each read-ahead (default 4)
      --out FILE           where the numbers go (default records/uneven-DATE.json)
      --show FILE          print the table of a record as Markdown and measure nothing
  memory [options]         resident memory of weir before a slow disk, with bodies of gigabytes (root: loop device, block controller)
      --memory MIB         memory for stored responses (default 64)
      --seconds N          length of the load (default 180)
      --clients N          clients at once, one in ten fast (default 200)
      --body MB            size of a body (default 5000)
      --disk MB            what the disk takes a second (default 20)
      --seed N             of rates and beginnings (default 1)
      --out FILE           where the numbers go (default records/memory-DATE.json)
      --show FILE          print the table of a record as Markdown and measure nothing
  sim-bench [options]      the simulator's rate and memory; hits alone beside libCacheSim (Python package, if it is installed)
      --parts NAMES        comma separated: hits,made,packets,memory,streamed; a record that is there keeps the others
      --made N             requests of the trace of 1997 (default 1000000)
      --memory N           requests at most where memory is looked at (default 16000000)
      --streamed N         requests of the long trace (default 100000000)
      --requests N         drawn for the trace (default 10000000)
      --keys N             responses they are drawn from (default 2000000)
      --percent N          size of the cache, of all responses (default 10)
      --rounds N           runs of each, in turn (default 3)
      --seed N             of the trace (default 1)
      --python PROGRAM     a Python that has libcachesim (default python3)
      --out FILE           where the numbers go (default records/sim-DATE.json)
      --show FILE          print the table of a record as Markdown and measure nothing
  store-bench [options]    disk stores: hits, fill, start after kill -9
      --install            get missing peers from Debian
      --peers NAMES        comma separated: weir,nginx,varnish,squid,trafficserver
      --memory MIB         memory for stored responses (default 64)
      --times N            working set, times the memory (default 10)
      --cgroup MIB         limit of process and page cache (default 0: none)
      --seconds N          length of the run of hits (default 20)
      --connections N      clients at once (default 32)
      --responses N        in the store that is killed (default 1000000; 0 leaves it out)
      --seed N             of sizes and order (default 1)
      --out FILE           where the numbers go (default records/store-DATE.json)
      --show FILE          print the table of a record as Markdown and measure nothing
  tables                   write the tables of documents anew, from the newest records
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else {
        return Err(Failure::Usage(format!("no benchmark was named\n{USAGE}")));
    };
    match (name.as_str(), rest) {
        ("peers", _) => peers::run(rest),
        ("uneven", _) => uneven::run(rest),
        ("memory", _) => memory::run(rest),
        ("store-bench", _) => store::run(rest),
        ("sim-bench", _) => sim::run(rest),
        ("tables", []) => tables::run(),
        (origin::ROLE, _) => origin::run(rest),
        ("help" | "--help" | "-h", _) => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(Failure::Usage(format!(
            "`{}` is not a benchmark with these arguments\n{USAGE}",
            arguments.join(" ")
        ))),
    }
}
