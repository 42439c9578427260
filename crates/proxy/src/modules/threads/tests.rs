use super::call::ThreadExchange;
use super::pool::{STUCK_THREADS_MAX, ThreadPool};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use weir_extend::{
    Answer, Call, ContentMemory, Exchange, FetchError, Fields, Hook, Hooks, Host, ListenerMode,
    LogLevel, Module, OwnRequest, OwnResponse, Pending, RequestHead,
};
use weir_policy::extension::ModuleFailure;

const CALL: Call = Call {
    client: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    mode: ListenerMode::Gateway,
    now_ms: 0,
};

/// At `/block` it blocks until it is released; at `/fetch` it sends a request of its own first; at
/// `/hold` it needs 1000 bytes of memory; at `/spawn` it has a task that panics.
#[derive(Default)]
struct Blocks(Arc<Release>);

#[derive(Default)]
struct Release {
    is_awaited: AtomicBool,
    is_released: Mutex<bool>,
    changed: Condvar,
}

impl Release {
    fn release(&self) {
        *self.is_released.lock().expect("no panic") = true;
        self.changed.notify_all();
    }

    /// Within a call of the module, so that the thread of that is busy.
    fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::SeqCst)
    }

    fn wait(&self) {
        self.is_awaited.store(true, Ordering::SeqCst);
        let released = self.is_released.lock().expect("no panic");
        let released = self.changed.wait_while(released, |released| !*released);
        drop(released.expect("no panic"));
    }
}

impl Module for Blocks {
    fn hooks(&self) -> Hooks {
        Hooks::NONE.with(Hook::RequestReceived)
    }

    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(Player {
            release: Arc::clone(&self.0),
            host: Rc::clone(host),
            fetching: None,
            fetched: None,
        })
    }
}

struct Player {
    release: Arc<Release>,
    host: Rc<dyn Host>,
    fetching: Option<Pending<Result<OwnResponse, FetchError>>>,
    fetched: Option<u16>,
}

impl Exchange for Player {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _: &Call) -> Answer {
        match (head.path_and_query(), self.fetched) {
            ("/block", _) => self.release.wait(),
            ("/fetch", None) => {
                self.fetching = Some(self.host.fetch(OwnRequest::get("http://a.example/")));
                return Answer::Defer;
            }
            ("/spawn", None) => {
                let task = Box::pin(async { panic!("as this test has it") });
                assert!(self.host.spawn(task));
            }
            ("/hold", None) => {
                let memory = self.host.memory();
                let holds = memory.another().hold(1000) && !memory.another().hold(1001);
                return if holds {
                    Answer::Continue
                } else {
                    Answer::Fail
                };
            }
            (_, Some(status)) => {
                let status = status.to_string();
                let set = head.fields.set("X-Status", status.as_bytes());
                set.expect("a field");
            }
            _ => {}
        }
        Answer::Continue
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(fetching) = &mut self.fetching {
            let response = ready!(fetching.as_mut().poll(cx));
            self.fetched = Some(response.map_or(0, |response| response.status));
        }
        Poll::Ready(())
    }
}

/// Memory for so many bytes.
struct Room(usize);

impl ContentMemory for Room {
    fn hold(&mut self, bytes: usize) -> bool {
        bytes <= self.0
    }

    fn another(&self) -> Box<dyn ContentMemory> {
        Box::new(Self(self.0))
    }
}

/// A worker's host whose requests are all answered with 204, and that has 1000 bytes of memory.
struct Worker;

impl Host for Worker {
    fn worker(&self) -> usize {
        3
    }

    fn wall_ms(&self) -> u64 {
        0
    }

    fn log(&self, _: LogLevel, _: &str) {}

    fn fetch(&self, _: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(OwnResponse {
                status: 204,
                ..OwnResponse::default()
            })
        })
    }

    fn memory(&self) -> Box<dyn ContentMemory> {
        Box::new(Room(1000))
    }

    fn spawn(&self, task: Pending<()>) -> bool {
        tokio::task::spawn_local(task);
        true
    }
}

/// Calls an exchange of its own for `path`; its answer, and the field that it has set.
async fn call(
    pool: &Arc<ThreadPool>,
    path: &str,
) -> Result<(Answer, Option<Vec<u8>>), ModuleFailure> {
    let host: Rc<dyn Host> = Rc::new(Worker);
    let mut exchange = ThreadExchange::begin(pool, &host)?;
    let mut head = RequestHead::new("GET", "a.example", path, Fields::default());
    let hook = Hook::RequestReceived;
    let deferred = exchange.call_request(hook, &mut head, &CALL);
    assert_eq!(deferred, Ok(Answer::Defer));
    poll_fn(|cx| exchange.poll_answered(cx)).await?;
    let answer = exchange.call_request(hook, &mut head, &CALL)?;
    Ok((answer, head.fields.get("x-status").map(<[u8]>::to_vec)))
}

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

fn pool(module: &Arc<Release>, deadline: Duration) -> Arc<ThreadPool> {
    let module: Arc<dyn Module> = Arc::new(Blocks(Arc::clone(module)));
    ThreadPool::new("a", &module, deadline)
}

#[test]
fn stuck_threads_are_replaced_up_to_their_limit_and_used_no_more() {
    run(async {
        let release = Arc::<Release>::default();
        let pool = pool(&release, Duration::from_millis(50));
        for stuck in 1..=STUCK_THREADS_MAX {
            let given_up = call(&pool, "/block").await;
            assert_eq!(given_up, Err(ModuleFailure::Deadline));
            assert_eq!(pool.counts(), (0, stuck));
            if stuck < STUCK_THREADS_MAX {
                assert_eq!(call(&pool, "/").await, Ok((Answer::Continue, None)));
                assert_eq!(pool.counts(), (1, stuck));
            }
        }
        assert_eq!(call(&pool, "/").await, Err(ModuleFailure::Unavailable));
        release.release();
        while call(&pool, "/").await.is_err() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn call_is_made_on_another_thread_while_one_blocks() {
    run(async {
        let release = Arc::<Release>::default();
        let pool = pool(&release, Duration::from_secs(60));
        let (blocked, other) = (Arc::clone(&pool), Arc::clone(&release));
        let blocked = tokio::task::spawn_local(async move {
            let _release = other;
            call(&blocked, "/block").await
        });
        while !release.is_awaited() {
            tokio::task::yield_now().await;
        }
        assert_eq!(call(&pool, "/").await, Ok((Answer::Continue, None)));
        assert!(!blocked.is_finished());
        release.release();
        assert_eq!(
            blocked.await.expect("no panic"),
            Ok((Answer::Continue, None))
        );
    });
}

#[test]
fn request_of_a_module_is_sent_by_the_worker() {
    run(async {
        let pool = pool(&Arc::default(), Duration::from_secs(60));
        let answered = call(&pool, "/fetch").await;
        assert_eq!(answered, Ok((Answer::Continue, Some(b"204".to_vec()))));
    });
}

#[test]
fn memory_of_a_module_is_that_of_the_worker() {
    run(async {
        let pool = pool(&Arc::default(), Duration::from_secs(60));
        assert_eq!(call(&pool, "/hold").await, Ok((Answer::Continue, None)));
    });
}

#[test]
fn task_that_panics_is_a_failed_call() {
    run(async {
        let pool = pool(&Arc::default(), Duration::from_secs(60));
        assert_eq!(call(&pool, "/spawn").await, Ok((Answer::Continue, None)));
        while pool.take_failed_ends() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(call(&pool, "/").await, Ok((Answer::Continue, None)));
    });
}
