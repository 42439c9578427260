//! How fast a trace is written and read: `cargo run --release -p weir-trace --example trace_rate --
//! [ROWS]`.
//!
//! Rows are what a proxy would record, three million by default; targets are drawn from a tenth as
//! many.

use std::error::Error;
use std::time::Instant;
use weir_trace::stats::{COLUMNS, Stats};
use weir_trace::{
    AbortedBy, Column, Columns, Meta, Reader, Row, TraceMethod, TraceScheme, TraceVersion, Writer,
};
use weir_workload::Chance;

const ROWS: u64 = 3_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let rows = match std::env::args().nth(1) {
        Some(rows) => rows.parse()?,
        None => ROWS,
    };
    let path = std::env::temp_dir().join(format!("trace_rate-{}.parquet", std::process::id()));
    let done = measure(rows, &path);
    std::fs::remove_file(&path)?;
    done
}

fn measure(rows: u64, path: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let mut chance = Chance::new(1, 0);
    let begun = Instant::now();
    let mut writer = Writer::create(path, Meta::default())?;
    for index in 0..rows {
        writer.push(row(&mut chance, index, rows))?;
    }
    let written = writer.finish()?;
    tell("write all columns", rows, begun);
    println!("{:.1} bytes a row", written.bytes as f64 / rows as f64);

    let reader = Reader::open(path)?;
    let begun = Instant::now();
    let mut batches = reader.batches(Columns::of(&[Column::target, Column::received_bytes]));
    let mut sum = 0_u64;
    while let Some(batch) = batches.next()? {
        for (target, bytes) in batch.target.iter().zip(&batch.received_bytes) {
            sum = sum.wrapping_add(target ^ bytes.unwrap_or(0));
        }
    }
    tell("read two columns in batches", rows, begun);

    let begun = Instant::now();
    for row in reader.rows(Columns::ALL) {
        sum = sum.wrapping_add(row?.target);
    }
    tell("read all columns as rows", rows, begun);

    let begun = Instant::now();
    let mut stats = Stats::default();
    for row in reader.rows(COLUMNS) {
        stats.add(&row?);
    }
    let summary = stats.finish();
    tell("statistics", rows, begun);
    println!(
        "{} targets, checksum {sum:016x}",
        summary.population.targets
    );
    Ok(())
}

fn tell(what: &str, rows: u64, begun: Instant) {
    let rate = rows as f64 / begun.elapsed().as_secs_f64() / 1e6;
    println!("{what}: {rate:.2} million rows a second");
}

fn row(chance: &mut Chance, index: u64, rows: u64) -> Row {
    // low numbers are popular; then as if hashed: any bits will do
    let rank = chance.below(rows / 10);
    let target = chance.below(rank + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bytes = 100 + chance.below(20_000);
    Row {
        arrival_us: (index * 150).cast_signed(),
        setup_us: chance.is(0.2).then(|| chance.below(100_000)),
        request_us: Some(chance.below(1000)),
        response_us: Some(1000 + chance.below(100_000)),
        last_byte_us: Some(100_000 + chance.below(1_000_000)),
        client: Some(chance.below(5000).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        connection: Some(index / 5),
        connection_sequence: u32::try_from(index % 5 + 1).ok(),
        server: Some(target % 1000),
        target,
        method: Some(TraceMethod::Get),
        scheme: Some(TraceScheme::Http),
        version: Some(TraceVersion::Http11),
        has_cookie: Some(chance.is(0.3)),
        has_authorization: Some(false),
        has_query: Some(target.is_multiple_of(10)),
        has_cgi_bin: Some(false),
        request_directives: Some(0),
        status: Some(200),
        has_set_cookie: Some(chance.is(0.1)),
        response_directives: Some(1 << chance.below(4)),
        max_age_s: chance.is(0.5).then_some(3600),
        etag: chance.is(0.5).then_some(target),
        content_type: Some("text/html".into()),
        declared_bytes: chance.is(0.8).then_some(bytes),
        received_bytes: Some(bytes),
        aborted_by: Some(AbortedBy::Neither),
        is_persistent_client: Some(true),
        verdict: Some("hit".into()),
        ..Row::default()
    }
}
