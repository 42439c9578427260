//! Modules that do what a test tells them to: one action at each hook.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use weir_extend::{
    Answer, Call, Exchange, Fields, HeadFields, Hook, Hooks, Host, LoadError, LocalResponse,
    Module, ModuleKind, OptionValue, Options, Piece, Progress, RequestHead, ResponseHead,
    Transform,
};
use weir_proxy::config::{ExecutionModel, Module as ModuleTable, ModuleOption};

/// The program runs its tests with modules on threads of their own.
pub(crate) const IS_THREADED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"threaded");

/// A module called `name` that does `actions`, each a hook and what is done there: `set NAME
/// VALUE`, `add NAME VALUE` (beside the head), `remove NAME`, `path PATH`, `host HOST`,
/// `respond STATUS TEXT`, `fail`, `fail-if NAME`
/// (only if the head has this field), `panic`, `spin`, `defer`, `defer-for-ever`, `defer-always`,
/// of a response `status CODE`, and `content HOW`: `upper`, `twice` (each byte), `blocks` (of
/// 200,000 bytes, which are held), `reverse` (all of it is held), `cut` (gives up behind 100,000
/// bytes), `fail` (gives up at once), `first` (ends behind 2 bytes), `plain` (`upper`, with codings
/// undone), `respond` (answers 451 by itself, at once), `respond-late` (behind 100,000 bytes),
/// `scan-respond` and `scan-fail` (the same, and nothing is put out before), `tag` (the variant's
/// tag is put before it); `inspect HOW` sets the same as an inspector. `variant FIELD` gives a
/// request the tag that it has in that field; after `note FIELD` a `scan-respond`, or
/// `respond-noted` at once, says what is in it. What one does at `response-received` may be stored
/// unless there is the action `unstored`; `state` names a [`set_state`] that it depends on.
pub(crate) fn scripted(name: &str, actions: &[(&str, &str)]) -> ModuleTable {
    let options = actions.iter();
    let options = options
        .map(|(hook, action)| ((*hook).to_owned(), ModuleOption::Text((*action).to_owned())));
    ModuleTable {
        name: name.to_owned(),
        kind: "scripted".to_owned(),
        host: None,
        path: Default::default(),
        run: if IS_THREADED {
            ExecutionModel::Threads
        } else {
            ExecutionModel::Worker
        },
        on_failure: weir_proxy::config::FailurePolicy::Refuse,
        deadline: super::span("10s"),
        wait: super::span("10s"),
        hold: weir_proxy::config::ByteSize::from_kib(256),
        may_store: false,
        requests_max: 16,
        options: options.collect(),
    }
}

pub(crate) struct Scripted;

impl ModuleKind for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let mut actions = BTreeMap::new();
        for hook in Hook::ALL {
            if let Some(OptionValue::Text(action)) = options.take(hook.as_str()) {
                actions.insert(hook, action);
            }
        }
        let is_unstored = options.take("unstored").is_some();
        let state = match options.take("state") {
            Some(OptionValue::Text(state)) => Some(state),
            _ => None,
        };
        options.finish(&["the names of hooks"])?;
        Ok(Arc::new(Script(Arc::new(actions), is_unstored, state)))
    }
}

static STATES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Changes what modules with this state depend on.
pub(crate) fn set_state(name: &str, value: &str) {
    let mut states = STATES.lock().expect("no panic");
    states.insert(name.to_owned(), value.to_owned());
}

struct Script(Arc<BTreeMap<Hook, String>>, bool, Option<String>);

impl Module for Script {
    fn hooks(&self) -> Hooks {
        self.0.keys().copied().collect()
    }

    fn changes_stored(&self) -> bool {
        self.0.contains_key(&Hook::ResponseReceived) && !self.1
    }

    fn state(&self) -> String {
        let states = STATES.lock().expect("no panic");
        let state = self.2.as_ref().and_then(|name| states.get(name));
        state.cloned().unwrap_or_default()
    }

    fn may_transform(&self) -> bool {
        let mut actions = self.0.values();
        actions.any(|action| action.starts_with("content ") || action.starts_with("inspect "))
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(Player {
            script: Arc::clone(&self.0),
            deferred: 0,
            is_woken: false,
            tag: String::new(),
        })
    }
}

struct Player {
    script: Arc<BTreeMap<Hook, String>>,
    deferred: u32,
    is_woken: bool,
    tag: String,
}

impl Player {
    fn play(&mut self, hook: Hook, fields: &mut HeadFields<'_>) -> Answer {
        let action = self.script[&hook].clone();
        let words: Vec<&str> = action.splitn(3, ' ').collect();
        match words[..] {
            ["set", name, value] => fields.set(name, value.as_bytes()).expect("a field"),
            // kept beside the head, where the others copy it
            ["add", name, value] => fields.add(name, value.as_bytes()).expect("a field"),
            ["remove", name] => drop(fields.remove(name).expect("a field")),
            ["respond", status, text] => {
                let status = status.parse().expect("a status");
                let response = LocalResponse::new(status, text).expect("a response");
                return Answer::Respond(response.with("X-By", b"module").expect("a field"));
            }
            ["fail"] => return Answer::Fail,
            ["fail-if", name] if fields.get(name).is_some() => return Answer::Fail,
            ["fail-if", _] => {}
            ["unavailable-if", name] if fields.get(name).is_some() => return Answer::Unavailable,
            ["unavailable-if", _] => {}
            ["unavailable"] => return Answer::Unavailable,
            ["panic"] => panic!("as the test told it to"),
            ["spin"] => {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(20) {
                    std::hint::spin_loop();
                }
            }
            ["defer"] if self.deferred == 0 => {
                self.deferred += 1;
                return Answer::Defer;
            }
            ["defer"] => fields.set("X-Deferred", b"once").expect("a field"),
            ["defer-for-ever" | "defer-always"] => return Answer::Defer,
            [
                "path" | "host" | "content" | "inspect" | "status" | "variant" | "note",
                _,
            ] => {}
            _ => panic!("`{action}` is no action"),
        }
        Answer::Continue
    }
}

impl Player {
    /// What a module answers that has noted a field of the request.
    fn refusal(&self) -> String {
        format!("not for {}", self.tag)
    }

    fn how(&self, hook: Hook) -> Option<Box<dyn Transform>> {
        let action = self.script[&hook].split_once(' ');
        let action = action.map(|(what, how)| match what {
            "inspect" => ("content", how),
            _ => (what, how),
        });
        let how = match action {
            Some(("content", "upper" | "plain")) => How::Upper,
            Some(("content", "twice")) => How::Twice,
            Some(("content", "reverse")) => How::Reverse,
            Some(("content", "blocks")) => How::Blocks,
            Some(("content", "tag")) => How::Tag(format!("[{}]", self.tag)),
            Some(("content", "cut")) => How::Cut(100_000),
            Some(("content", "fail")) => How::Cut(0),
            Some(("content", "first")) => How::First(2),
            Some(("content", "respond")) => How::Respond(0),
            Some(("content", "respond-late")) => How::Respond(100_000),
            Some(("content", "scan-fail")) => How::Scan(100_000, None),
            Some(("content", "respond-noted")) => How::Scan(0, Some(self.refusal())),
            Some(("content", "scan-respond")) => How::Scan(100_000, Some(self.refusal())),
            _ => return None,
        };
        Some(Box::new(how))
    }

    fn change(&mut self, hook: Hook, head: &mut ResponseHead<'_>) {
        if let Some(("status", status)) = self.script[&hook].split_once(' ') {
            let status = status.parse().expect("a status");
            head.set_status(status).expect("a status to set");
        }
        if let Some(how) = self.how(hook) {
            // where it is not permitted it passes as it is
            let _ = match &*self.script[&hook] {
                "content plain" => head.transform_plain(how),
                action if action.starts_with("inspect ") => {
                    head.inspect(how);
                    Ok(())
                }
                _ => head.transform(how),
            };
        }
    }
}

/// What becomes of content.
enum How {
    Upper,
    Twice,
    Reverse,
    /// It is passed on in blocks of 200,000 bytes, which are held meanwhile.
    Blocks,
    /// It gives up behind so many bytes.
    Cut(usize),
    /// It ends behind so many bytes.
    First(usize),
    /// It answers by itself behind so many bytes.
    Respond(usize),
    /// It takes so many bytes and puts out nothing, and then gives up, or answers with this.
    Scan(usize, Option<String>),
    /// This is before it.
    Tag(String),
}

impl Transform for How {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let input = piece.input();
        match self {
            Self::Upper => {
                let put = piece.put(&input.to_ascii_uppercase());
                piece.take(put);
            }
            Self::Twice => {
                let count = input.len().min(piece.room() / 2);
                let twice: Vec<u8> = input[..count].iter().flat_map(|byte| [*byte; 2]).collect();
                piece.put(&twice);
                piece.take(count);
            }
            Self::Reverse if !piece.is_last() => return Progress::Continue,
            Self::Reverse => {
                let count = input.len().min(piece.room());
                let mut end = input[input.len() - count..].to_vec();
                end.reverse();
                piece.put(&end);
                if count < input.len() {
                    panic!("a test's content fits into one piece");
                }
                piece.take(count);
            }
            Self::Blocks if input.len() < 200_000 && !piece.is_last() => return Progress::Continue,
            Self::Blocks => {
                piece.pass(200_000);
            }
            Self::Tag(tag) => {
                let put = piece.put(tag.as_bytes());
                tag.drain(..put);
                if tag.is_empty() {
                    piece.pass(input.len());
                }
            }
            Self::Cut(left) => {
                if *left == 0 {
                    return Progress::Fail;
                }
                *left -= piece.pass(*left);
            }
            Self::First(left) => {
                *left -= piece.pass(*left);
                if *left == 0 {
                    return Progress::Done;
                }
            }
            Self::Scan(left, answer) => {
                let count = input.len().min(*left);
                piece.take(count);
                *left -= count;
                match answer {
                    _ if *left > 0 => {}
                    None => return Progress::Fail,
                    Some(answer) => {
                        let response = LocalResponse::new(451, answer.as_str());
                        return Progress::Respond(Box::new(response.expect("a response")));
                    }
                }
            }
            Self::Respond(left) => {
                if *left == 0 {
                    let response = LocalResponse::new(451, "not this").expect("a response");
                    return Progress::Respond(Box::new(response));
                }
                *left -= piece.pass(*left);
            }
        }
        if piece.is_last() && piece.input().is_empty() {
            Progress::Done
        } else {
            Progress::Continue
        }
    }
}

impl Exchange for Player {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _call: &Call) -> Answer {
        let action = self.script[&Hook::RequestReceived].clone();
        match action.split_once(' ') {
            Some(("path", path)) => head.set_path_and_query(path).expect("a path"),
            Some(("host", host)) => head.set_authority(host).expect("a host"),
            Some(("variant", name)) => {
                let tag = head.fields.get(name).map(<[u8]>::to_vec);
                if let Some(tag) = tag {
                    self.tag = String::from_utf8(tag).expect("a tag");
                    head.set_variant(&self.tag).expect("a tag");
                }
            }
            Some(("note", name)) => {
                let noted = head.fields.get(name).unwrap_or_default();
                self.tag = String::from_utf8(noted.to_vec()).expect("a text");
            }
            _ => {}
        }
        if let Some(how) = self.how(Hook::RequestReceived) {
            let _ = head.transform(how);
        }
        self.play(Hook::RequestReceived, &mut head.fields)
    }

    fn request_sent(&mut self, head: &mut RequestHead<'_>, _call: &Call) -> Answer {
        if self.script[&Hook::RequestSent].starts_with("path ") {
            head.set_path_and_query("/late").expect("a path");
        }
        if let Some(how) = self.how(Hook::RequestSent) {
            let _ = head.transform(how);
        }
        self.play(Hook::RequestSent, &mut head.fields)
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, _call: &Call) -> Answer {
        self.change(Hook::ResponseReceived, head);
        self.play(Hook::ResponseReceived, &mut head.fields)
    }

    fn response_sent(&mut self, head: &mut ResponseHead<'_>, _call: &Call) -> Answer {
        self.change(Hook::ResponseSent, head);
        self.play(Hook::ResponseSent, &mut head.fields)
    }

    fn done(&mut self, _call: &Call) {
        self.play(Hook::Done, &mut HeadFields::from(Fields::default()));
    }

    /// Ready at the second poll, unless it never is.
    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let never = self
            .script
            .values()
            .any(|action| action == "defer-for-ever");
        if never || !self.is_woken {
            self.is_woken = true;
            if !never {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}
