//! `cargo xtask peers`: weir beside other caching proxies, on this machine, in the same minutes.
//!
//! Each proxy is a caching gateway on one core before one origin; `wrk` drives it from the other core, where the
//! origin lives too. All are started together and measured in short runs that go round: a disturbance of the machine meets
//! everybody, and the table shows medians with the least and the most. The figure to believe is CPU time a request of
//! the server; requests a second also depend on how much of the other core the origin needs.
//!
//! A number is believed only when it was checked: the body has the right size, no request failed, and the origin's own
//! counter says that hits did not reach it and uncacheable requests did. A run that fails a check stays in the record
//! with the reason and out of the table.

mod affinity;
mod bench;
mod client;
mod contender;
mod guarded;
mod host;
mod idle;
mod options;
mod origin;
mod record;
mod run;
mod server;
mod table;
mod template;
mod usage;
mod wrk;

use crate::failure::Failure;
use crate::{need, root};
use contender::Contender;
use options::{Options, Task};
use record::Record;
use std::path::Path;

/// `cargo xtask peers [options]`
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match options::parse(arguments)? {
        Task::Show(file) => {
            print!("{}", table::render(&Record::read(Path::new(&file))?));
            Ok(())
        }
        Task::Measure(options) => measure(&options, arguments),
    }
}

fn measure(options: &Options, arguments: &[String]) -> Result<(), Failure> {
    let chosen = contender::named(&options.only)?;
    let (present, left_out) = prepare(&chosen, options)?;
    let programs = bench::Programs::build(&present)?;
    let mut record = Record::begin(options, arguments, &programs, &present)?;
    for (name, reason) in left_out {
        record.left_out.insert(name, reason);
    }
    bench::fill(&mut record, options, &programs, &present)?;
    let default = || root::directory().join(format!("records/peers-{}.json", host::date()));
    let file = options.record.as_ref().map_or_else(default, Into::into);
    record.write(&file)?;
    print!("{}", table::render(&record));
    eprintln!("recorded in {}", file.display());
    if record.is_sound() {
        return Ok(());
    }
    Err(Failure::Refused(
        "not every run passed its checks; the table says which".to_owned(),
    ))
}

type Prepared = (Vec<&'static Contender>, Vec<(String, String)>);

/// Divides the chosen into those that are installed and those that are left out, with the reason.
fn prepare(chosen: &[&'static Contender], options: &Options) -> Result<Prepared, Failure> {
    let tools = ["nginx", "wrk", "setpriv", "timeout"];
    let mut needs = tools
        .map(need::known)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    if options.install {
        for contender in chosen.iter().filter_map(|contender| contender.installed_as) {
            needs.push(need::known(contender)?);
        }
        need::programs(&needs)?;
    }
    let is_missing = |tool: &&need::Need| need::find(tool.program).is_none();
    if let Some(tool) = needs.iter().find(is_missing) {
        let hint = "`cargo xtask peers --install` gets it";
        return Err(Failure::Outside(format!(
            "`{}` is not installed\nhint: {hint}",
            tool.program
        )));
    }
    let (mut present, mut left_out) = (Vec::new(), Vec::new());
    for contender in chosen {
        match contender.installed_as {
            Some(program) if need::find(program).is_none() => {
                let reason = "not installed; `--install` gets it".to_owned();
                eprintln!("{}: {reason}", contender.name);
                left_out.push((contender.name.to_owned(), reason));
            }
            _ => present.push(*contender),
        }
    }
    Ok((present, left_out))
}
