//! `icap`: has messages adapted by an ICAP service.
//!
//! ```toml
//! [[module]]
//! name = "scan"
//! kind = "icap"
//! options.service = "icap://127.0.0.1:1344/srv_clamav"
//! ```

use super::address::Address;
use super::connections::Connections;
use super::module::{IcapModule, NoTransform, Settings};
use super::service::Service;
use std::sync::Arc;
use weir_extend::{LoadError, Module, ModuleKind, OptionValue, Options};
use weir_icap::ServiceUri;
use weir_net::clock::Clock;

/// The options.
const OPTIONS: [&str; 8] = [
    "service",
    "socket",
    "request",
    "response",
    "connections_max",
    "no_transform",
    "send_client",
    "preview",
];

/// Connections to one server by default. c-icap serves 300 at once by default.
const CONNECTIONS_MAX_DEFAULT: i64 = 100;

/// The most that an operator can allow.
const CONNECTIONS_MAX_MAX: i64 = 10_000;

/// The kind `icap`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Icap;

impl ModuleKind for Icap {
    fn name(&self) -> &'static str {
        "icap"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let service = text(&mut options, "service")?.ok_or_else(|| {
            LoadError::new(
                "service",
                "there is no service",
                "give one, such as options.service = \"icap://127.0.0.1:1344/echo\"",
            )
        })?;
        let uri = ServiceUri::parse(service.as_bytes()).map_err(|error| {
            LoadError::new(
                "service",
                format!("`{service}` is no service: {error}"),
                "write `icap://HOST:PORT/NAME`",
            )
        })?;
        let address = Address::of(&uri, text(&mut options, "socket")?)?;
        let hold_bytes = options.settings().hold_bytes;
        let wait = options.settings().wait;
        let settings = Settings {
            hold_bytes,
            request: flag(&mut options, "request")?,
            response: flag(&mut options, "response")?,
            no_transform: no_transform(&mut options)?,
            sends_client: flag(&mut options, "send_client")?.unwrap_or(false),
            sends_previews: flag(&mut options, "preview")?.unwrap_or(true),
        };
        let connections_max = connections_max(&mut options)?;
        options.finish(&OPTIONS)?;
        if (settings.request, settings.response) == (Some(false), Some(false)) {
            return Err(LoadError::new(
                "request",
                "the module would do nothing",
                "leave out `request` or `response`, or write `true`",
            ));
        }
        let clock = Clock::system();
        let connections = Connections::new(address, clock.clone(), connections_max, wait);
        let service = Service::new(uri, connections, connections_max, clock);
        Ok(Arc::new(IcapModule::new(Arc::new(service), settings)))
    }
}

fn text(options: &mut Options, name: &str) -> Result<Option<String>, LoadError> {
    match options.take(name) {
        None => Ok(None),
        Some(OptionValue::Text(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_form(name, "a string", &other)),
    }
}

fn flag(options: &mut Options, name: &str) -> Result<Option<bool>, LoadError> {
    match options.take(name) {
        None => Ok(None),
        Some(OptionValue::Flag(flag)) => Ok(Some(flag)),
        Some(other) => Err(wrong_form(name, "true or false", &other)),
    }
}

fn connections_max(options: &mut Options) -> Result<usize, LoadError> {
    let count = match options.take("connections_max") {
        None => CONNECTIONS_MAX_DEFAULT,
        Some(OptionValue::Number(count)) => count,
        Some(other) => return Err(wrong_form("connections_max", "a number", &other)),
    };
    let range = 1..=CONNECTIONS_MAX_MAX;
    let count = usize::try_from(count)
        .ok()
        .filter(|_| range.contains(&count));
    count.ok_or_else(|| {
        LoadError::new(
            "connections_max",
            "the number is out of range",
            format!("use 1 to {CONNECTIONS_MAX_MAX}"),
        )
    })
}

fn no_transform(options: &mut Options) -> Result<NoTransform, LoadError> {
    match text(options, "no_transform")?.as_deref() {
        None | Some("inspect") => Ok(NoTransform::Inspect),
        Some("pass") => Ok(NoTransform::Pass),
        Some(other) => Err(LoadError::new(
            "no_transform",
            format!("`{other}` is not known"),
            "use `inspect` or `pass`",
        )),
    }
}

fn wrong_form(name: &str, expected: &str, found: &OptionValue) -> LoadError {
    let what = format!("expected {expected}, found {}", found.form());
    LoadError::new(name, what, format!("write {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weir_extend::Hook;

    fn load(options: &[(&str, OptionValue)]) -> Result<Arc<dyn Module>, LoadError> {
        let options = options.iter().cloned();
        let options: BTreeMap<_, _> = options
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Icap.load(Options::new(options))
    }

    fn service() -> (&'static str, OptionValue) {
        (
            "service",
            OptionValue::Text("icap://127.0.0.1/echo".to_owned()),
        )
    }

    #[test]
    fn module_is_called_for_both_directions_unless_the_operator_says_otherwise() {
        let check = |options: &[(&str, bool)], expected: [bool; 2]| {
            let flags = options
                .iter()
                .map(|(name, flag)| (*name, OptionValue::Flag(*flag)));
            let all: Vec<_> = [service()].into_iter().chain(flags).collect();
            let module = load(&all).expect("it is loaded");
            let hooks = [Hook::RequestReceived, Hook::ResponseReceived];
            assert_eq!(hooks.map(|hook| module.hooks().contains(hook)), expected);
            assert_eq!(module.may_transform(), expected[1]);
        };
        check(&[], [true, true]);
        check(&[("response", false)], [true, false]);
        check(&[("request", false), ("response", true)], [false, true]);
    }

    #[test]
    fn options_that_cannot_be_are_refused() {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        for (options, option) in [
            (vec![], "service"),
            (vec![("service", text("http://a/"))], "service"),
            (vec![("service", OptionValue::Number(1))], "service"),
            (vec![service(), ("socket", text("here"))], "socket"),
            (vec![service(), ("request", text("yes"))], "request"),
            (
                vec![service(), ("connections_max", OptionValue::Number(0))],
                "connections_max",
            ),
            (
                vec![service(), ("no_transform", text("maybe"))],
                "no_transform",
            ),
            (vec![service(), ("preview", text("x"))], "preview"),
            (vec![service(), ("previews", text("x"))], "previews"),
            (
                vec![
                    service(),
                    ("request", OptionValue::Flag(false)),
                    ("response", OptionValue::Flag(false)),
                ],
                "request",
            ),
        ] {
            let error = load(&options).err().expect("it is refused");
            assert_eq!(error.option, option);
        }
    }
}
