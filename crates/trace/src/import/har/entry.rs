//! An entry of an archive, as far as a trace has room for it.

use super::super::damage::reason;
use super::super::facts::media_type;
use super::gave_up;
use crate::AbortedBy;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use weir_semantics::FieldLine;
use weir_workload::whole;

/// One request and what came of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) started_date_time: String,
    #[serde(default, deserialize_with = "number")]
    pub(super) time: Option<f64>,
    pub(super) request: Request,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) response: Response,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) timings: Timings,
    #[serde(default, deserialize_with = "word")]
    connection: String,
    #[serde(default, rename = "_socket", deserialize_with = "word")]
    socket: String,
    #[serde(default, rename = "_fromCache", deserialize_with = "word")]
    from_cache: String,
    #[serde(
        default,
        rename = "_fetchedViaServiceWorker",
        deserialize_with = "word"
    )]
    from_worker: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default, deserialize_with = "word")]
    pub(super) http_version: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) headers: Vec<Header>,
    #[serde(default, deserialize_with = "number")]
    headers_size: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    body_size: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Response {
    #[serde(deserialize_with = "number")]
    status: Option<f64>,
    #[serde(deserialize_with = "word")]
    status_text: String,
    #[serde(rename = "_error", deserialize_with = "word")]
    error: String,
    #[serde(deserialize_with = "word")]
    pub(super) http_version: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) headers: Vec<Header>,
    #[serde(deserialize_with = "or_default")]
    content: Content,
    #[serde(deserialize_with = "number")]
    headers_size: Option<f64>,
    #[serde(deserialize_with = "number")]
    body_size: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Content {
    #[serde(deserialize_with = "number")]
    size: Option<f64>,
    #[serde(deserialize_with = "word")]
    mime_type: String,
}

#[derive(Deserialize)]
pub(super) struct Header {
    name: String,
    #[serde(default, deserialize_with = "word")]
    value: String,
}

/// Milliseconds; negative or missing: not known, or it did not take place.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Timings {
    #[serde(deserialize_with = "number")]
    pub(super) blocked: Option<f64>,
    #[serde(deserialize_with = "number")]
    pub(super) dns: Option<f64>,
    #[serde(deserialize_with = "number")]
    pub(super) connect: Option<f64>,
    #[serde(deserialize_with = "number")]
    pub(super) ssl: Option<f64>,
    #[serde(deserialize_with = "number")]
    pub(super) send: Option<f64>,
    #[serde(deserialize_with = "number")]
    pub(super) wait: Option<f64>,
    #[serde(deserialize_with = "number")]
    pub(super) receive: Option<f64>,
}

/// What wrote an archive.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Creator {
    #[serde(deserialize_with = "word")]
    name: String,
}

impl Entry {
    /// When the browser began with it.
    pub(super) fn began(&self) -> Option<jiff::Timestamp> {
        self.started_date_time.parse().ok()
    }

    /// Why no request went out for it, if so.
    pub(super) fn no_transaction(&self) -> Option<&'static str> {
        let scheme = self.request.url.split(':').next().unwrap_or_default();
        let is_http = ["http", "https", "ws", "wss"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known));
        let is_said = |word: &str| !matches!(word, "" | "false");
        if !is_http || self.response.error.contains("ERR_BLOCKED") {
            Some(reason::NO_REQUEST)
        } else if is_said(&self.from_cache) || is_said(&self.from_worker) {
            Some(reason::BROWSER_CACHE)
        } else {
            None
        }
    }

    /// What the connection is called; `None` where the archive has no name for it.
    pub(super) fn connection_name(&self, creator: &Creator) -> Option<&str> {
        // those two write the server's port, all others a name
        let is_port = matches!(creator.name.as_str(), "Firebug" | "Firefox");
        let said = if is_port { "" } else { &self.connection };
        // 0 stands for none
        [said, self.socket.as_str()]
            .into_iter()
            .find(|name| !matches!(*name, "" | "0" | "-1"))
    }
}

impl Request {
    pub(super) fn head_bytes(&self) -> Option<u32> {
        head_bytes(self.headers_size)
    }

    pub(super) fn content_bytes(&self) -> Option<u64> {
        bytes(self.body_size)
    }
}

impl Response {
    /// The status code; `None` if there was no response.
    pub(super) fn status_code(&self) -> Option<u16> {
        let code = bytes(self.status).and_then(|code| u16::try_from(code).ok());
        code.filter(|code| (100..=999).contains(code))
    }

    /// As it was transferred; as it was decoded, where only that is said.
    pub(super) fn received_bytes(&self) -> Option<u64> {
        if self.status_code() == Some(304) {
            // it has no content (RFC 9110 §15.4.5)
            return Some(0);
        }
        bytes(self.body_size).or_else(|| bytes(self.content.size))
    }

    pub(super) fn head_bytes(&self) -> Option<u32> {
        head_bytes(self.headers_size)
    }

    /// The media type of the content, where there is no field.
    pub(super) fn media_type(&self) -> Option<String> {
        media_type(self.content.mime_type.as_bytes())
    }

    /// The side that aborted, where that is said.
    pub(super) fn gave_up(&self) -> Option<AbortedBy> {
        if self.status_code().is_none() && self.status_text == "Aborted" {
            return gave_up("Aborted");
        }
        gave_up(&self.error)
    }
}

/// The field lines: a value with line feeds is as many, and what begins with a colon is none of
/// them (RFC 9113 §8.3).
pub(super) fn field_lines(headers: &[Header]) -> Vec<FieldLine<'_>> {
    let is_field = |header: &&Header| !header.name.starts_with(':');
    headers
        .iter()
        .filter(is_field)
        .flat_map(|header| {
            let values = header.value.split('\n');
            values.map(|value| FieldLine::new(&header.name, value.trim_ascii().as_bytes()))
        })
        .collect()
}

/// Bytes of a head, which has some.
fn head_bytes(number: Option<f64>) -> Option<u32> {
    let bytes = u32::try_from(bytes(number)?).ok()?;
    (bytes > 0).then_some(bytes)
}

/// A number of bytes; `None` if it is negative or not whole.
fn bytes(number: Option<f64>) -> Option<u64> {
    // beyond this, whole numbers are not exact
    const BYTES_MAX: f64 = 9_007_199_254_740_992.0;
    let number = number.filter(|number| (0.0..=BYTES_MAX).contains(number))?;
    (number.fract() == 0.0).then(|| whole(number))
}

/// A number, or a text that is one; anything else is not known.
fn number<'de, D: Deserializer<'de>>(source: D) -> Result<Option<f64>, D::Error> {
    Ok(match Value::deserialize(source)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// A text, or what is written as one; empty if there is none.
fn word<'de, D: Deserializer<'de>>(source: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(source)? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        _ => String::new(),
    })
}

/// A value that may be `null`.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    source: D,
) -> Result<T, D::Error> {
    Option::deserialize(source).map(Option::unwrap_or_default)
}
