//! A stored response of a proxy that uses the store, piece by piece.

use super::{check_whole, not_stored, refusal, several};
use crate::messages::Failure;
use crate::operate::{Reply, push_encoded};
use crate::store::flags::ExportFlags;
use crate::store::online::OnlineStore;
use std::io::Write;
use weir_disk::offline::OfflineError;
use weir_proxy::admin::NOT_STORED;
use weir_proxy::on_disk::report::{MessageReport, RecordKind, RecordReport, StorePage};

const WHAT: &str = "cannot export the response";

/// A response that was found.
pub(super) struct OnlineResponse {
    proxy: OnlineStore,
    found: MessageReport,
}

impl OnlineResponse {
    /// The one that is meant, all of it.
    pub(super) fn find(proxy: OnlineStore, flags: &ExportFlags) -> Result<Self, Failure> {
        let call = match (&flags.key, &flags.url) {
            (Some(key), _) => {
                let mut call = "find?key=".to_owned();
                push_encoded(&mut call, key);
                call
            }
            (None, url) => {
                let mut call = match flags.mode {
                    Some(mode) => format!("find?mode={mode}&url="),
                    None => "find?url=".to_owned(),
                };
                push_encoded(&mut call, url.as_deref().unwrap_or_default());
                call
            }
        };
        let mut responses = Vec::new();
        for found in find(&proxy, &call)? {
            match found.record.what {
                RecordKind::Response { .. } => responses.push(found),
                RecordKind::Rules { .. } if flags.key.is_none() => {
                    let keys = variants(&proxy, &found.record.key)?;
                    if let [key] = keys.as_slice() {
                        responses.extend(find(&proxy, &format!("find?key={key}"))?);
                    } else if !keys.is_empty() {
                        return Err(several(&keys));
                    }
                }
                _ => {}
            }
        }
        let found = match (responses.len(), responses.pop()) {
            (1, Some(found)) => found,
            (_, None) => return Err(not_stored()),
            (_, last) => {
                let all = responses.into_iter().chain(last);
                return Err(several(&all.map(|it| it.record.key).collect::<Vec<_>>()));
            }
        };
        let stored = found.record.content_bytes.unwrap_or_default();
        check_whole(found.is_contiguous, stored, found.complete_bytes)?;
        Ok(Self { proxy, found })
    }

    /// Writes head and content.
    pub(super) fn write(
        &self,
        output: &mut dyn Write,
    ) -> Result<Result<(), OfflineError>, Failure> {
        let content = self.found.record.content_bytes.unwrap_or_default();
        let end = self.found.head_bytes + content;
        let mut written = 0;
        while written < end {
            let call = format!(
                "read?key={}&at={}&skip={written}",
                self.found.record.key, self.found.at
            );
            let reply = answered(&self.proxy, &call)?;
            if reply.content.is_empty() {
                return Err(refusal("the proxy gave less of it than is stored", None));
            }
            written += reply.content.len() as u64;
            if let Err(error) = output.write_all(&reply.content) {
                return Ok(Err(OfflineError::Output(error)));
            }
        }
        Ok(output.flush().map_err(OfflineError::Output))
    }
}

fn find(proxy: &OnlineStore, call: &str) -> Result<Vec<MessageReport>, Failure> {
    let reply = answered(proxy, call)?;
    let page: StorePage<MessageReport> = proxy.read(&reply, WHAT)?;
    Ok(page.items)
}

/// The keys of the variants of a target.
fn variants(proxy: &OnlineStore, target: &str) -> Result<Vec<String>, Failure> {
    let mut keys = Vec::new();
    let mut take = |page: Vec<RecordReport>| {
        keys.extend(page.into_iter().map(|it| it.key));
        Ok(())
    };
    proxy.each_page(&format!("ls?variants_of={target}&"), WHAT, &mut take)?;
    Ok(keys)
}

/// The reply, if it has what was asked for.
fn answered(proxy: &OnlineStore, call: &str) -> Result<Reply, Failure> {
    let reply = proxy.reply(call, WHAT)?;
    match reply.status {
        200 => Ok(reply),
        404 if reply.body.trim_end() == NOT_STORED => Err(not_stored()),
        DAMAGED => Err(refusal(reply.body.trim_end(), None)),
        _ => Err(proxy.refused(&reply, WHAT)),
    }
}

/// The status of an answer about what is damaged.
const DAMAGED: u16 = 409;
