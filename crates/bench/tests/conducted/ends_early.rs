//! Runs that end before their time have a record all the same.

use super::{conduct, local, plan, support};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use weir_bench::conduct::{ExpectedParticipants, Interrupt, JoinSettings, Master, OriginRole};
use weir_bench::progress::Progress;
use weir_bench::record;

/// Writes down what is said, and interrupts when the run is under way.
struct InterruptedAt<'i> {
    interrupt: &'i Interrupt,
    said: Vec<u8>,
}

impl std::io::Write for InterruptedAt<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if String::from_utf8_lossy(bytes).contains("/s ") {
            self.interrupt.set();
        }
        self.said.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn interrupted_run_yields_an_invalid_record() {
    // an hour, if it were not interrupted
    let scenario = support::wpb(&[
        "workload.requests_per_client=100000",
        "origin.latency=constant(20ms)",
    ]);
    let plan = plan(scenario, None);
    let interrupt = Interrupt::default();
    let mut out = InterruptedAt {
        interrupt: &interrupt,
        said: Vec::new(),
    };
    let mut progress = Progress::new(&mut out, true);
    let gathered = weir_bench::conduct::run(&plan, &local(2), &interrupt, &mut progress)
        .expect("it has begun");
    let record = record::write_up(&plan, &gathered, "0");
    assert!(!record.is_valid);
    assert!(
        record.reasons[0].starts_with("It was interrupted after"),
        "{:#?}",
        record.reasons
    );
    // a machine with other things to do may be overloaded, too
    assert!(
        record.reasons[1..]
            .iter()
            .all(|reason| reason.contains("overloaded")),
        "{:#?}",
        record.reasons
    );
    assert!(record.total.client.answered() > 0, "{:#?}", record.total);
    assert!(!record.series.is_empty());
}

#[test]
fn interrupt_before_the_start_fails_the_run() {
    let interrupt = Interrupt::default();
    interrupt.set();
    let failure = conduct(&plan(support::wpb(&[]), None), &local(1), &interrupt)
        .expect_err("it was interrupted");
    assert!(failure.to_string().contains("interrupted"), "{failure}");
}

/// A participant that we play by hand.
struct ByHand {
    lines: BufReader<TcpStream>,
}

impl ByHand {
    fn join(master: SocketAddr, hello: &serde_json::Value) -> Self {
        let stream = TcpStream::connect(master).expect("it listens");
        stream
            .set_read_timeout(Some(support::PATIENCE))
            .expect("a timeout");
        let mut by_hand = Self {
            lines: BufReader::new(stream),
        };
        by_hand.say(hello);
        by_hand
    }

    fn say(&mut self, message: &serde_json::Value) {
        self.lines
            .get_mut()
            .write_all(format!("{message}\n").as_bytes())
            .expect("it reads");
    }

    /// The next message's name, and the message.
    fn hear(&mut self) -> (String, serde_json::Value) {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("it says something");
        let message: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        (
            message["message"].as_str().expect("a name").to_owned(),
            message,
        )
    }
}

fn hello() -> serde_json::Value {
    serde_json::json!({
        "message": "hello", "protocol": 5, "role": "clients", "name": "by-hand", "version": "0", "threads": 1,
        "host": {"cpu": "", "cores": 1, "kernel": "", "memory_bytes": 0, "load_average": 0.0},
        "wall_ms": jiff::Timestamp::now().as_millisecond(),
    })
}

#[test]
fn run_with_a_lost_participant_is_invalid_and_names_it() {
    let expected = ExpectedParticipants {
        within: support::PATIENCE,
        ..ExpectedParticipants::default()
    };
    let master =
        Master::bind(SocketAddr::from(([127, 0, 0, 1], 0)), expected).expect("a free port");
    let address = master.address();
    let never = &Interrupt::default();
    let plan = &plan(support::wpb(&[]), None);
    std::thread::scope(|scope| {
        let origin = scope.spawn(move || {
            let origin = OriginRole {
                threads: 1,
                listen: None,
            };
            JoinSettings::new(address, "origin".into(), "0").run_origin(&origin, never)
        });
        let conducted = scope.spawn(move || {
            let mut said = Vec::new();
            master.conduct(plan, never, &mut Progress::new(&mut said, false))
        });
        let mut by_hand = ByHand::join(address, &hello());
        let (name, task) = by_hand.hear();
        assert_eq!((name.as_str(), task["shares"].as_u64()), ("ask", Some(1)));
        assert_eq!(task["servers"].as_array().map(Vec::len), Some(3));
        by_hand.say(&serde_json::json!({"message": "ready", "servers": [], "takes_us": 0}));
        assert_eq!(by_hand.hear().0, "ping");
        by_hand.say(&serde_json::json!({"message": "pong"}));
        assert_eq!(by_hand.hear().0, "go");
        drop(by_hand);
        let gathered = conducted.join().expect("no panic").expect("it had begun");
        let record = record::write_up(plan, &gathered, "0");
        assert!(!record.is_valid);
        let reason = &record.reasons[0];
        assert!(
            reason.contains("clients `by-hand` (127.0.0.1) was lost"),
            "{reason}"
        );
        origin.join().expect("no panic").expect("it has counted");
    });
}

#[test]
fn unsuitable_or_surplus_participant_is_refused_with_a_reason() {
    let expected = ExpectedParticipants {
        within: support::PATIENCE,
        ..ExpectedParticipants::default()
    };
    let master =
        Master::bind(SocketAddr::from(([127, 0, 0, 1], 0)), expected).expect("a free port");
    let address = master.address();
    let interrupt = &Interrupt::default();
    let plan = &plan(support::wpb(&[]), None);
    std::thread::scope(|scope| {
        let conducted = scope.spawn(move || {
            let mut said = Vec::new();
            let failed = master.conduct(plan, interrupt, &mut Progress::new(&mut said, false));
            (failed.err(), String::from_utf8(said).expect("text"))
        });
        let refused = |key: &str, value: serde_json::Value, part: &str| {
            let mut hello = hello();
            hello[key] = value;
            let (name, message) = ByHand::join(address, &hello).hear();
            let why = message["why"].as_str().unwrap_or_default();
            assert!(name == "refused" && why.contains(part), "{key}: {message}");
        };
        refused("protocol", 99.into(), "version 99");
        refused("wall_ms", 1000.into(), "wall clock");
        refused("threads", 0.into(), "no thread");
        // one of two is let in, whichever is heard first; the other one is not
        let (sender, answers) = std::sync::mpsc::channel();
        for name in ["by-hand", "another"] {
            let (mut hello, sender) = (hello(), sender.clone());
            hello["name"] = name.into();
            let mut by_hand = ByHand::join(address, &hello);
            scope.spawn(move || {
                let mut line = String::new();
                // the admitted one receives nothing until the end
                let _ = by_hand.lines.read_line(&mut line);
                let _ = sender.send(line);
            });
        }
        let answer = answers.recv().expect("one of them is told");
        assert!(
            answer.contains("all 1 participants with the role clients are there"),
            "{answer}"
        );
        interrupt.set();
        let (failure, said) = conducted.join().expect("no panic");
        assert!(
            failure
                .expect("it was interrupted")
                .to_string()
                .contains("interrupted")
        );
        assert!(said.contains("refused clients `by-hand`"), "{said}");
    });
}
