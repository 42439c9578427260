//! One ICAP service: where it is, what it can do, and the state that it is in.

use super::connections::{Connections, Lease};
use super::conversation::Conversation;
use super::failure::Failure;
use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use weir_extend::{Hook, Host, LogLevel, Pending};
use weir_icap::{AnswerHead, ClientEvent, Limits, ServiceOptions, ServiceUri, Transaction};
use weir_net::clock::Clock;

/// How long an answer to OPTIONS may take, with the wait for a connection.
const OPTIONS_TIMEOUT: Duration = Duration::from_secs(5);

/// How long before its end the answer to OPTIONS is requested anew.
const REFRESH_AHEAD: Duration = Duration::from_secs(3);

/// One service.
#[derive(Debug)]
pub(crate) struct Service {
    uri: ServiceUri,
    /// The same where one hook of a module is to be called.
    hook_uris: Vec<(Hook, ServiceUri)>,
    connections: Arc<Connections>,
    /// The most connections that the operator allows.
    connections_max: usize,
    clock: Clock,
    limits: Limits,
    knowledge: Mutex<Knowledge>,
    /// One OPTIONS request at a time.
    asking: Semaphore,
}

/// What is known of a service.
#[derive(Debug, Default)]
struct Knowledge {
    options: Option<Arc<ServiceOptions>>,
    /// The newest tag of its state; empty before the first answer.
    istag: String,
    /// An answer had another tag than that to OPTIONS.
    is_outdated: bool,
    /// The operator was told that it does not answer.
    is_reported: bool,
}

impl Service {
    /// Of which nothing is known yet.
    pub(crate) fn new(
        uri: ServiceUri,
        connections: Arc<Connections>,
        connections_max: usize,
        clock: Clock,
    ) -> Self {
        Self {
            uri,
            hook_uris: Vec::new(),
            connections,
            connections_max,
            clock,
            limits: Limits::default(),
            knowledge: Mutex::default(),
            asking: Semaphore::new(1),
        }
    }

    /// The same as a module of this program, whose hooks are called one by one.
    pub(crate) fn with_hooks(mut self) -> Self {
        let uris = Hook::ALL.into_iter().filter_map(|hook| {
            let uri = format!(
                "icap://{}{}?hook={}",
                self.uri.authority(),
                self.uri.path_and_query(),
                hook.as_str()
            );
            Some((hook, ServiceUri::parse(uri.as_bytes()).ok()?))
        });
        self.hook_uris = uris.collect();
        self
    }

    fn knowledge(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Its URI.
    pub(crate) const fn uri(&self) -> &ServiceUri {
        &self.uri
    }

    /// Its URI for this hook of a module.
    pub(crate) fn uri_at(&self, hook: Hook) -> &ServiceUri {
        let mut uris = self.hook_uris.iter();
        uris.find(|(at, _)| *at == hook)
            .map_or(&self.uri, |(_, uri)| uri)
    }

    /// The connections to its server.
    pub(crate) const fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// What one message of it may cost.
    pub(crate) const fn limits(&self) -> Limits {
        self.limits
    }

    /// The tag of its state; empty before the first answer.
    pub(crate) fn istag(&self) -> String {
        self.knowledge().istag.clone()
    }

    /// What it can do, if that is known and valid.
    pub(crate) fn options(&self) -> Option<Arc<ServiceOptions>> {
        let knowledge = self.knowledge();
        let options = knowledge.options.as_ref();
        options
            .filter(|options| options.is_valid(self.elapsed()))
            .cloned()
    }

    /// Whether OPTIONS is to be sent before a message needs it.
    pub(crate) fn is_due(&self) -> bool {
        let knowledge = self.knowledge();
        let options = knowledge.options.as_ref();
        knowledge.is_outdated
            || options.is_none_or(|options| {
                let ahead = self.elapsed().saturating_add(REFRESH_AHEAD);
                !options.is_valid(ahead)
            })
    }

    /// Closes connections that were idle for too long, and returns what requests OPTIONS anew if
    /// they are due. One worker does that for all.
    pub(crate) fn tick(self: &Arc<Self>, host: &dyn Host) -> Option<Pending<Result<(), Failure>>> {
        if host.worker() != 0 {
            return None;
        }
        self.connections.prune();
        if !self.is_due() {
            return None;
        }
        Some(Box::pin(Arc::clone(self).refresh(true)))
    }

    /// What an operator is to be told of a request of OPTIONS: that the service does not answer,
    /// once, and that it does again.
    pub(crate) fn report(&self, refreshed: &Result<(), Failure>) -> Option<(LogLevel, String)> {
        let is_reported = &mut self.knowledge().is_reported;
        match refreshed {
            Ok(()) if *is_reported => {
                *is_reported = false;
                Some((
                    LogLevel::Info,
                    format!("{} answers again", self.uri.as_str()),
                ))
            }
            Err(failure) if failure.is_of_service() && !*is_reported => {
                *is_reported = true;
                Some((LogLevel::Warning, self.complaint(failure)))
            }
            _ => None,
        }
    }

    /// What is wrong with the service, and what to do.
    pub(crate) fn complaint(&self, failure: &Failure) -> String {
        format!(
            "{} at {}: {failure}; start the ICAP server there, or correct `options.service`: until \
             it answers, messages fail by `on_failure`",
            self.uri.as_str(),
            self.connections.address()
        )
    }

    /// Has OPTIONS sent, and blocks until they are answered, or have failed.
    ///
    /// # Errors
    ///
    /// There is no thread, or no runtime, to send them on.
    pub(crate) fn refresh_blocking(self: Arc<Self>) -> io::Result<Result<(), Failure>> {
        // this thread may have a runtime, in which nothing can be waited for
        let refreshing = thread::Builder::new().spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(self.refresh(true)))
        })?;
        let joined = refreshing.join();
        joined.unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.clock.tick().0)
    }

    /// Notes the state that an answer comes from.
    pub(crate) fn note(&self, answer: &AnswerHead) {
        let Some(istag) = answer.istag() else {
            return;
        };
        let mut knowledge = self.knowledge();
        if knowledge.istag != istag.as_str() {
            istag.as_str().clone_into(&mut knowledge.istag);
            knowledge.is_outdated = true;
        }
    }

    /// Has OPTIONS sent, unless another message has just done so.
    pub(crate) async fn refresh(self: Arc<Self>, is_forced: bool) -> Result<(), Failure> {
        let asked = timeout(OPTIONS_TIMEOUT, async {
            let asking = self.asking.acquire();
            tokio::pin!(asking);
            let place_wait = self.connections.place_wait();
            // the one that asks may wait for a place itself
            let _asking = match timeout(place_wait, &mut asking).await {
                Err(_) if self.connections.is_full() => return Err(Failure::Busy),
                Err(_) => asking.await,
                Ok(permit) => permit,
            };
            if !is_forced && self.options().is_some() {
                return Ok(());
            }
            self.request_options().await
        });
        asked.await.unwrap_or(Err(Failure::Timeout))
    }

    async fn request_options(&self) -> Result<(), Failure> {
        let mut must_be_new = false;
        loop {
            let lease = Arc::clone(&self.connections).check_out(must_be_new).await?;
            match self.exchange_options(lease).await {
                Err((Failure::Closed, true)) if !must_be_new => must_be_new = true,
                Err((failure, _)) => return Err(failure),
                Ok(options) => {
                    let places = options.max_connections().map_or(usize::MAX, |count| {
                        usize::try_from(count.get()).unwrap_or(usize::MAX)
                    });
                    self.connections
                        .set_places(places.min(self.connections_max));
                    let mut knowledge = self.knowledge();
                    options.istag().as_str().clone_into(&mut knowledge.istag);
                    knowledge.options = Some(Arc::new(options));
                    knowledge.is_outdated = false;
                    return Ok(());
                }
            }
        }
    }

    /// The options; or why there are none, and whether the request may be repeated.
    async fn exchange_options(&self, lease: Lease) -> Result<ServiceOptions, (Failure, bool)> {
        let transaction = Transaction::options(&self.uri, &[], self.limits);
        let transaction = transaction.map_err(|error| (Failure::Request(error), false))?;
        let mut conversation = Conversation::new(lease, transaction);
        let mut found = None;
        let done = poll_fn(|cx| {
            conversation.poll(cx, |event| {
                match event {
                    ClientEvent::Options(head) => found = Some(Ok(head)),
                    ClientEvent::Refused(head) => {
                        found = Some(Err(Failure::Overloaded(head.status())));
                    }
                    _ => {}
                }
                ControlFlow::Continue(())
            })
        });
        if let Err(failure) = done.await {
            return Err((failure, conversation.may_repeat()));
        }
        conversation.end();
        let head = found.unwrap_or(Err(Failure::Closed));
        let head = head.map_err(|failure| (failure, false))?;
        ServiceOptions::read(&head, self.elapsed(), self.limits.preview_bytes_max)
            .map_err(|error| (Failure::Options(error), false))
    }
}
