//! `weir check`: is this config good, and what does it mean?

use crate::effective;
use crate::flags::{CheckFlags, ServeFlags};
use crate::messages::{Exit, Failure, give};
use weir_proxy::Unusable;
use weir_proxy::config::{AdminAddress, Config, TokenFile};

/// Reads and validates the file, tries the directories and files that it names, and prints `ok` and a summary on stdout.
///
/// # Errors
///
/// What is wrong with the file (exit 2), or with what it names (exit 3), as a start would find it.
pub(crate) fn check(flags: &CheckFlags) -> Result<(), Failure> {
    let config = effective::load_for_this_machine(&ServeFlags {
        config: Some(flags.config.clone()),
        ..ServeFlags::default()
    })?;
    let unusable = weir_proxy::try_places(&config);
    if !unusable.is_empty() {
        return Err(cannot_use(flags, &unusable));
    }
    give(&format!(
        "ok: {}\n{}",
        flags.config.display(),
        summary(&config)
    ))
}

fn cannot_use(flags: &CheckFlags, unusable: &[Unusable]) -> Failure {
    let each = unusable
        .iter()
        .map(|it| format!("{}: {}", it.what, it.cause));
    Failure {
        exit: Exit::OutsideFailed,
        what: format!("cannot use what `{}` names", flags.config.display()),
        cause: each.collect::<Vec<_>>().join("\n             "),
        hint: Some("run this as the user that is to run the proxy".to_owned()),
    }
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
