//! `block`: answers requests for advertisements and trackers itself, by filter lists in the syntax
//! that browsers' blockers use.
//!
//! ```toml
//! [[module]]
//! name = "no-ads"
//! kind = "block"
//! options.lists = ["/etc/weir/ads.txt"]
//! ```
//!
//! One engine (the `adblock` crate) serves all workers. Rules that change pages, and not requests,
//! are not for a proxy and are left out.

mod answer;
mod list;
mod resource;

use crate::options::{flag, one_of, texts};
use adblock::Engine;
use adblock::lists::{FilterFormat, FilterSet};
use adblock::request::Request;
use list::FilterList;
use resource::Resource;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use weir_extend::{
    Answer, Call, Exchange, Hook, Hooks, Host, LoadError, Module, ModuleKind, ModuleMetric,
    Options, RequestHead,
};

const OPTIONS: [&str; 3] = ["format", "lists", "strict"];

/// Most lists of one module.
const LISTS_MAX: usize = 64;

pub(crate) struct Block;

impl ModuleKind for Block {
    fn name(&self) -> &'static str {
        "block"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let paths = texts(&mut options, "lists")?;
        let is_hosts = one_of(&mut options, "format", ["adblock", "hosts"])?;
        let strict = flag(&mut options, "strict")?.unwrap_or(false);
        options.finish(&OPTIONS)?;
        if paths.is_empty() || paths.len() > LISTS_MAX {
            let what = format!("there are {} lists", paths.len());
            let hint = format!("name 1 to {LISTS_MAX} files, such as [\"/etc/weir/ads.txt\"]");
            return Err(LoadError::new("lists", what, hint));
        }
        let format = match is_hosts {
            true => FilterFormat::Hosts,
            false => FilterFormat::Standard,
        };
        let mut filters = FilterSet::new(false);
        let mut notes = Vec::new();
        let mut digest = DefaultHasher::new();
        for (index, path) in paths.iter().enumerate() {
            let option = format!("lists[{index}]");
            let list = FilterList::read(&option, path, format, strict)?;
            notes.push(list.note());
            list.text.hash(&mut digest);
            filters.add_filter_list(list.text, list::parse_options(format));
        }
        Ok(Arc::new(Blocker {
            shared: Arc::new(Shared {
                engine: Engine::new_with_filter_set(filters),
                blocked: AtomicU64::new(0),
            }),
            state: format!("{:016x}", digest.finish()),
            notes,
        }))
    }
}

/// What all workers share.
struct Shared {
    /// Its compiled regular expressions are behind a mutex, which a check holds for microseconds.
    engine: Engine,
    blocked: AtomicU64,
}

impl Shared {
    fn judge(&self, head: &RequestHead<'_>) -> Judgement {
        let resource = Resource::of(head);
        let url = resource::url(head);
        let request = Request::new(
            &url,
            &resource::source(head, resource),
            resource.name(),
            head.method(),
        );
        // a target that the engine cannot read is none that a rule is about
        let Ok(request) = request else {
            return Judgement::Pass;
        };
        let result = self.engine.check_network_request(&request);
        if result.should_block() {
            return Judgement::Block(resource);
        }
        let shorter = result.rewritten_url.as_deref();
        let path = shorter.and_then(|it| it.strip_prefix(url.strip_suffix(head.path_and_query())?));
        path.map_or(Judgement::Pass, |path| Judgement::Rewrite(path.to_owned()))
    }
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    Pass,
    Block(Resource),
    /// Without the parameters that a `removeparam` rule names.
    Rewrite(String),
}

struct Blocker {
    shared: Arc<Shared>,
    state: String,
    notes: Vec<String>,
}

impl Module for Blocker {
    fn hooks(&self) -> Hooks {
        Hooks::NONE.with(Hook::RequestReceived)
    }

    fn state(&self) -> String {
        self.state.clone()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn metrics(&self) -> Vec<ModuleMetric> {
        vec![ModuleMetric {
            name: "blocked".to_owned(),
            value: self.shared.blocked.load(Relaxed),
        }]
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(BlockExchange(Arc::clone(&self.shared)))
    }
}

struct BlockExchange(Arc<Shared>);

impl Exchange for BlockExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _: &Call) -> Answer {
        match self.0.judge(head) {
            Judgement::Pass => Answer::Continue,
            Judgement::Block(resource) => {
                self.0.blocked.fetch_add(1, Relaxed);
                answer::of(resource).map_or(Answer::Fail, Answer::Respond)
            }
            Judgement::Rewrite(path) => match head.set_path_and_query(&path) {
                Ok(()) => Answer::Continue,
                Err(_) => Answer::Fail,
            },
        }
    }
}

#[cfg(test)]
mod tests;
