//! From what happened to the row of a trace.

use weir_policy::Phase;
use weir_proxy::record::{End, Finished};
use weir_trace::import::{Heads, NoRequest};
use weir_trace::{AbortedBy, Anonymiser, Row};

const US_PER_S: i64 = 1_000_000;

/// The row. Numbers of connections are counted from `numbers_from`, so that those of another run
/// are others.
///
/// # Errors
///
/// The request cannot be read.
pub(super) fn of(
    finished: &Finished,
    numbers_from: u64,
    hide: &Anonymiser,
) -> Result<Row, NoRequest> {
    let number = |number: u64| numbers_from.wrapping_add(number);
    let next_hop = finished.next_hop.as_ref();
    let head_bytes = |head: &[u8]| u32::try_from(head.len()).ok().filter(|bytes| *bytes > 0);
    let mut row = Row {
        arrival_us: finished.arrival_us,
        // it begins with the request: when the client began to connect, the proxy does not see
        request_us: Some(0),
        response_us: finished.reached.us(Phase::ResponseHead),
        first_byte_us: finished.first_byte_us,
        last_byte_us: Some(finished.last_byte_us),
        next_hop_setup_us: next_hop.and_then(|hop| hop.setup_us),
        next_hop_response_us: next_hop.and_then(|hop| hop.response_us),
        client: Some(hide.client(&finished.client.to_string())),
        connection: Some(number(finished.connection)),
        connection_sequence: Some(finished.sequence),
        next_hop_connection: next_hop.map(|hop| number(hop.connection)),
        status: finished.status,
        received_bytes: Some(finished.received_bytes),
        next_hop_bytes: Some(finished.next_hop_bytes),
        request_head_bytes: head_bytes(finished.request()),
        response_head_bytes: head_bytes(finished.response()),
        request_content_bytes: finished.request_content_bytes,
        aborted_by: match finished.end {
            End::Whole => Some(AbortedBy::Neither),
            End::ClientLeft => Some(AbortedBy::Client),
            End::NextHopCut => Some(AbortedBy::Server),
            End::Ours => None,
        },
        is_persistent_client: Some(finished.is_persistent),
        is_persistent_server: next_hop.map(|hop| hop.is_persistent),
        verdict: Some(finished.verdict.to_owned()),
        node_choice: finished.node_choice.map(str::to_owned),
        next_hop_choice: finished.next_hop_choice.map(str::to_owned),
        ..Row::default()
    };
    let answered_us = row.response_us.unwrap_or(finished.last_byte_us);
    let heads = Heads {
        request: finished.request(),
        response: finished.response(),
        default_authority: finished.authority.as_deref().unwrap_or_default(),
        targeted: &finished.targeted,
        time_s: finished.arrival_us.saturating_add_unsigned(answered_us) / US_PER_S,
    };
    heads.fill(&mut row, hide)?;
    Ok(row)
}
