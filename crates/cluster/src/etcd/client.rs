//! The calls.

use super::error::EtcdError;
use super::http::{Response, post};
use super::messages::{
    Done, Lease, Range, StreamLine, TxnResponse, base64, parse, range_end, refusal,
};
use super::watch::Watch;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use weir_net::next_hops::HopKey;
use weir_net::resolver::Resolver;

/// Time for a whole answer of one endpoint.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// What is ended with a lease ends when that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseId(pub i64);

/// An etcd with one or more endpoints: the next one is asked when one fails. Clones share which one
/// that is.
#[derive(Clone)]
pub struct Client {
    endpoints: Arc<[HopKey]>,
    resolver: Resolver,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The endpoint that is asked first.
    first: AtomicUsize,
    /// The gateway is that of etcd before 3.4.
    is_beta: AtomicBool,
}

impl Client {
    /// A client of the etcd at `endpoints`, at least one. No request is sent.
    #[must_use]
    pub fn new(endpoints: &[HopKey], resolver: Resolver) -> Self {
        Self {
            endpoints: endpoints.into(),
            resolver,
            shared: Arc::default(),
        }
    }

    /// All keys that begin with `prefix`, as they are now: in the order of their names, at most
    /// `limit` (0: all). `at` is the first one of them.
    ///
    /// # Errors
    ///
    /// No endpoint answers, or etcd refuses.
    pub async fn range(&self, prefix: &str, at: &[u8], limit: u32) -> Result<Range, EtcdError> {
        let begin = if at.is_empty() { prefix.as_bytes() } else { at };
        let request = json!({
            "key": base64(begin),
            "range_end": base64(&range_end(prefix.as_bytes())),
            "limit": limit.to_string(),
        });
        self.call("kv/range", &request).await
    }

    /// Sets `key`, until `lease` ends; the revision of that.
    ///
    /// # Errors
    ///
    /// As [`Self::range`]; [`EtcdError::is_not_found`] if the lease has ended.
    pub async fn put(
        &self,
        key: &str,
        value: &[u8],
        lease: Option<LeaseId>,
    ) -> Result<i64, EtcdError> {
        let done: Done = self.call("kv/put", &put_request(key, value, lease)).await?;
        Ok(done.header.revision)
    }

    /// Sets `key` if there is none of that name; whether there was none, and the revision. A call
    /// whose answer was lost can be repeated.
    ///
    /// # Errors
    ///
    /// As [`Self::put`].
    pub async fn create(
        &self,
        key: &str,
        value: &[u8],
        lease: Option<LeaseId>,
    ) -> Result<(bool, i64), EtcdError> {
        let compare = json!({
            "key": base64(key.as_bytes()),
            "target": "CREATE",
            "create_revision": "0",
            "result": "EQUAL",
        });
        let put = put_request(key, value, lease);
        let calls = json!([{ "request_put": put }]);
        self.call_if(&compare, calls).await
    }

    /// As [`Self::create`] without a lease, and sets `mark`, too, in the same revision.
    ///
    /// # Errors
    ///
    /// As [`Self::put`].
    pub async fn create_marked(
        &self,
        key: &str,
        value: &[u8],
        mark: &str,
    ) -> Result<(bool, i64), EtcdError> {
        let calls = json!([
            { "request_put": put_request(key, value, None) },
            { "request_put": put_request(mark, b"", None) },
        ]);
        self.call_if(&is_as_read(key, 0), calls).await
    }

    /// Sets `key` if it is as it was read: changed last in the revision `read`, which is 0 for a
    /// key that was not there. Whether it was, and the revision. If the answer to a call was lost,
    /// it may be that it was set, and that it was not.
    ///
    /// # Errors
    ///
    /// As [`Self::put`].
    pub async fn replace(
        &self,
        key: &str,
        value: &[u8],
        read: i64,
    ) -> Result<(bool, i64), EtcdError> {
        let put = put_request(key, value, None);
        let calls = json!([{ "request_put": put }]);
        self.call_if(&is_as_read(key, read), calls).await
    }

    /// Deletes `key` if it is as it was read, changed last in the revision `read`; whether it was.
    ///
    /// # Errors
    ///
    /// As [`Self::range`].
    pub async fn delete_as_read(&self, key: &str, read: i64) -> Result<bool, EtcdError> {
        let calls = json!([{ "request_delete_range": { "key": base64(key.as_bytes()) } }]);
        let (is_deleted, _) = self.call_if(&is_as_read(key, read), calls).await?;
        Ok(is_deleted)
    }

    async fn call_if(&self, compare: &Value, calls: Value) -> Result<(bool, i64), EtcdError> {
        let request = json!({ "compare": [compare], "success": calls });
        let done: TxnResponse = self.call("kv/txn", &request).await?;
        Ok((done.succeeded, done.header.revision))
    }

    /// Deletes `key`; the revision.
    ///
    /// # Errors
    ///
    /// As [`Self::range`].
    pub async fn delete(&self, key: &str) -> Result<i64, EtcdError> {
        let request = json!({ "key": base64(key.as_bytes()) });
        let done: Done = self.call("kv/deleterange", &request).await?;
        Ok(done.header.revision)
    }

    /// A new lease for `ttl`, in whole seconds; etcd may give a longer one.
    ///
    /// # Errors
    ///
    /// As [`Self::range`].
    pub async fn grant(&self, ttl: Duration) -> Result<LeaseId, EtcdError> {
        let request = json!({ "TTL": ttl.as_secs().to_string() });
        let lease: Lease = self.call("lease/grant", &request).await?;
        Ok(LeaseId(lease.id))
    }

    /// Keeps `lease` for its whole time from now on; `false` if it has ended.
    ///
    /// # Errors
    ///
    /// As [`Self::range`].
    pub async fn keep_alive(&self, lease: LeaseId) -> Result<bool, EtcdError> {
        let request = json!({ "ID": lease.0.to_string() });
        let line: StreamLine<Lease> = self.call("lease/keepalive", &request).await?;
        Ok(line.result.is_some_and(|lease| lease.ttl > 0))
    }

    /// Ends `lease`, and all keys that were set until then.
    ///
    /// # Errors
    ///
    /// As [`Self::range`].
    pub async fn revoke(&self, lease: LeaseId) -> Result<(), EtcdError> {
        let request = json!({ "ID": lease.0.to_string() });
        let _done: Value = self.call("lease/revoke", &request).await?;
        Ok(())
    }

    /// The changes of all keys that begin with `prefix`, from `revision` on.
    ///
    /// # Errors
    ///
    /// As [`Self::range`].
    pub async fn watch(&self, prefix: &str, revision: i64) -> Result<Watch, EtcdError> {
        let request = json!({ "create_request": {
            "key": base64(prefix.as_bytes()),
            "range_end": base64(&range_end(prefix.as_bytes())),
            "start_revision": revision.to_string(),
            "progress_notify": true,
        }});
        let request = request.to_string();
        let response = self.ask(async |hop| {
            let response = self.post(hop, "watch", request.as_bytes());
            let response = timeout(CALL_LIMIT, response);
            response.await.map_err(|_| slow())?
        });
        Ok(Watch::new(response.await?))
    }

    /// The answer to a call.
    async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        request: &Value,
    ) -> Result<T, EtcdError> {
        let request = request.to_string();
        self.ask(async |hop| {
            let answer = async {
                let response = self.post(hop, method, request.as_bytes()).await?;
                let content = response.whole().await;
                let content = content.map_err(|error| EtcdError::Unreachable(error.to_string()))?;
                parse(&content)
            };
            timeout(CALL_LIMIT, answer).await.map_err(|_| slow())?
        })
        .await
    }

    /// Asks one endpoint after the other, until one answers.
    async fn ask<T>(
        &self,
        question: impl AsyncFn(&HopKey) -> Result<T, EtcdError>,
    ) -> Result<T, EtcdError> {
        let first = self.shared.first.load(Ordering::Relaxed);
        let mut failed: Option<(EtcdError, String)> = None;
        for number in 0..self.endpoints.len() {
            let index = (first + number) % self.endpoints.len();
            let hop = &self.endpoints[index];
            match question(hop).await {
                Err(error) if error.is_of_endpoint() => {
                    let mut all = failed.map_or_else(String::new, |(_, all)| all + ", ");
                    let why = match &error {
                        EtcdError::Unreachable(why) => why.clone(),
                        error => error.to_string(),
                    };
                    all.push_str(&format!("http://{hop}: {why}"));
                    failed = Some((error, all));
                }
                answer => {
                    self.shared.first.store(index, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        let unreachable = |(_, all)| EtcdError::Unreachable(all);
        Err(failed.map_or_else(|| EtcdError::Unreachable("no endpoint".into()), unreachable))
    }

    /// The response of one endpoint, if it is not a refusal.
    async fn post(&self, hop: &HopKey, method: &str, json: &[u8]) -> Result<Response, EtcdError> {
        let unreachable = |error: super::http::HttpError| EtcdError::Unreachable(error.to_string());
        let was_beta = self.shared.is_beta.load(Ordering::Relaxed);
        for is_beta in [was_beta, !was_beta] {
            let version = if is_beta { "v3beta" } else { "v3" };
            let path = format!("/{version}/{method}");
            let response = post(&self.resolver, hop, &path, json).await;
            let response = response.map_err(unreachable)?;
            let status = response.status;
            if status == 200 {
                self.shared.is_beta.store(is_beta, Ordering::Relaxed);
                return Ok(response);
            }
            let content = response.whole().await.map_err(unreachable)?;
            match refusal(&content) {
                Some(refusal) => return Err(refusal),
                // no such path: another version
                None if status == 404 => {}
                None => return Err(EtcdError::Malformed(format!("status {status}"))),
            }
        }
        Err(EtcdError::Malformed("neither /v3 nor /v3beta".into()))
    }
}

fn slow() -> EtcdError {
    EtcdError::Unreachable(format!("no answer within {} s", CALL_LIMIT.as_secs()))
}

/// That `key` was changed last in the revision `read`.
fn is_as_read(key: &str, read: i64) -> Value {
    json!({
        "key": base64(key.as_bytes()),
        "target": "MOD",
        "mod_revision": read.to_string(),
        "result": "EQUAL",
    })
}

fn put_request(key: &str, value: &[u8], lease: Option<LeaseId>) -> Value {
    json!({
        "key": base64(key.as_bytes()),
        "value": base64(value),
        "lease": lease.map_or(0, |lease| lease.0).to_string(),
    })
}
