//! `weir check`: is this config good, and what does it mean?

use crate::effective;
use crate::flags::{CheckFlags, ServeFlags};
use crate::messages::{Failure, give};
use weir_proxy::config::{AdminAddress, Config, TokenFile};

/// Reads and validates the file; prints `ok` and a summary on stdout.
///
/// # Errors
///
/// What is wrong with the file (exit 2).
pub(crate) fn check(flags: &CheckFlags) -> Result<(), Failure> {
    let config = effective::load(&ServeFlags {
        config: Some(flags.config.clone()),
        ..ServeFlags::default()
    })?;
    give(&format!(
        "ok: {}\n{}",
        flags.config.display(),
        summary(&config)
    ))
}

fn summary(config: &Config) -> String {
    let mut lines = String::new();
    for listener in &config.listeners {
        lines.push_str(&format!("  {} on {}\n", listener.mode, listener.address));
    }
    lines.push_str(&match (&config.admin.address, &config.admin.token_file) {
        (AdminAddress::Off, _) => "  admin off\n".to_owned(),
        (address, TokenFile::Off) => format!("  admin on {address}\n"),
        (address, TokenFile::At(path)) => {
            format!("  admin on {address}, token in {}\n", path.display())
        }
    });
    if !config.routes.is_empty() {
        let hops: usize = config
            .routes
            .iter()
            .map(|route| route.next_hops.len())
            .sum();
        lines.push_str(&format!(
            "  routes {}, next hops {hops}\n",
            config.routes.len()
        ));
    }
    lines.push_str(&format!("  cache {}\n", describe_cache(config)));
    lines
}

/// What and how much the cache keeps, in a few words.
pub(crate) fn describe_cache(config: &Config) -> String {
    let cache = &config.cache;
    if !cache.enabled {
        return "off, nothing is stored".to_owned();
    }
    format!(
        "{} in memory, {}, {}, responses up to {}",
        cache.memory, cache.eviction, cache.profile, cache.largest_response
    )
}
