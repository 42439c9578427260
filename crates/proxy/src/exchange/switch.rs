//! From HTTP to a tunnel: after CONNECT was answered, or the next hop sent 101.
//!
//! What the client sent behind its request was held back until now (RFC 9110 §7.8).

use crate::exchange::state::RequestState;
use crate::log::record::End;
use std::rc::Rc;
use weir_measure::Metric;
use weir_net::http::{ClientStream, NextHopStream};
use weir_net::tunnel::{Side, TunnelEnd};

/// Answers with `head`, then relays bytes both ways until both sides are done. That is the end of
/// HTTP on the stream.
pub(crate) async fn run(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    mut hop: NextHopStream,
    (status, head): (u16, &[u8]),
) {
    let worker = Rc::clone(&exchange.worker);
    let surplus = hop.become_tunnel();
    exchange.tx.tunnel();
    exchange.log.response_head(status, head);
    if exchange.is_hooked() {
        exchange.run_hooks().await;
    }
    let counters = worker.counters();
    counters.inc(Metric::TunnelsOpened);
    counters.inc(Metric::TunnelsOpen);
    let idle_limit = exchange.settings.config.limits.tunnel_idle.as_duration();
    let cut = worker.shared.cut();
    let report = stream
        .tunnel(&mut hop, (head, &surplus), idle_limit, cut)
        .await;
    drop(hop);
    counters.dec(Metric::TunnelsOpen);
    counters.add(Metric::BytesToClients, report.head_bytes);
    counters.add(Metric::TunnelBytesToClients, report.to_client_bytes);
    counters.add(Metric::TunnelBytesToNextHops, report.to_next_hop_bytes);
    let log = &mut exchange.log;
    if report.end != TunnelEnd::Closed {
        log.broke_off(end_of(report.end), report.end.word());
    }
    log.sent(report.head_bytes);
    log.tunnelled(report.to_client_bytes, report.to_next_hop_bytes);
}

/// The side that ended it.
const fn end_of(end: TunnelEnd) -> End {
    match end {
        TunnelEnd::Closed => End::Whole,
        TunnelEnd::Error(Side::Client, _) => End::ClientLeft,
        TunnelEnd::Error(Side::NextHop, _) => End::NextHopCut,
        TunnelEnd::IdleLimit | TunnelEnd::Drained => End::Ours,
    }
}
