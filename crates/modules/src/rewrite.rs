//! `rewrite`: sends requests to another host or path, or redirects their clients.
//!
//! The first rule that matches a request is applied:
//!
//! ```toml
//! [[module]]
//! name = "moved"
//! kind = "rewrite"
//! options.rules = [
//!     { path = "/old/", to_path = "/new/" },
//!     { host = "a.example", to_host = "b.example" },
//!     { path = "/shop/", redirect = "https://shop.example/", status = 301 },
//! ]
//! ```

use crate::options::{number, tables, text};
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{
    Answer, Call, Exchange, Fields, Hook, Hooks, Host, LoadError, LocalResponse, Module,
    ModuleKind, Options, RequestHead,
};

const RULE_OPTIONS: [&str; 6] = ["host", "path", "to_host", "to_path", "redirect", "status"];

/// The status of a redirect that names none: the client keeps its method.
const STATUS: u16 = 307;

pub(crate) struct Rewrite;

impl ModuleKind for Rewrite {
    fn name(&self) -> &'static str {
        "rewrite"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let tables = tables(&mut options, "rules")?.into_iter().enumerate();
        let rules = tables.map(|(index, table)| Rule::read(&format!("rules[{index}]"), table));
        let rules: Vec<Rule> = rules.collect::<Result<_, _>>()?;
        options.finish(&["rules"])?;
        if rules.is_empty() {
            return Err(LoadError::new(
                "rules",
                "there is no rule",
                "give one, such as { path = \"/old/\", to_path = \"/new/\" }",
            ));
        }
        Ok(Arc::new(RewriteRules(rules.into())))
    }
}

struct RewriteRules(Arc<[Rule]>);

impl Module for RewriteRules {
    fn hooks(&self) -> Hooks {
        Hooks::NONE.with(Hook::RequestReceived)
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(RewriteExchange(Arc::clone(&self.0)))
    }
}

struct RewriteExchange(Arc<[Rule]>);

impl Exchange for RewriteExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _call: &Call) -> Answer {
        match self.0.iter().find(|rule| rule.matches(head)) {
            Some(rule) => rule.apply(head),
            None => Answer::Continue,
        }
    }
}

/// One rule.
struct Rule {
    host: Option<String>,
    path: String,
    action: Action,
}

enum Action {
    Rewrite {
        host: Option<String>,
        path: Option<String>,
    },
    Redirect {
        to: String,
        status: u16,
    },
}

impl Rule {
    fn read(option: &str, mut table: Options) -> Result<Self, LoadError> {
        let within = |error: LoadError| LoadError {
            option: format!("{option}.{}", error.option),
            ..error
        };
        let mut take = |name| text(&mut table, name).map_err(within);
        let (host, path) = (take("host")?, take("path")?);
        let (to_host, to_path, redirect) = (take("to_host")?, take("to_path")?, take("redirect")?);
        let status = number(&mut table, "status").map_err(within)?;
        table.finish(&RULE_OPTIONS).map_err(within)?;
        let wrong = |name: &str, what: String, hint: &str| {
            Err(LoadError::new(format!("{option}.{name}"), what, hint))
        };
        let path = path.unwrap_or_else(|| "/".to_owned());
        if !path.starts_with('/') {
            let what = format!("path `{path}` does not begin with `/`");
            return wrong("path", what, "begin it with `/`");
        }
        let action = match (redirect, to_host, to_path) {
            (Some(to), None, None) => {
                let number = status.unwrap_or(i64::from(STATUS));
                let Some(status) = u16::try_from(number).ok().filter(|it| is_redirect(*it)) else {
                    let what = format!("{number} is no status of a redirect");
                    return wrong("status", what, "use 301, 302, 303, 307 or 308");
                };
                if Fields::default().set("Location", to.as_bytes()).is_err() {
                    return wrong("redirect", "it is no URL".to_owned(), "write a URL");
                }
                Action::Redirect { to, status }
            }
            (None, host, path) if host.is_some() || path.is_some() => {
                if status.is_some() {
                    let what = "a rule that rewrites answers nothing".to_owned();
                    return wrong("status", what, "remove it, or use `redirect`");
                }
                let mut probe = RequestHead::new("GET", "a", "/", Fields::default());
                if host
                    .as_ref()
                    .is_some_and(|host| probe.set_authority(host).is_err())
                {
                    return wrong("to_host", "it is no host".to_owned(), "write a host");
                }
                if let Some(path) = &path
                    && let Err(error) = probe.set_path_and_query(path)
                {
                    return wrong("to_path", error.to_string(), "write a path");
                }
                Action::Rewrite { host, path }
            }
            _ => {
                return Err(LoadError::new(
                    option,
                    "the rule says nothing, or two things",
                    "give `redirect`, or `to_host` and `to_path`, or one of these",
                ));
            }
        };
        Ok(Self { host, path, action })
    }

    fn matches(&self, head: &RequestHead<'_>) -> bool {
        let is_host = |host: &String| head.authority().eq_ignore_ascii_case(host);
        self.host.as_ref().is_none_or(is_host) && head.path_and_query().starts_with(&self.path)
    }

    fn apply(&self, head: &mut RequestHead<'_>) -> Answer {
        let rest = head.path_and_query().strip_prefix(&self.path);
        let rest = rest.unwrap_or_default().to_owned();
        match &self.action {
            Action::Redirect { to, status } => {
                let location = format!("{to}{rest}");
                let response = LocalResponse::new(*status, Vec::new()).ok();
                let response = response
                    .and_then(|response| response.with("Location", location.as_bytes()).ok());
                response.map_or(Answer::Fail, Answer::Respond)
            }
            Action::Rewrite { host, path } => {
                let host = host.as_ref().map(|host| head.set_authority(host));
                let path = path
                    .as_ref()
                    .map(|path| head.set_path_and_query(&format!("{path}{rest}")));
                // a request that is too long for the rule must not go to where it was
                if [host, path].into_iter().flatten().any(|set| set.is_err()) {
                    return Answer::Fail;
                }
                Answer::Continue
            }
        }
    }
}

const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weir_extend::OptionValue;

    fn rule(options: &[(&str, &str)]) -> Result<Rule, LoadError> {
        let value = |value: &str| match value.parse() {
            Ok(number) => OptionValue::Number(number),
            Err(_) => OptionValue::Text(value.to_owned()),
        };
        let options = options.iter();
        let options = options.map(|(name, text)| ((*name).to_owned(), value(text)));
        Rule::read(
            "rules[0]",
            Options::new(options.collect::<BTreeMap<_, _>>()),
        )
    }

    fn head() -> RequestHead<'static> {
        RequestHead::new("GET", "a.example", "/old/x?y", Fields::default())
    }

    #[test]
    fn rewrite_replaces_the_host_and_the_beginning_of_the_path() {
        let both = [
            ("path", "/old/"),
            ("to_path", "/new/"),
            ("to_host", "b.example"),
        ];
        let rule = rule(&both).expect("a rule");
        let mut head = head();
        assert!(rule.matches(&head));
        assert_eq!(rule.apply(&mut head), Answer::Continue);
        assert_eq!(
            (head.authority(), head.path_and_query()),
            ("b.example", "/new/x?y")
        );
    }

    #[test]
    fn rule_applies_to_its_host_and_path_alone() {
        for (name, value, expected) in [
            ("host", "A.example", true),
            ("host", "b.example", false),
            ("path", "/old/", true),
            ("path", "/older", false),
        ] {
            let rule = rule(&[(name, value), ("to_path", "/")]).expect("a rule");
            assert_eq!(rule.matches(&head()), expected, "{name} {value}");
        }
    }

    #[test]
    fn redirect_names_the_rest_of_the_path() {
        let rule = rule(&[
            ("path", "/old/"),
            ("redirect", "https://b/"),
            ("status", "301"),
        ]);
        let Answer::Respond(response) = rule.expect("a rule").apply(&mut head()) else {
            panic!("no response");
        };
        assert_eq!(response.status(), 301);
        assert_eq!(response.fields.get("location"), Some(&b"https://b/x?y"[..]));
    }

    #[test]
    fn rule_that_means_nothing_is_refused_when_it_is_loaded() {
        for options in [
            &[][..],
            &[("to_path", "/"), ("redirect", "https://b/")],
            &[("redirect", "https://b/"), ("status", "200")],
            &[("redirect", "https://b/\r\nX: 1")],
            &[("to_path", "x")],
            &[("to_host", "a b")],
            &[("to_path", "/"), ("status", "301")],
            &[("path", "x"), ("to_path", "/")],
            &[("to_path", "/"), ("misspelt", "x")],
        ] {
            let error = rule(options).err().expect("a refusal");
            assert!(error.option.starts_with("rules[0]"), "{error}");
        }
    }
}
