//! From HTTP to a tunnel: after CONNECT was answered, or the next hop sent 101.
//!
//! What the client sent behind its request was held back until now (RFC 9110 §7.8).

use crate::client::connection::Client;
use crate::exchange::state::Exchange;
use crate::log::record::End;
use crate::net::next_hops::next_hop::Connection;
use crate::net::tunnel::{self, Side, TunnelEnd};
use std::rc::Rc;
use weir_measure::Metric;

/// Answers with `head`, then relays bytes both ways until both sides are done. Always ends the
/// client's connection.
pub(crate) async fn run(
    client: &mut Client,
    exchange: &mut Exchange,
    connection: Connection,
    head: &[u8],
    surplus: &[u8],
) -> bool {
    let worker = Rc::clone(&client.worker);
    let to_next_hop_first = std::mem::take(&mut client.unread);
    let mut to_client_first = head.to_vec();
    to_client_first.extend_from_slice(surplus);
    if exchange.account.status == 0 {
        exchange.account.status = 101;
    }
    exchange.tx.tunnel();
    exchange.responds(head);
    let counters = worker.counters();
    counters.inc(Metric::TunnelsOpened);
    counters.inc(Metric::TunnelsOpen);
    let Connection {
        stream: next_hop,
        mut permit,
        ..
    } = connection;
    permit.lost();
    let report = tunnel::relay(
        &client.stream,
        &next_hop,
        &to_next_hop_first,
        &to_client_first,
        exchange.settings.config.limits.tunnel_idle.as_duration(),
        worker.shared.cut(),
    )
    .await;
    drop(permit);
    counters.dec(Metric::TunnelsOpen);
    counters.add(Metric::TunnelBytesToClients, report.to_client_bytes);
    counters.add(Metric::TunnelBytesToNextHops, report.to_next_hop_bytes);
    let account = &mut exchange.account;
    if report.end != TunnelEnd::Closed {
        account.break_off(end_of(report.end), report.end.word());
    }
    account.response_bytes += report.to_client_bytes;
    account.request_bytes += report.to_next_hop_bytes;
    account.from_next_hop_bytes += report.to_client_bytes;
    account.tunnel_bytes += report.to_client_bytes;
    account.to_next_hop_bytes += report.to_next_hop_bytes;
    let (to_client, to_next_hop) = (report.to_client_bytes, report.to_next_hop_bytes);
    exchange.note(|notes| notes.tunnelled(head.len(), to_client, to_next_hop));
    client.closing = false;
    false
}

/// Whose end it was.
const fn end_of(end: TunnelEnd) -> End {
    match end {
        TunnelEnd::Closed => End::Whole,
        TunnelEnd::Error(Side::Client, _) => End::ClientLeft,
        TunnelEnd::Error(Side::NextHop, _) => End::NextHopCut,
        TunnelEnd::IdleLimit | TunnelEnd::Drained => End::Ours,
    }
}
