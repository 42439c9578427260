//! `weir check`: is this config good, and what does it mean?

use crate::effective;
use crate::messages::{Failure, give, tell};
use crate::serve::flags::CheckFlags;
use crate::serve::flags::ServeFlags;
use weir_proxy::Unusable;
use weir_proxy::config::{AdminAddress, ByteSize, Config, MembersSource, ParentKind, TokenFile};

/// Reads and validates the file, tries the directories and files that it names, and prints `ok` and
/// a summary on stdout; on stderr what modules say of services that they cannot reach.
///
/// # Errors
///
/// What is wrong with the file (exit 2), or with what it names (exit 3), as a start would find it.
pub(crate) fn check(flags: &CheckFlags) -> Result<(), Failure> {
    let (config, warnings) = effective::load_with_warnings(&ServeFlags {
        config: Some(flags.config().to_owned()),
        ..ServeFlags::default()
    })?;
    warnings.iter().for_each(tell);
    let unusable = weir_proxy::try_places(&config);
    if !unusable.is_empty() {
        return Err(cannot_use(flags, &unusable));
    }
    give(&format!(
        "ok: {}\n{}",
        flags.config().display(),
        summary(&config)
    ))
}

fn cannot_use(flags: &CheckFlags, unusable: &[Unusable]) -> Failure {
    let each = unusable
        .iter()
        .map(|it| format!("{}: {}", it.what, it.cause));
    Failure::outside(
        format!("cannot use what `{}` names", flags.config().display()),
        each.collect::<Vec<_>>().join("\n             "),
    )
    .hint_if(hint(unusable))
}

/// What to do, each advice once; a cause may say it itself.
fn hint(unusable: &[Unusable]) -> Option<String> {
    let mut hints: Vec<&str> = Vec::new();
    for hint in unusable.iter().filter_map(|it| it.hint.as_deref()) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    (!hints.is_empty()).then(|| hints.join("\n      "))
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
    if let Some(node) = &config.cluster.node {
        let of = match &config.cluster.source {
            MembersSource::Config => config.cluster.members.len().to_string(),
            source => source.to_string(),
        };
        lines.push_str(&format!(
            "  node {node} of {of}, {}\n",
            config.cluster.policy
        ));
    } else if config.cluster.exists() {
        let (source, policy) = (&config.cluster.source, config.cluster.policy);
        lines.push_str(&format!("  a node of {source}, {policy}\n"));
    }
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
    lines.push_str(&describe_parents(config));
    lines.push_str(&describe_links(config));
    if !config.rules.is_empty() {
        lines.push_str(&format!("  rules {}\n", config.rules.len()));
    }
    let cache = describe_cache(config, config.disk.enabled);
    lines.push_str(&format!("  cache {cache}\n"));
    lines.push_str(&describe_disk(config));
    lines
}

/// The links by name, with what bounds them, a line each.
fn describe_links(config: &Config) -> String {
    let each = config.links.iter().map(|link| {
        let rate = link.rate.as_ref().map(|rate| format!(", {rate}"));
        let quota = link.quota.zip(link.period);
        let quota = quota.map(|(bytes, period)| format!(", {bytes} a {period}"));
        let windows = match link.windows.len() {
            0 => String::new(),
            1 => ", 1 window".to_owned(),
            several => format!(", {several} windows"),
        };
        format!(
            "  link {}{}{}{windows}\n",
            link.name,
            rate.unwrap_or_default(),
            quota.unwrap_or_default()
        )
    });
    each.collect()
}

/// Where stored responses are on disk and how many bytes they may take, a line a directory.
fn describe_disk(config: &Config) -> String {
    let disk = &config.disk;
    if !disk.enabled || !config.cache.enabled {
        return "  disk off\n".to_owned();
    }
    let size = |size: Option<ByteSize>| match size {
        Some(size) => size.to_string(),
        None => "10GiB or a tenth of the free space".to_owned(),
    };
    if disk.directories.is_empty() {
        let size = size(None);
        return format!("  disk {size} in the user's cache directory\n");
    }
    let each = disk.directories.iter().map(|directory| {
        let size = size(directory.size);
        format!("  disk {size} in {}\n", directory.path.display())
    });
    each.collect()
}

/// How many parents and siblings there are, in a line; empty without.
fn describe_parents(config: &Config) -> String {
    let count = |kind: ParentKind| {
        let mut all = config
            .parents
            .iter()
            .filter(|it| it.kind == kind)
            .peekable();
        let is_named = all.peek().is_some();
        let named = all.filter(|it| it.url.is_some()).count();
        is_named.then(|| format!("{kind}s {named}"))
    };
    let counts: Vec<String> = ParentKind::ALL.into_iter().filter_map(count).collect();
    if counts.is_empty() {
        return String::new();
    }
    format!("  {}\n", counts.join(", "))
}

/// What and how much the cache keeps, in a few words; there may be directories on disk, too.
pub(crate) fn describe_cache(config: &Config, has_disk: bool) -> String {
    let cache = &config.cache;
    if !cache.enabled {
        return "off, nothing is stored".to_owned();
    }
    let newcomer_max_bytes = weir_proxy::newcomer_max_bytes(config);
    let larger = if has_disk && config.disk.largest_response.bytes() > newcomer_max_bytes {
        ", larger ones only on disk"
    } else {
        ", larger ones are not stored"
    };
    format!(
        "{} in memory, {}, {}, responses up to {}{larger}",
        cache.memory,
        cache.eviction,
        cache.profile,
        rounded_down(newcomer_max_bytes)
    )
}

/// As people read it: whole units of 1024, of which there are at least ten or which are the
/// smallest.
fn rounded_down(bytes: u64) -> ByteSize {
    let unit_bits = [30, 20, 10].into_iter().find(|bits| bytes >> bits >= 10);
    let bits = unit_bits.unwrap_or(0);
    ByteSize::from_bytes(bytes >> bits << bits)
}
