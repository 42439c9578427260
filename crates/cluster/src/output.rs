//! Where a source puts what it has found, and what is known of it.

use crate::member::{Member, check};
use crate::own::OwnNode;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_net::resolver::Resolver;

/// Members as a source has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberList {
    /// The members, in the order of their names. Never empty.
    pub members: Vec<Member>,
    /// The number of this node among them; `None` if it is none of them.
    pub own: Option<usize>,
}

/// What gets the lists of a source.
pub trait MemberSink: Send + Sync {
    /// These are the members from now on.
    ///
    /// # Errors
    ///
    /// Why the list cannot be used: the one before stays in force.
    fn put_in_force(&self, list: &MemberList) -> Result<(), String>;

    /// Whether there are members now, of this source or one before it.
    fn has_members(&self) -> bool;

    /// The source gave no good list; also called each time that the same is wrong again.
    fn count_error(&self);

    /// A line for the operator.
    fn tell(&self, line: &str);
}

/// How a source is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceReport {
    /// What is wrong with it now.
    pub problem: Option<String>,
    /// How often it did not give a good list.
    pub errors: u64,
    /// How long ago it had the list that is in force; `None` before the first one.
    pub age: Option<Duration>,
}

#[derive(Debug, Default)]
pub(crate) struct Status(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    problem: Option<String>,
    errors: u64,
    /// When the source had the list that is in force.
    confirmed: Option<Instant>,
}

impl Status {
    /// For an operator.
    pub(crate) fn report(&self) -> SourceReport {
        let state = self.lock();
        SourceReport {
            problem: state.problem.clone(),
            errors: state.errors,
            age: state.confirmed.map(|at| at.elapsed()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the sink how a source is. The status is never locked while the sink is called: the sink
/// locks the membership, and the membership reads the status under that lock.
#[derive(Clone)]
pub(crate) struct Reporter {
    sink: Arc<dyn MemberSink>,
    status: Arc<Status>,
}

impl Reporter {
    /// The source still has the list that it had last.
    pub(crate) fn confirm(&self) {
        let mut state = self.status.lock();
        state.confirmed = Some(Instant::now());
        if state.problem.take().is_some() {
            drop(state);
            self.sink.tell("the list of members is good again");
        }
    }

    /// The source has no good list: what was good last stays. A problem is told once.
    pub(crate) fn fail(&self, problem: &dyn Display) {
        self.sink.count_error();
        let problem = problem.to_string();
        let line = format!("{}: {problem}", self.kept());
        let mut state = self.status.lock();
        state.errors += 1;
        let before = state.problem.replace(problem);
        let is_known = before == state.problem;
        drop(state);
        if !is_known {
            self.sink.tell(&line);
        }
    }

    /// What stays in force without a good list.
    fn kept(&self) -> &'static str {
        match self.sink.has_members() {
            true => "the members stay as they are",
            false => "there is no list yet: this node serves alone",
        }
    }
}

/// Where a source puts what it has found.
pub(crate) struct Output {
    pub(crate) reporter: Reporter,
    pub(crate) own: OwnNode,
    pub(crate) resolver: Resolver,
    last: Option<MemberList>,
}

impl Output {
    pub(crate) fn new(
        sink: Arc<dyn MemberSink>,
        status: &Arc<Status>,
        own: OwnNode,
        resolver: Resolver,
    ) -> Self {
        Self {
            reporter: Reporter {
                sink,
                status: Arc::clone(status),
            },
            own,
            resolver,
            last: None,
        }
    }

    /// The source has these members. An empty list is refused: that of a source that has lost its
    /// entries looks the same.
    pub(crate) async fn publish(&mut self, members: Vec<Member>) {
        match self.put_in_force(members).await {
            Ok(()) => self.reporter.confirm(),
            Err(problem) => self.reporter.fail(&problem),
        }
    }

    /// The source has these members, and nothing that can be read of another one.
    pub(crate) async fn publish_but(&mut self, members: Vec<Member>, problem: &dyn Display) {
        match self.put_in_force(members).await {
            Ok(()) => self.reporter.fail(problem),
            Err(problem) => self.reporter.fail(&problem),
        }
    }

    async fn put_in_force(&mut self, mut members: Vec<Member>) -> Result<(), String> {
        if members.is_empty() {
            return Err("it lists no member".into());
        }
        members.sort_by(|one, other| one.name.cmp(&other.name));
        check(&members).map_err(|bad| bad.to_string())?;
        let own = self.own.find(&members, &self.resolver).await?;
        let list = MemberList { members, own };
        if self.last.as_ref() != Some(&list) {
            self.reporter.sink.put_in_force(&list)?;
            self.last = Some(list);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for the status in each call, as one does that is asked for it at the same time.
    #[derive(Default)]
    struct AskingSink {
        status: Arc<Status>,
        told: Mutex<Vec<String>>,
    }

    impl AskingSink {
        fn ask(&self) {
            assert!(self.status.0.try_lock().is_ok(), "it would wait for ever");
        }
    }

    impl MemberSink for AskingSink {
        fn put_in_force(&self, _: &MemberList) -> Result<(), String> {
            self.ask();
            Ok(())
        }

        fn has_members(&self) -> bool {
            self.ask();
            true
        }

        fn count_error(&self) {
            self.ask();
        }

        fn tell(&self, line: &str) {
            self.ask();
            self.told.lock().unwrap().push(line.to_owned());
        }
    }

    #[test]
    fn status_is_not_locked_while_its_sink_is_called_and_a_problem_is_told_once() {
        let sink = Arc::new(AskingSink::default());
        let reporter = Reporter {
            status: Arc::clone(&sink.status),
            sink: Arc::<AskingSink>::clone(&sink),
        };
        for problem in ["a", "a", "b"] {
            reporter.fail(&problem);
        }
        let report = sink.status.report();
        assert_eq!((report.problem.as_deref(), report.errors), (Some("b"), 3));
        reporter.confirm();
        reporter.confirm();
        assert_eq!(sink.status.report().problem, None);
        let told = sink.told.lock().unwrap();
        let expected = [
            "the members stay as they are: a",
            "the members stay as they are: b",
            "the list of members is good again",
        ];
        assert_eq!(*told, expected);
    }
}
