//! A watch: changes as they come.

use super::error::EtcdError;
use super::http::Response;
use super::messages::{Header, KeyValue, StreamLine, WatchResponse, parse, refusal_of};

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was set.
    Put(KeyValue),
    /// It was deleted, or its lease has ended.
    Delete(Vec<u8>),
}

/// Changes that came together; none if etcd only says how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// The revision of the last one.
    pub header: Header,
    /// In the order of their revisions.
    pub events: Vec<Event>,
}

/// A watch that goes on until it is dropped.
#[derive(Debug)]
pub struct Watch {
    response: Response,
}

impl Watch {
    pub(super) const fn new(response: Response) -> Self {
        Self { response }
    }

    /// The next changes. It waits for as long as there are none: a caller that does not know
    /// whether etcd is still there begins anew after a while. Nothing is lost if the future is
    /// dropped before it is ready.
    ///
    /// # Errors
    ///
    /// [`EtcdError::Compacted`]; or the watch has ended.
    pub async fn next(&mut self) -> Result<Events, EtcdError> {
        loop {
            let line = self.response.line().await;
            let line = line.map_err(|error| EtcdError::Ended(error.to_string()))?;
            let line = line.ok_or_else(|| EtcdError::Ended("etcd has closed it".into()))?;
            if let Some(events) = read(&line)? {
                return Ok(events);
            }
        }
    }
}

/// The changes in a line; `None` if it only says that the watch has begun.
fn read(line: &[u8]) -> Result<Option<Events>, EtcdError> {
    let line: StreamLine<WatchResponse> = parse(line)?;
    let Some(response) = line.result else {
        let refusal = line.error.as_ref().and_then(refusal_of);
        return Err(refusal.unwrap_or_else(|| EtcdError::Malformed("no result".into())));
    };
    if response.compact_revision > 0 {
        return Err(EtcdError::Compacted {
            revision: response.compact_revision,
        });
    }
    if response.canceled {
        return Err(EtcdError::Ended(response.cancel_reason));
    }
    if response.created && response.events.is_empty() {
        return Ok(None);
    }
    let events = response.events.into_iter();
    let events = events.map(|event| match event.kind.as_str() {
        "DELETE" => Event::Delete(event.kv.key),
        _ => Event::Put(event.kv),
    });
    Ok(Some(Events {
        header: response.header,
        events: events.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_a_watch_has_changes_or_says_why_it_ends() {
        let events = |line: &str| read(line.as_bytes());
        let put = r#"{"result":{"header":{"revision":"2"},"events":[{"kv":{"key":"YQ==","mod_revision":"2","value":"Yg=="}},{"type":"DELETE","kv":{"key":"Yw==","mod_revision":"2"}}]}}"#;
        let found = events(put).unwrap().unwrap();
        assert_eq!(found.header.revision, 2);
        assert!(matches!(&found.events[0], Event::Put(kv) if kv.value == b"b"));
        assert_eq!(found.events[1], Event::Delete(b"c".to_vec()));
        let created = r#"{"result":{"header":{"revision":"2"},"created":true}}"#;
        assert_eq!(events(created), Ok(None));
        let progress = events(r#"{"result":{"header":{"revision":"9"}}}"#);
        assert!(progress.unwrap().unwrap().events.is_empty());
        let compacted = r#"{"result":{"header":{},"canceled":true,"compact_revision":"3"}}"#;
        assert_eq!(events(compacted), Err(EtcdError::Compacted { revision: 3 }));
        let refused = r#"{"error":{"grpc_code":14,"message":"no leader"}}"#;
        assert!(matches!(
            events(refused),
            Err(EtcdError::Refused { code: 14, .. })
        ));
        for bad in ["", "{}", "no", r#"{"result":{}}"#, r#"{"result":[]}"#] {
            assert!(events(bad).is_err(), "{bad}");
        }
    }
}
