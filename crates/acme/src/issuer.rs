//! The thread that orders certificates and renews them.

use crate::client::AuthorityClient;
use crate::order::{Authority, OrderFailure};
use crate::report::{CertificateReport, Means, OrderReport};
use crate::settings::AcmeSettings;
use crate::storage::Storage;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};
use weir_measure::{AcmeOrderEnd, Label as _, Metric};
use weir_net::tls::server::Certificate;
use weir_policy::Now;
use weir_policy::connections::renewal::{LOOK_AGAIN_MS, Renewal, RenewalStep, Validity};
use weir_semantics::{Timestamp, write_http_date};

/// Time for a whole order.
const ORDER_LIMIT: Duration = Duration::from_secs(300);

/// A thread that orders certificates, one after another. It ends when this is dropped: an order
/// under way is given up, and what is in the storage is whole.
#[derive(Debug)]
pub struct Issuer {
    settings: watch::Sender<Arc<AcmeSettings>>,
    reports: Arc<Mutex<Vec<CertificateReport>>>,
}

impl Issuer {
    /// Orders what `settings` say, from now on.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(settings: AcmeSettings, means: Means) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (settings, changes) = watch::channel(Arc::new(settings));
        let reports = Arc::default();
        let run = Run {
            means,
            tracked: BTreeMap::new(),
            reports: Arc::clone(&reports),
        };
        let work = move || {
            let local = LocalSet::new();
            local.block_on(&runtime, run.until_dropped(changes));
        };
        thread::Builder::new()
            .name("weir-acme".into())
            .spawn(work)?;
        Ok(Self { settings, reports })
    }

    /// Orders what these settings say from now on. What has failed is tried again at once, unless
    /// the authority demands to be left alone.
    pub fn put(&self, settings: AcmeSettings) {
        self.settings.send_replace(Arc::new(settings));
    }

    /// How it is with each certificate.
    #[must_use]
    pub fn report(&self) -> Vec<CertificateReport> {
        let reports = self.reports.lock();
        reports.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A certificate that is ordered when it is due.
struct Tracked {
    renewal: Renewal,
    /// The one in the storage.
    current: Option<Certificate>,
    /// How the last order has ended.
    last: Option<OrderReport>,
}

struct Run {
    means: Means,
    /// By names.
    tracked: BTreeMap<Vec<Box<str>>, Tracked>,
    reports: Arc<Mutex<Vec<CertificateReport>>>,
}

impl Run {
    async fn until_dropped(mut self, settings: watch::Receiver<Arc<AcmeSettings>>) {
        let mut stopped = settings.clone();
        let stopped = async { while stopped.changed().await.is_ok() {} };
        tokio::select! {
            biased;
            () = stopped => {}
            () = self.follow(settings) => {}
        }
    }

    async fn follow(&mut self, mut settings: watch::Receiver<Arc<AcmeSettings>>) {
        loop {
            let current = Arc::clone(&settings.borrow_and_update());
            let storage = Storage::new(&current.folder, &current.directory);
            let authorities = current.authorities.clone();
            let (resolver, clock) = (self.means.resolver.clone(), self.means.clock.clone());
            let client = AuthorityClient::new(authorities, resolver, clock);
            self.track(&current, &storage);
            self.work(&current, (&storage, &client), &mut settings)
                .await;
            // no more settings come: what waits for that is polled when this waits, which it would
            // not do again
            if settings.has_changed().is_err() {
                return;
            }
        }
    }

    /// Begins with new certificates, and forgets others.
    fn track(&mut self, settings: &AcmeSettings, storage: &Storage) {
        let now = self.means.clock.now();
        let mut before = std::mem::take(&mut self.tracked);
        for names in &settings.certificates {
            let found = storage.certificate(&names[0], seconds(now.wall));
            let current = found.unwrap_or_else(|error| {
                (self.means.say)(&format!("ACME: {error}; another one is ordered"));
                None
            });
            let covers = |it: &Certificate| names.iter().all(|name| it.covers(name));
            let usable = current.as_ref().filter(|it| covers(it)).map(validity);
            let (known, last) = before
                .remove(names)
                .map_or((None, None), |it| (Some(it.renewal), it.last));
            let known = known.filter(|renewal| renewal.validity() == usable);
            let renewal = match (known, usable) {
                (Some(mut renewal), _) => {
                    renewal.retry_now(now);
                    renewal
                }
                (None, Some(validity)) => Renewal::found(validity, now, draw()),
                (None, None) => Renewal::new(draw()),
            };
            if current.is_none() && renewal.failures() == 0 {
                (self.means.say)(&format!(
                    "ACME: there is no certificate for {} yet: clients that name it are refused \
                     until {} has issued one",
                    listed(names),
                    settings.directory
                ));
            }
            let tracked = Tracked {
                renewal,
                current,
                last,
            };
            self.tracked.insert(names.clone(), tracked);
        }
        self.publish();
    }

    /// Orders what is due until the settings change.
    async fn work(
        &mut self,
        settings: &AcmeSettings,
        (storage, client): (&Storage, &AuthorityClient),
        changes: &mut watch::Receiver<Arc<AcmeSettings>>,
    ) {
        let pending = Arc::clone(&self.means.pending);
        let say = Arc::clone(&self.means.say);
        let authority = Authority {
            settings,
            client,
            storage,
            pending: &pending,
            say: &*say,
        };
        while !changes.has_changed().unwrap_or(true) {
            let now = self.means.clock.now();
            match self.next(now) {
                (RenewalStep::Order, Some(names)) => self.order(&authority, &names).await,
                (RenewalStep::Ask, Some(names)) => self.ask(&authority, &names).await,
                (RenewalStep::Wait(ms), _) => {
                    tokio::select! {
                        _ = changes.changed() => return,
                        () = sleep(Duration::from_millis(ms)) => {}
                    }
                }
                // a step is of a certificate
                _ => return,
            }
        }
    }

    /// What is to be done first, and for which certificate.
    fn next(&self, now: Now) -> (RenewalStep, Option<Vec<Box<str>>>) {
        let mut least = LOOK_AGAIN_MS;
        let mut asked = None;
        for (names, tracked) in &self.tracked {
            match tracked.renewal.step(now) {
                RenewalStep::Order => return (RenewalStep::Order, Some(names.clone())),
                RenewalStep::Ask => asked = Some(names),
                RenewalStep::Wait(ms) => least = least.min(ms),
            }
        }
        match asked {
            Some(names) => (RenewalStep::Ask, Some(names.clone())),
            None => (RenewalStep::Wait(least), None),
        }
    }

    async fn order(&mut self, authority: &Authority<'_>, names: &[Box<str>]) {
        let Some(tracked) = self.tracked.get_mut(names) else {
            return;
        };
        let retry_min_ms = millis(authority.settings.retry_min);
        // of an earlier order
        authority.client.take_demanded_ms();
        let began = seconds(self.means.clock.now().wall);
        let old = tracked.current.as_ref();
        let ordered = timeout(ORDER_LIMIT, authority.order(names, old, began)).await;
        let ordered = ordered.unwrap_or_else(|_| {
            let what = format!("it has taken longer than {} s", ORDER_LIMIT.as_secs());
            Err(OrderFailure::new(AcmeOrderEnd::Timeout, what))
        });
        let now = self.means.clock.now();
        let (end, reason, line) = match ordered {
            Ok(issued) => {
                tracked
                    .renewal
                    .issued(validity(&issued), now, draw(), retry_min_ms);
                let end = date(validity(&issued).not_after);
                tracked.current = Some(issued);
                let used = match (self.means.installed)() {
                    Ok(()) => "is used from now on".to_owned(),
                    Err(error) => format!("is kept, but not used by each listener yet: {error}"),
                };
                let line = format!(
                    "ACME: a certificate for {} was issued, valid until {end}, and {used}",
                    listed(names)
                );
                (AcmeOrderEnd::Issued, None, line)
            }
            Err(failure) => {
                let demanded = authority.client.take_demanded_ms();
                let end = match demanded {
                    Some(_) => AcmeOrderEnd::Limited,
                    None => failure.end,
                };
                tracked.renewal.failed(now, demanded, draw(), retry_min_ms);
                let kept = match &tracked.current {
                    Some(current) => {
                        format!(
                            "the old one is kept, until {}",
                            date(validity(current).not_after)
                        )
                    }
                    None => "there is none".to_owned(),
                };
                let wait_s = tracked.renewal.order_at(now).0.saturating_sub(now.wall.0);
                let sooner = match demanded {
                    Some(_) => "as the authority demands",
                    None => "or at `weir reload`",
                };
                let line = format!(
                    "ACME: no certificate for {}: {} ({}; failure {}; {kept}); next try in {}, \
                     {sooner}{}",
                    listed(names),
                    failure.reason,
                    end.word(),
                    tracked.renewal.failures(),
                    spoken(wait_s),
                    advice(end),
                );
                (end, Some(failure.reason), line)
            }
        };
        tracked.last = Some(OrderReport {
            at: now.wall,
            end,
            reason,
        });
        let metric = Metric::AcmeOrders(end);
        self.means.counters.add_shared(metric, 1);
        (self.means.say)(&line);
        self.publish();
    }

    async fn ask(&mut self, authority: &Authority<'_>, names: &[Box<str>]) {
        let Some(tracked) = self.tracked.get_mut(names) else {
            return;
        };
        let Some(current) = &tracked.current else {
            return;
        };
        let asked = timeout(ORDER_LIMIT, authority.suggestion(current)).await;
        let now = self.means.clock.now();
        if let Some(demanded) = authority.client.take_demanded_ms() {
            tracked.renewal.demanded(demanded, now);
        }
        match asked {
            Ok(Ok(Some((window, after_ms)))) => {
                tracked.renewal.suggested(Some(window), Some(after_ms), now);
            }
            Ok(Ok(None)) => tracked.renewal.suggests_nothing(),
            // what it has said before holds
            Ok(Err(_)) | Err(_) => tracked.renewal.suggested(None, None, now),
        }
        self.publish();
    }

    fn publish(&self) {
        let now = self.means.clock.now();
        let reports = self
            .tracked
            .iter()
            .map(|(names, tracked)| CertificateReport {
                name: names[0].clone(),
                failures: tracked.renewal.failures(),
                order_at: tracked.renewal.order_at(now),
                last: tracked.last.clone(),
            });
        let mut published = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        *published = reports.collect();
    }
}

fn validity(certificate: &Certificate) -> Validity {
    let (not_before, not_after) = certificate.valid_s();
    let timestamp = |seconds| Timestamp(i64::try_from(seconds).unwrap_or(i64::MAX));
    Validity {
        not_before: timestamp(not_before),
        not_after: timestamp(not_after),
    }
}

fn seconds(wall: Timestamp) -> u64 {
    u64::try_from(wall.0).unwrap_or(0)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A random number.
fn draw() -> u32 {
    u32::try_from(RandomState::new().hash_one(0_u8) >> 32).unwrap_or(0)
}

fn date(at: Timestamp) -> String {
    let mut text = [0; 29];
    write_http_date(at, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// A time for a line of the log.
fn spoken(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// What an operator can do about an order that has ended so, behind the line that says so.
const fn advice(end: AcmeOrderEnd) -> &'static str {
    match end {
        AcmeOrderEnd::Unreachable => {
            "; see whether `acme.directory` is right, whether a firewall is in between, and, of an \
             authority of your own, whether `acme.ca` has its certificate"
        }
        AcmeOrderEnd::Storage => "; nothing is ordered until files can be written in `acme.folder`",
        _ => "",
    }
}

/// Names for a line of the log.
fn listed(names: &[Box<str>]) -> String {
    const SHOWN_MAX: usize = 3;
    let shown = names.iter().take(SHOWN_MAX).map(|name| &**name);
    let shown = shown.collect::<Vec<&str>>().join(", ");
    match names.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ChallengeKind;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use std::path::Path;
    use tokio::sync::mpsc;
    use weir_measure::Counters;
    use weir_net::clock::{Clock, ManualClock};
    use weir_net::resolver::{Resolver, ResolverConfig};
    use weir_net::tls::client::Authorities;

    /// 2026-06-01, a day after the certificate's begin.
    const START: Timestamp = Timestamp(1_780_272_000);

    const DAY_S: i64 = 24 * 3600;

    /// An authority that does not answer.
    const DIRECTORY: &str = "https://127.0.0.1:1/directory";

    const NAME: &str = "a.test";

    /// Stores a certificate for 90 days.
    fn settings(folder: &Path) -> AcmeSettings {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([NAME.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2026, 5, 31);
        params.not_after = date_time_ymd(2026, 8, 29);
        let chain = params.self_signed(&key).expect("a certificate").pem();
        let storage = Storage::new(folder, DIRECTORY);
        storage.open().expect("a folder");
        let stored = storage.put_certificate(NAME, &chain, &key.serialize_pem());
        stored.expect("a file");
        AcmeSettings {
            directory: DIRECTORY.into(),
            authorities: Authorities::from_pem(chain.as_bytes()).expect("a certificate"),
            contact: Vec::new(),
            challenge: ChallengeKind::Http01,
            folder: folder.to_owned(),
            retry_min: Duration::from_mins(1),
            certificates: vec![vec![NAME.into()]],
        }
    }

    /// Whether an order is begun in the two minutes after the wall clock was set by so much. The
    /// time that the thread waits by is that of its runtime, which goes on when nothing is to be
    /// done.
    fn orders_after_a_jump(jump_s: i64) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let manual = Arc::new(ManualClock::new(START));
        let counters = Arc::new(Counters::new());
        let (said, mut lines) = mpsc::unbounded_channel();
        let resolver = Resolver::start(ResolverConfig::default(), Arc::clone(&counters));
        let run = Run {
            means: Means {
                resolver: resolver.expect("a thread"),
                clock: Clock::Manual(Arc::clone(&manual)),
                counters,
                pending: Arc::default(),
                say: Arc::new(move |line| said.send(line.to_owned()).expect("the test listens")),
                installed: Box::new(|| Ok(())),
            },
            tracked: BTreeMap::new(),
            reports: Arc::default(),
        };
        let (keep, settings) = watch::channel(Arc::new(settings(folder.path())));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        LocalSet::new().block_on(&runtime, async move {
            let work = tokio::task::spawn_local(run.until_dropped(settings));
            let said = timeout(Duration::from_hours(30), lines.recv()).await;
            assert!(said.is_err(), "nothing is due: {said:?}");
            manual.step_wall_s(jump_s);
            let said = timeout(Duration::from_mins(2), lines.recv()).await;
            drop(keep);
            work.await.expect("no panic");
            let line = said.ok().flatten();
            let is_order = |line: &String| line.starts_with("ACME: no certificate for a.test: ");
            assert!(line.iter().all(is_order), "{line:?}");
            line.is_some()
        })
    }

    #[test]
    fn wall_clock_that_is_set_is_noticed_within_two_minutes() {
        assert!(orders_after_a_jump(90 * DAY_S));
        assert!(!orders_after_a_jump(-90 * DAY_S));
        assert!(!orders_after_a_jump(DAY_S));
    }
}
