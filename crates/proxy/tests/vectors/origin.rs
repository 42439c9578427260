//! The origin: answers as the step says, one connection a request, and keeps an account of what it
//! was asked.

use crate::doors::{Doors, Http};
use crate::message::read_request;
use crate::origin_http2;
use crate::tls::Socket;
use crate::weir::VirtualClock;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_vectors::{Fault, FieldContext, OriginRequest, Response, Step};

/// A wait that ends here is a proxy that hangs.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What to do with the next request.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The clock goes here before the answer.
    answers_at_s: Option<u32>,
    head: String,
    /// The same by HTTP/2; `None` if that has no such.
    pub(crate) http2_head: Option<http::Response<()>>,
    pub(crate) body: String,
    pub(crate) fault: Option<Fault>,
    /// The answer waits for this, and the request is not told about.
    held: Option<Arc<Mutex<()>>>,
}

/// A listening origin; it stops when it is dropped.
pub(crate) struct Origin {
    address: SocketAddr,
    scripts: Arc<Mutex<VecDeque<Script>>>,
    /// Requests that were read.
    begun: Arc<AtomicUsize>,
    /// Holds back the answer to one that is there to keep a connection busy.
    gate: Arc<Mutex<()>>,
    is_held: Arc<AtomicBool>,
    /// Nothing more is coming.
    stopping: Arc<AtomicBool>,
    /// Requests that were told about.
    told: Cell<usize>,
    requests: Receiver<OriginRequest>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    pub(crate) fn start(clock: &Arc<VirtualClock>, doors: Doors) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let scripts = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, requests) = channel();
        let begun = Arc::new(AtomicUsize::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let is_held = Arc::new(AtomicBool::new(false));
        let desk = Desk {
            doors,
            stopping: Arc::clone(&stopping),
            scripts: Arc::clone(&scripts),
            clock: Arc::clone(clock),
            begun: Arc::clone(&begun),
            is_held: Arc::clone(&is_held),
            sender,
        };
        let thread = std::thread::spawn(move || desk.serve(&listener));
        Self {
            address,
            scripts,
            begun,
            gate: Arc::default(),
            is_held,
            stopping,
            told: Cell::new(0),
            requests,
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets what the next request gets; the last answer stays for unexpected ones.
    pub(crate) fn expect(&self, step: &Step, context: FieldContext<'_>) {
        let first = match &step.origin {
            weir_vectors::Origin::None => None,
            weir_vectors::Origin::Asked(answer) => Some(answer),
        };
        let answers = std::iter::successors(first, |answer| answer.again.as_deref());
        let scripts = answers.map(|answer| {
            let is_empty = step.request.method == "HEAD" && !answer.background;
            Script {
                answers_at_s: Some(step.end_s()),
                fault: answer.fault,
                ..Script::of(&answer.response, is_empty, context)
            }
        });
        *self.scripts.lock().expect("nobody panics with it") = scripts.collect();
    }

    /// The next request is one that keeps its connection until the guard is dropped; then come
    /// those that were expected.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        let held = Script {
            held: Some(Arc::clone(&self.gate)),
            ..Script::unexpected()
        };
        let mut scripts = self.scripts.lock().expect("nobody panics with it");
        scripts.push_front(held);
        self.gate.lock().expect("nobody panics with it")
    }

    /// Whether it has come.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }

    /// The requests of this step, once they are answered and their connections let go. A request
    /// that has not been read by now is waited for only if it may come after the client's answer.
    pub(crate) fn requests(&self, may_come_later: bool) -> Vec<OriginRequest> {
        let mut requests = Vec::new();
        loop {
            let is_under_way = self.begun.load(Ordering::SeqCst) > self.told.get();
            let may_still_come = may_come_later && requests.is_empty();
            if !(is_under_way || may_still_come) {
                return requests;
            }
            let Ok(request) = self.requests.recv_timeout(WAIT_MAX) else {
                return requests;
            };
            self.told.set(self.told.get() + 1);
            requests.push(request);
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // a connection that says nothing wakes the thread
        self.stopping.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the origin's thread failed"
            );
        }
    }
}

impl Script {
    /// An unexpected request shows by its answer, too.
    fn unexpected() -> Self {
        let mut unexpected = http::Response::new(());
        *unexpected.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        Self {
            answers_at_s: None,
            head: "HTTP/1.1 500 Nobody Expected This\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".into(),
            http2_head: Some(unexpected),
            body: String::new(),
            fault: None,
            held: None,
        }
    }

    fn of(response: &Response, is_empty: bool, context: FieldContext<'_>) -> Self {
        let mut head = format!("HTTP/1.1 {} Status\r\n", response.status);
        for field in &response.fields {
            head.push_str(&format!("{}: {}\r\n", field.name, field.value(context)));
        }
        if !matches!(response.status, 204 | 304) {
            head.push_str(&format!("Content-Length: {}\r\n", response.body.len()));
        }
        head.push_str("Connection: close\r\n\r\n");
        Self {
            answers_at_s: None,
            head,
            http2_head: origin_http2::head_of(response, context),
            body: if is_empty {
                String::new()
            } else {
                response.body.clone()
            },
            fault: None,
            held: None,
        }
    }
}

/// The origin's side that works.
pub(crate) struct Desk {
    pub(crate) doors: Doors,
    stopping: Arc<AtomicBool>,
    scripts: Arc<Mutex<VecDeque<Script>>>,
    clock: Arc<VirtualClock>,
    begun: Arc<AtomicUsize>,
    is_held: Arc<AtomicBool>,
    sender: Sender<OriginRequest>,
}

impl Desk {
    fn serve(&self, listener: &TcpListener) {
        loop {
            let (stream, _) = listener.accept().expect("the origin accepts");
            let had_request = match self.doors.next_hop {
                Http::One => self.serve_http1(stream),
                Http::Two => origin_http2::serve(self, stream),
            };
            if !had_request && self.stopping.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Serves the request of a connection; `false` if there was none.
    fn serve_http1(&self, stream: TcpStream) -> bool {
        let mut stream = Socket::accepted(stream, self.doors.is_tls_to_next_hop());
        let Some(request) = read_request(&mut stream) else {
            return false;
        };
        let (script, is_told) = self.take_script();
        answer(&mut stream, &script);
        drop(stream);
        let mut words = request.first_line.split(' ');
        if is_told {
            self.tell(OriginRequest {
                method: words.next().unwrap_or_default().to_owned(),
                target: words.next().unwrap_or_default().to_owned(),
                fields: request.fields,
            });
        }
        true
    }

    /// What to do with a request that has come, once that may be done; whether it is told about.
    pub(crate) fn take_script(&self) -> (Script, bool) {
        let script = self.next_script();
        if let Some(gate) = &script.held {
            self.is_held.store(true, Ordering::SeqCst);
            drop(gate.lock().expect("nobody panics with it"));
            self.is_held.store(false, Ordering::SeqCst);
            return (script, false);
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        if let Some(at_s) = script.answers_at_s {
            self.clock.turn_to(at_s);
        }
        (script, true)
    }

    /// Tells about a request that is answered.
    pub(crate) fn tell(&self, request: OriginRequest) {
        // fails once the test has ended
        let _ = self.sender.send(request);
    }
}

impl Desk {
    fn next_script(&self) -> Script {
        let mut scripts = self.scripts.lock().expect("nobody panics with it");
        match scripts.len() {
            0 | 1 => scripts.front().cloned().unwrap_or_else(Script::unexpected),
            _ => scripts.pop_front().expect("there are two"),
        }
    }
}

/// Answers, then waits until the proxy has let the connection go: by then it has done what the
/// answer makes it do.
fn answer(stream: &mut Socket, script: &Script) {
    let sent = match script.fault {
        Some(Fault::Closed) => return,
        Some(Fault::Broken) => "this is no HTTP\r\n\r\n".to_owned(),
        Some(Fault::Cut) => {
            let half = script.body.len() / 2;
            let _ = stream.write_all(format!("{}{}", script.head, &script.body[..half]).as_bytes());
            let _ = stream.flush();
            stream.end_sending();
            String::new()
        }
        None => format!("{}{}", script.head, script.body),
    };
    let _ = stream.write_all(sent.as_bytes());
    let _ = stream.read(&mut [0]);
}
