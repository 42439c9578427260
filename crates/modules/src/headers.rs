//! `headers`: sets, adds and removes fields of heads.
//!
//! Each hook has a list of rules, which are applied in their order:
//!
//! ```toml
//! [[module]]
//! name = "privacy"
//! kind = "headers"
//! options.request_sent = ["remove Referer"]
//! options.response_sent = ["set X-Content-Type-Options: nosniff", "remove Server"]
//! ```

use crate::options::texts;
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{
    Answer, Call, Exchange, FieldRule, FieldRuleError, Fields, Hook, Hooks, Host, LoadError,
    Module, ModuleKind, Options, RequestHead, ResponseHead,
};

/// The options, by the hooks whose rules they are.
const OPTIONS: [(&str, Hook); 4] = [
    ("request_received", Hook::RequestReceived),
    ("request_sent", Hook::RequestSent),
    ("response_received", Hook::ResponseReceived),
    ("response_sent", Hook::ResponseSent),
];

pub(crate) struct Headers;

impl ModuleKind for Headers {
    fn name(&self) -> &'static str {
        "headers"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let mut rules = [const { Vec::new() }; Hook::ALL.len()];
        for (name, hook) in OPTIONS {
            for (index, text) in texts(&mut options, name)?.iter().enumerate() {
                let rule = parse(&format!("{name}[{index}]"), text)?;
                rules[hook.index()].push(rule);
            }
        }
        options.finish(&OPTIONS.map(|(name, _)| name))?;
        if rules.iter().all(Vec::is_empty) {
            return Err(LoadError::new(
                "",
                "there is no rule",
                "give one, such as options.response_sent = [\"remove Server\"]",
            ));
        }
        Ok(Arc::new(HeaderRules(Arc::new(rules))))
    }
}

type Rules = [Vec<FieldRule>; Hook::ALL.len()];

struct HeaderRules(Arc<Rules>);

impl Module for HeaderRules {
    fn hooks(&self) -> Hooks {
        let used = |hook: &Hook| !self.0[hook.index()].is_empty();
        Hook::ALL.into_iter().filter(used).collect()
    }

    fn changes_stored(&self) -> bool {
        self.hooks().contains(Hook::ResponseReceived)
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(HeaderExchange(Arc::clone(&self.0)))
    }
}

struct HeaderExchange(Arc<Rules>);

impl HeaderExchange {
    fn apply(&self, hook: Hook, fields: &mut Fields) -> Answer {
        let mut rules = self.0[hook.index()].iter();
        match rules.try_for_each(|rule| rule.apply(fields)) {
            Ok(()) => Answer::Continue,
            // there is no room: a peer that sends many fields must not evade the rules
            Err(_) => Answer::Fail,
        }
    }
}

impl Exchange for HeaderExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _call: &Call) -> Answer {
        self.apply(Hook::RequestReceived, &mut head.fields)
    }

    fn request_sent(&mut self, head: &mut RequestHead<'_>, _call: &Call) -> Answer {
        self.apply(Hook::RequestSent, &mut head.fields)
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, _call: &Call) -> Answer {
        self.apply(Hook::ResponseReceived, &mut head.fields)
    }

    fn response_sent(&mut self, head: &mut ResponseHead<'_>, _call: &Call) -> Answer {
        self.apply(Hook::ResponseSent, &mut head.fields)
    }
}

/// Reads the rule that `option` has.
fn parse(option: &str, text: &str) -> Result<FieldRule, LoadError> {
    let hint = format!("write {}", FieldRule::FORM);
    let wrong = |what: String| LoadError::new(option, what, &hint);
    FieldRule::parse(text).map_err(|error| match error {
        FieldRuleError::Form => wrong(format!("`{text}` is no rule")),
        FieldRuleError::Field(error) => wrong(format!("`{text}`: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_that_no_head_would_take_is_refused_when_it_is_loaded() {
        for text in [
            "",
            "set",
            "set X",
            "delete X",
            "remove X Y",
            "set Content-Length: 1",
            "remove Transfer-Encoding",
            "add Via: x",
            "set X: a\r\nb",
        ] {
            let error = parse("response_sent[0]", text).expect_err(text);
            assert_eq!(error.option, "response_sent[0]", "{text}");
            assert!(error.hint.contains("set NAME: VALUE"));
        }
    }

    /// Otherwise a peer could evade a rule by sending many fields.
    #[test]
    fn rule_for_which_a_head_has_no_room_fails_the_call() {
        let mut rules = [const { Vec::new() }; Hook::ALL.len()];
        rules[Hook::RequestSent.index()].push(FieldRule::Set("X-A".into(), "1".into()));
        let exchange = HeaderExchange(Arc::new(rules));
        let mut fields = Fields::default();
        assert_eq!(
            exchange.apply(Hook::RequestSent, &mut fields),
            Answer::Continue
        );
        let mut full = Fields::default();
        while full.add("X", b"").is_ok() {}
        assert_eq!(exchange.apply(Hook::RequestSent, &mut full), Answer::Fail);
    }
}
