//! What etcd's JSON gateway takes and answers.

use super::error::EtcdError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A key or a value, as the gateway has it.
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// The end of the range of all keys that begin with `prefix`.
pub(super) fn range_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    // all keys
    vec![0]
}

/// Where in etcd's history an answer is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Header {
    /// Which etcd it is.
    #[serde(default, deserialize_with = "text")]
    pub cluster_id: String,
    /// The revision of its keys: each change of one is one more.
    #[serde(default, deserialize_with = "number")]
    pub revision: i64,
}

/// A key with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KeyValue {
    /// The key.
    #[serde(deserialize_with = "bytes")]
    pub key: Vec<u8>,
    /// The value; empty in a deletion.
    #[serde(default, deserialize_with = "bytes")]
    pub value: Vec<u8>,
    /// The revision in which it was made.
    #[serde(default, deserialize_with = "number")]
    pub create_revision: i64,
    /// The revision in which it was changed last.
    #[serde(default, deserialize_with = "number")]
    pub mod_revision: i64,
    /// The lease with which it ends; 0: it does not end.
    #[serde(default, deserialize_with = "number")]
    pub lease: i64,
}

/// Some keys at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Range {
    /// Which revision.
    pub header: Header,
    /// The keys, in order.
    #[serde(default)]
    pub kvs: Vec<KeyValue>,
    /// There are more than were asked for.
    #[serde(default)]
    pub more: bool,
}

/// The answer to what only changes something.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Done {
    pub(super) header: Header,
}

/// The answer to a transaction.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TxnResponse {
    pub(super) header: Header,
    #[serde(default)]
    pub(super) succeeded: bool,
}

/// The answer to a request for a lease, or to one that keeps it; no TTL: it has ended.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Lease {
    #[serde(rename = "ID", default, deserialize_with = "number")]
    pub(super) id: i64,
    #[serde(rename = "TTL", default, deserialize_with = "number")]
    pub(super) ttl: i64,
}

/// A line of a response that goes on.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct StreamLine<T> {
    pub(super) result: Option<T>,
    pub(super) error: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct WatchResponse {
    pub(super) header: Header,
    #[serde(default)]
    pub(super) created: bool,
    #[serde(default)]
    pub(super) canceled: bool,
    #[serde(default)]
    pub(super) cancel_reason: String,
    #[serde(default, deserialize_with = "number")]
    pub(super) compact_revision: i64,
    #[serde(default)]
    pub(super) events: Vec<WatchEvent>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct WatchEvent {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    pub(super) kv: KeyValue,
}

/// Reads an answer.
pub(super) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, EtcdError> {
    serde_json::from_slice(json).map_err(|error| EtcdError::Malformed(error.to_string()))
}

/// The refusal in `json`; `None` if it is none.
pub(super) fn refusal(json: &[u8]) -> Option<EtcdError> {
    let value: Value = serde_json::from_slice(json).ok()?;
    refusal_of(&value)
}

/// The same of an object with `code` and `message`; in a stream they have other names.
pub(super) fn refusal_of(value: &Value) -> Option<EtcdError> {
    let code = value.get("code").or_else(|| value.get("grpc_code"))?;
    let message = value.get("message").or_else(|| value.get("error"));
    Some(EtcdError::Refused {
        code: u32::try_from(code.as_u64()?).unwrap_or(u32::MAX),
        message: message.and_then(Value::as_str).unwrap_or("").to_owned(),
    })
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    BASE64.decode(text).map_err(serde::de::Error::custom)
}

/// A 64-bit number, which is a string by the rules of protobuf, or a number.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let text = text(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    match Value::deserialize(from)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(serde::de::Error::custom("neither a number nor a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_of_a_prefix_ends_before_the_next_one() {
        let check = |prefix: &[u8], expected: &[u8]| assert_eq!(range_end(prefix), expected);
        check(b"/weir/", b"/weir0");
        check(b"a\xff", b"b");
        check(b"\xff\xff", b"\0");
        check(b"", b"\0");
    }

    #[test]
    fn answers_of_etcd_are_read_and_others_are_not() {
        let range: Range = parse(
            br#"{"header":{"cluster_id":"27366229","revision":"7"},"kvs":[{"key":"L2E=","create_revision":"2","mod_revision":3,"version":"1","value":"aGVsbG8=","lease":"20"}],"count":"1"}"#,
        )
        .unwrap();
        let expected = KeyValue {
            key: b"/a".to_vec(),
            value: b"hello".to_vec(),
            create_revision: 2,
            mod_revision: 3,
            lease: 20,
        };
        assert_eq!(range.kvs, [expected]);
        assert_eq!((range.header.revision, range.more), (7, false));
        let empty: Range = parse(br#"{"header":{"revision":"1"}}"#).unwrap();
        assert!(empty.kvs.is_empty());
        for bad in [
            &b""[..],
            b"{}",
            b"[]",
            b"<html>",
            br#"{"header":{"revision":"x"}}"#,
            br#"{"header":{"revision":"99999999999999999999"}}"#,
            br#"{"header":{},"kvs":[{"value":"aGVsbG8="}]}"#,
            br#"{"header":{},"kvs":[{"key":"?"}]}"#,
            br#"{"header":{},"kvs":{}}"#,
        ] {
            let read = parse::<Range>(bad);
            assert!(matches!(read, Err(EtcdError::Malformed(_))), "{read:?}");
        }
    }

    #[test]
    fn refusal_has_a_code_and_a_message() {
        let not_found = refusal(br#"{"error":"a","message":"b","code":5}"#).unwrap();
        assert!(not_found.is_not_found());
        assert_eq!(not_found.to_string(), "etcd refuses: b");
        let of_stream = refusal(br#"{"grpc_code":14,"message":"no leader"}"#).unwrap();
        assert!(of_stream.is_of_endpoint());
        assert_eq!(refusal(b"404 page not found"), None);
        assert_eq!(refusal(b"{}"), None);
    }
}
