//! A participant that runs clients.

use super::connections;
use super::message::{ClientTask, ClientsResult, ToMaster, ToParticipant};
use super::participant::{ClientRole, MasterSession, out_of_turn};
use super::probe::probe;
use crate::client::{self, ClientLimits, ClientPlan, ClientResult, Form};
use crate::failure::Failure;
use crate::link::Namespace;
use crate::record::samples;
use crate::tally::SecondTally;
use crate::usage::OwnThreads;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use weir_measure::record::Mode;
use weir_workload::{Scenario, Share};

/// Names of our threads begin with it.
const THREADS: &str = "weir-client-";

/// Seconds of threads that wait to be sent. Later ones are dropped for the master's progress line,
/// not for results.
const SECONDS_MAX: usize = 4096;

/// How often threads and the master are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs the master's task until the run is over.
pub(super) fn run(session: &MasterSession<'_>, clients: &ClientRole) -> Result<(), Failure> {
    let task = match session.wait()? {
        ToParticipant::Ask(task) => *task,
        // the run has ended before it began
        ToParticipant::Stop => return Ok(()),
        other => return Err(out_of_turn(&other)),
    };
    let scenario = Scenario::parse("the scenario of the master", &task.scenario)
        .map_err(|error| Failure::usage("cannot ask", error))?;
    connections::raise_for_clients(&scenario)
        .map_err(|error| Failure::outside("cannot ask", error))?;
    let namespace = clients
        .shaping
        .namespace(&scenario, task.mode, task.proxy)?;
    // through its link, where the kernel makes it
    let proxy = namespace
        .as_ref()
        .map_or(task.proxy, |namespace| namespace.near(0, task.proxy.port()));
    probe(proxy, task.mode, &task.servers)?;
    let (names, takes) = rehearse(&task, &scenario, clients.threads);
    session.send(&ToMaster::Ready {
        servers: Vec::new(),
        takes_us: u64::try_from(takes.as_micros()).unwrap_or(u64::MAX),
    })?;
    let Some(start_at) = session.wait_for_go()? else {
        return Ok(());
    };
    let has_links = scenario.clients.link.is_some();
    let plan = plan(
        &task,
        scenario,
        start_at,
        clients.samples.as_ref().map_or(0, |(_, every)| *every),
        namespace,
    )?;
    let mut load = OwnThreads::named(THREADS);
    let mut result = run_threads(session, &plan, clients.threads, &mut load)?;
    let link_shaping = has_links.then(|| clients.shaping.into());
    let samples = match &clients.samples {
        None => None,
        Some((path, _)) => Some(write_samples(path, &mut result, &names)?),
    };
    session.send(&ToMaster::Result(Box::new(ClientsResult {
        clients: result,
        load: load.load(),
        samples,
        link_shaping,
    })))
}

/// The names of the phases, and how long all threads will take to prepare themselves: as long as
/// one takes now, all on one core at worst.
fn rehearse(task: &ClientTask, scenario: &Scenario, threads: u32) -> (Vec<String>, Duration) {
    let began = Instant::now();
    let phases = scenario.phases(task.seed);
    let share = Share {
        index: task.first_share,
        of: task.shares,
    };
    drop(std::hint::black_box(scenario.stream(task.seed, share)));
    let names = phases.into_iter().map(|phase| phase.name).collect();
    (names, began.elapsed() * threads)
}

fn write_samples(
    path: &Path,
    result: &mut ClientResult,
    names: &[String],
) -> Result<String, Failure> {
    let mut samples = std::mem::take(&mut result.samples);
    samples.sort_by_key(|sample| sample.scheduled_us);
    samples::write(path, &samples, names)?;
    Ok(path.display().to_string())
}

/// The plan of the first thread.
fn plan(
    task: &ClientTask,
    scenario: Scenario,
    start_at: Instant,
    sample_every: u32,
    namespace: Option<Arc<Namespace>>,
) -> Result<ClientPlan, Failure> {
    let servers = task.servers.clone();
    if servers.is_empty() && task.mode != Mode::Gateway {
        return Err(Failure::outside("cannot ask", "the origin has no server"));
    }
    let form = match task.mode {
        Mode::Forward => Form::Forward { servers },
        Mode::Direct => Form::Direct { servers },
        Mode::Gateway => Form::Gateway {
            authority: task.proxy.to_string(),
        },
    };
    Ok(ClientPlan {
        scenario: Arc::new(scenario),
        seed: task.seed,
        share: Share {
            index: task.first_share,
            of: task.shares,
        },
        proxy: task.proxy,
        form,
        start_at,
        sample_every,
        namespace,
        limits: ClientLimits::default(),
    })
}

type Done<'s> = ScopedJoinHandle<'s, Result<ClientResult, Failure>>;

fn run_threads(
    session: &MasterSession<'_>,
    first: &ClientPlan,
    threads: u32,
    load: &mut OwnThreads,
) -> Result<ClientResult, Failure> {
    let (seconds, passed_on) = mpsc::sync_channel(SECONDS_MAX);
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut running: Vec<Done<'_>> = Vec::new();
        for thread in 0..threads {
            let mut plan = first.clone();
            plan.share.index += thread;
            let named = std::thread::Builder::new().name(format!("{THREADS}{thread}"));
            let seconds = seconds.clone();
            // a master that is slow to read must not hold up the load
            let on_second = move |second: &SecondTally| drop(seconds.try_send(second.clone()));
            let started = named.spawn_scoped(scope, move || client::run(&plan, on_second, stop));
            match started {
                Ok(thread) => running.push(thread),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(Failure::outside("cannot start a thread of clients", error));
                }
            }
        }
        let watched = watch(session, &running, stop, &passed_on, load);
        // whatever happened, threads end before this does
        stop.fetch_or(watched.is_err(), Ordering::Relaxed);
        let mut all = ClientResult::default();
        for thread in running {
            let result = thread.join().unwrap_or_else(|_| {
                Err(Failure::outside(
                    "cannot go on",
                    "a thread of clients panicked",
                ))
            });
            all.merge(result?);
        }
        watched?;
        send_on(session, &passed_on)?;
        Ok(all)
    })
}

/// Until all threads are through.
fn watch(
    session: &MasterSession<'_>,
    running: &[Done<'_>],
    stop: &AtomicBool,
    seconds: &Receiver<SecondTally>,
    load: &mut OwnThreads,
) -> Result<(), Failure> {
    let mut looked = Instant::now();
    while !running.iter().all(ScopedJoinHandle::is_finished) {
        match session.hear(POLL_INTERVAL)? {
            None => {}
            Some(ToParticipant::Stop) => stop.store(true, Ordering::Relaxed),
            Some(other) => return Err(out_of_turn(&other)),
        }
        if session.interrupt.is_set() {
            return Err(Failure::outside("cannot go on", "interrupted"));
        }
        send_on(session, seconds)?;
        if looked.elapsed() >= Duration::from_secs(1) {
            looked = Instant::now();
            load.look();
        }
    }
    Ok(())
}

fn send_on(session: &MasterSession<'_>, seconds: &Receiver<SecondTally>) -> Result<(), Failure> {
    seconds
        .try_iter()
        .try_for_each(|second| session.send(&ToMaster::Second { second }))
}
