//! The tables, as Markdown.

use super::Record;
use super::costs::NodeCosts;
use super::limits::{RATES, limits};
use super::needs::{Cores, Need, needs};
use super::networks::{Estimated, FlashCrowd, Networks};
use crate::record::markdown::{self, line, row, table};
use weir_measure::float;

/// Of a record: what was simulated, and what it took.
pub(crate) fn render(record: &Record, networks: &Networks) -> String {
    let took = record.figures.took;
    let mut out = format!(
        "{}\\\n{}: {} requests, one target in {}, seed {}; nodes of {} bytes, {}, {} requests a \
         second each\n",
        markdown::origin(record, "\\\n"),
        networks.trace,
        networks.requests,
        networks.one_in,
        networks.seed,
        networks.cache_bytes,
        networks.eviction,
        networks.rate_per_s,
    );
    let (cpu_s, gib) = (
        float(took.cpu_us) / 1e6,
        float(took.peak_rss_kib) / float(1 << 20),
    );
    line(
        &mut out,
        format_args!(
            "\nAll networks in one reading of the trace: {:.0} s, {cpu_s:.0} s of CPU, {gib:.2} GiB at most.",
            took.seconds
        ),
    );
    requests_table(&mut out, networks);
    events_table(&mut out, networks);
    out
}

fn requests_table(out: &mut String, networks: &Networks) {
    let lines = networks.all().iter().map(|network| {
        row([
            network.nodes.to_string(),
            with_error(network.hit_ratio, 100.0, 2),
            with_error(network.own_hit_ratio, 100.0, 2),
            with_error(network.origin_requests, 1e-6, 3),
            with_error(network.busiest, 1.0, 3),
            with_error(network.lateral_requests, 1e-6, 2),
            with_error(network.lateral_bytes, 1e-12, 3),
            network.residents.to_string(),
        ])
    });
    let columns = "| nodes | hits, % | at the node that is asked, % | origin requests, millions | busiest node × mean | lateral requests, millions | lateral TB | responses in each node |";
    table(out, "", &format!("\n{columns}"), lines);
}

fn events_table(out: &mut String, networks: &Networks) {
    let count = |it: Option<Estimated>| it.map_or("-".to_owned(), |it| with_error(it, 1.0, 0));
    let lines = networks.all().iter().filter_map(|network| {
        let crowd: FlashCrowd = network.flash_crowd?;
        let everywhere = crowd.everywhere_ms;
        Some(row([
            network.nodes.to_string(),
            count(network.join),
            count(network.death),
            everywhere.map_or("over 1 s".to_owned(), |ms| format!("{ms:.0} ms")),
            crowd.origin_requests.to_string(),
            format!("{:.2}", crowd.busiest_at_first),
            format!("{:.2}", crowd.busiest_later),
        ]))
    });
    let columns = "| nodes | a node joins: origin requests | a node dies: origin requests | a flash crowd: everywhere after | origin requests | busiest node in the first 0.1 s | later |";
    table(out, "", &format!("\n{columns}"), lines);
}

/// What one node costs.
pub(crate) fn costs(costs: &NodeCosts) -> String {
    let message = costs.message;
    let basis = match message.is_measured {
        true => "measured: a purge",
        false => "assumed: as much as a lateral hit",
    };
    let us = |number: f64| format!("{number:.1} us");
    let [few, many] = costs.choice_ns;
    let lines = [
        ("a hit of 1 KiB", us(costs.hit_us), "measured, `peers`"),
        (
            "a forwarded request of 1 KiB",
            us(costs.forward_us),
            "measured, `peers`",
        ),
        (
            "content that is sent",
            format!(
                "{:.2} ns a byte, {:.0} Gbit/s a core",
                costs.byte_ns,
                8.0 / costs.byte_ns
            ),
            "measured, `peers`: hits of 1 MiB and 1 KiB",
        ),
        (
            "content that is received from another node or the origin",
            format!("{:.2} ns a byte", costs.byte_ns),
            "assumed: as if it were sent",
        ),
        (
            "a lateral hit of 1 KiB, both nodes",
            format!(
                "{}, an own hit beside it {}",
                us(costs.lateral_us),
                us(costs.own_us)
            ),
            "measured, `cluster`",
        ),
        (
            "a choice among 16 and 64 nodes",
            format!("{few:.0} and {many:.0} ns"),
            "measured, `cluster`; beyond 64 extrapolated",
        ),
        (
            "a message to another node, its sender",
            us(message.sender_us),
            basis,
        ),
        ("the same, its receiver", us(message.receiver_us), basis),
    ];
    let lines = lines.map(|(what, cost, basis)| row([what, &cost, basis]));
    let mut out = String::new();
    table(&mut out, "", "| CPU time of | cost | from |", lines);
    text_columns(&out)
}

/// What a site and a network would need.
pub(crate) fn needs_table(networks: &Networks, costs: &NodeCosts) -> String {
    let all = needs(networks, costs);
    let of = |what: &str, number: &dyn Fn(&Need<'_>) -> String| {
        row([what.to_owned()].into_iter().chain(all.iter().map(number)))
    };
    let cores =
        |number: fn(&Cores) -> f64| move |need: &Need<'_>| format!("{:.2}", number(&need.cores()));
    let lines = [
        of("requests a second of a node's clients", &|it| {
            format!("{:.0}", it.requests_per_s)
        }),
        of("Gbit/s of a node to clients", &|it| {
            format!("{:.2}", it.client_gbit_per_s())
        }),
        of("Gbit/s of a node to other nodes, and from them", &|it| {
            format!("{:.2}", it.lateral_gbit_per_s())
        }),
        of("Gbit/s from the origin, to all nodes", &|it| {
            format!("{:.1}", it.origin_gbit_per_s())
        }),
        of(
            "cores of a node: answers to clients",
            &cores(|it| it.answers),
        ),
        of("lateral requests", &cores(|it| it.lateral)),
        of("origin requests", &cores(|it| it.origin)),
        of("choices of nodes", &cores(|it| it.choices)),
        of(
            "messages about states and digests",
            &cores(|it| it.messages),
        ),
        of("**cores of a node**", &|it| {
            format!("{:.2}", it.cores().sum())
        }),
        of("**cores of all nodes**", &|it| {
            format!("{:.0}", it.all_cores())
        }),
        of("MB of digests in a node's memory", &|it| {
            it.digests_mb()
                .map_or("too many".to_owned(), |mb| format!("{mb:.0}"))
        }),
        of("Mbit/s of additions to digests, to each node", &|it| {
            format!("{:.1}", it.digests_mbit_per_s())
        }),
        of(
            "a purge is everywhere after, round trips of 0.2 ms",
            &|it| format!("{:.1} ms", it.purge_ms(0.2)),
        ),
        of("the same, round trips of 60 ms", &|it| {
            format!("{:.1} ms", it.purge_ms(60.0))
        }),
    ];
    let names = all.iter().map(|it| it.name.clone());
    let columns = row([String::new()].into_iter().chain(names));
    let mut out = String::new();
    table(&mut out, "", &columns, lines);
    out
}

/// With how many nodes what grows with them meets its limit.
pub(crate) fn limits_table(networks: &Networks, costs: &NodeCosts) -> String {
    let lines = limits(networks, costs).into_iter().map(|limit| {
        let [simulated, faster] = limit.nodes.map(|nodes| format!("{nodes:.0}"));
        row([limit.what, limit.limit, limit.basis, &simulated, &faster])
    });
    let rates = RATES.map(|times| format!("{:.0}", times * f64::from(networks.rate_per_s)));
    let [simulated, faster] = rates;
    let columns = format!(
        "| what | meets | from numbers that are | nodes, {simulated} requests a second each | {faster} each |"
    );
    let mut out = String::new();
    table(&mut out, "", &columns, lines);
    out.replacen(
        "| --- | --: | --: | --: | --: |",
        "| --- | --- | --- | --: | --: |",
        1,
    )
}

fn text_columns(table: &str) -> String {
    table.replacen("| --- | --: | --: |", "| --- | --- | --- |", 1)
}

fn with_error(estimated: Estimated, times: f64, digits: usize) -> String {
    format!(
        "{:.digits$} ± {:.digits$}",
        estimated.value * times,
        estimated.error * times
    )
}
