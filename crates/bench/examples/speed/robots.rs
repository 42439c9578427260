//! Many robots, many addresses, many connections: how much memory that takes.

use serde::Serialize;
use weir_workload::Scenario;

use crate::client::Asked;
use crate::process::{Serving, Usage, part, run};
use crate::{Options, record};

const ROBOTS: u32 = 10_000;

/// How many connections there have to be at once, at least.
const CONNECTIONS_WANTED: u64 = 16_000;

/// How much memory the clients may take, in bytes.
const MEMORY_MAX_BYTES: u64 = 2 << 30;

/// PolyMix's robots and servers: 0.4 requests a second each, 2.5 s to answer, zipf(64) requests a
/// connection. Two connections a robot and not four, so that all of them together stay within 20
/// 000 open files whatever else the machine does.
pub(crate) fn scenario(seconds: u64) -> Result<Scenario, Box<dyn std::error::Error>> {
    let text = format!(
        r#"
format = 1
name = "robots"
about = "ten thousand robots with an address each"
sources = []

[workload]
kind = "web"
agents = {ROBOTS}
rate_per_s = 4000.0
servers = 1
targets = 100000
zipf_exponent = 0.8
one_hit_share = "0%"
warm_up = "5s"
measured = "{seconds}s"
if_modified_share = "0%"
reload_share = "0%"
head_share = "0%"
cookie_share = "0%"
set_cookie_share = "0%"
cookie_size = "constant(1B)"
lifetime = "constant(1h)"
life_cycle = {{ length = "constant(1h)", variance = "0%" }}
validators = {{ last_modified = "100%", etag = "100%", both = "100%" }}

[[workload.contents]]
name = "page"
share = "100%"
media_type = "text/html"
extension = ".html"
size = "exp(10KB)"

[[workload.cache_control]]
share = "100%"
max_age = true

[origin]
latency = "normal(2.5s, 1s)"
http = "1.1"
keep_alive = true
idle_timeout = "4s"
conditional = true
addresses = "one"

[clients]
http = "1.1"
keep_alive = true
requests_per_connection = "zipf(64)"
connections_max = 2
queue_max = 100
response_timeout = "20s"
addresses = "each"
"#
    );
    Ok(Scenario::parse("speed.toml", &text)?)
}

#[derive(Debug, Serialize)]
struct Found {
    asked: Asked,
    usage: Usage,
}

pub(crate) fn measure(options: &Options) -> crate::Outcome {
    let server = Serving::start(part(1, "serve-robots")?)?;
    let mut command = part(0, "ask-robots")?;
    let seconds = options.seconds.to_string();
    command.args(["--server", &server.said, "--seconds", &seconds]);
    let (text, usage) = run(command)?;
    let asked: Asked = serde_json::from_str(&text)?;
    println!("robots               {}", asked.agents);
    println!("connections at once  {}", asked.connections_max);
    println!("memory               {} MiB", asked.memory_max_bytes >> 20);
    println!(
        "requests             {} in {:.0} s",
        asked.requests, asked.seconds
    );
    println!("errors, wrong        {}, {}", asked.errors, asked.wrong);
    println!(
        "late                 {:.4} (the latest {} us)",
        asked.late_share, asked.late_max_us
    );
    println!(
        "CPU                  {:.2} of a core",
        asked.cpu_s / asked.seconds
    );
    let is_enough = asked.connections_max >= CONNECTIONS_WANTED
        && asked.memory_max_bytes < MEMORY_MAX_BYTES
        && asked.errors + asked.wrong == 0;
    record::write(options, "speed robots", &Found { asked, usage })?;
    if is_enough {
        Ok(())
    } else {
        Err(format!(
            "wanted: {CONNECTIONS_WANTED} connections in less than 2 GiB, without an error"
        )
        .into())
    }
}
