//! The runs of a measurement: each binary under callgrind for each case, then with idle
//! connections.

use super::counted::{self, Counted, Expected};
use super::{AGAINST, CASES, Case, Count, Record};
use crate::proxy::contender::WEIR;
use crate::proxy::idle;
use crate::proxy::template::Words;
use weir_bench::origin::ResponseSpec;
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

const SIZE_BYTES: u64 = 1 << 10;

impl Case {
    fn spec(self) -> ResponseSpec {
        ResponseSpec {
            is_storable: self == Self::Hit,
            ..ResponseSpec::new(&format!("/{self:?}"), SIZE_BYTES)
        }
    }
}

/// Measures everything, into the record.
pub(super) fn measure(record: &mut Record, words: &Words) -> Result<(), Failure> {
    let options = record.settings.clone();
    let mut binaries = vec![(WEIR, words.clone())];
    if let Some(against) = &options.against {
        let file = std::fs::canonicalize(against);
        let file = file.during(format_args!("find `{}`", against.display()))?;
        let mut words = words.clone();
        words.set("WEIR", file.display());
        binaries.push((AGAINST, words));
    }
    let workplace = Workplace::make("instructions")?;
    for case in CASES {
        for (binary, words) in &binaries {
            let directory = workplace.path().join(format!("{binary}-{case:?}"));
            let counted = Counted {
                words,
                spec: case.spec(),
                requests: options.requests,
                expected: Expected::default(),
            };
            let difference = counted.difference(&directory)?;
            let count = Count {
                binary: (*binary).to_owned(),
                case,
                requests: difference.requests,
                instructions: difference.instructions,
            };
            eprintln!("  {count:?}");
            record.figures.counts.push(count);
        }
    }
    for (binary, words) in binaries.iter().filter(|_| options.idle_connections > 0) {
        let directory = workplace.path().join(format!("{binary}-idle"));
        let (_origin, server) = counted::start(&directory, words, &[])?;
        let target = Case::Hit.spec().to_string();
        let none = Expected::default();
        counted::ask(&server, &Case::Hit.spec(), none, options.requests)?;
        let idle = idle::measure(binary, &server, options.idle_connections, &target);
        record.figures.idle.push(idle);
    }
    Ok(())
}
