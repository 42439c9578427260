//! Workers, and file descriptors: what the process needs itself, and what is left for clients and
//! next hops.

use crate::config::{Config, DISK_BYTES_DEFAULT, Directory};
use crate::worker::content_in_queues::CLOSED_SOCKETS_MAX;

/// Descriptors that a worker has for itself: reactor, waker, listeners, pipes that wait for their
/// next use; and the sockets of closed connections whose content is in a file in memory.
const WORKER_DESCRIPTORS: u64 = 8 + CLOSED_SOCKETS_MAX as u64;

/// Descriptors for everything that is neither a worker nor serves clients: the admin interface and
/// its 32 connections, the resolver, the log, signals, standard streams.
const HOUSE_DESCRIPTORS: u64 = 48;

/// Fewest and most clients at once, if the configuration does not say.
const CLIENTS: std::ops::RangeInclusive<u64> = 16..=1 << 20;

/// Clients at once: as configured, or half of the descriptors that the process does not need
/// itself: the other half is for next hops.
pub(crate) fn clients_max(config: &Config) -> usize {
    if config.limits.clients_max > 0 {
        return config.limits.clients_max as usize;
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    clients_within(config, limit.current.unwrap_or(u64::MAX))
}

fn clients_within(config: &Config, descriptors: u64) -> usize {
    let half = descriptors.saturating_sub(own(config)) / 2;
    usize::try_from(half.clamp(*CLIENTS.start(), *CLIENTS.end())).unwrap_or(usize::MAX)
}

/// Threads that serve: as configured, or one a core.
pub(crate) fn worker_count(config: &Config) -> usize {
    match config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => usize::from(workers),
    }
}

/// Descriptors that the process needs itself.
fn own(config: &Config) -> u64 {
    HOUSE_DESCRIPTORS + WORKER_DESCRIPTORS * worker_count(config) as u64 + of_disk(config)
}

/// What is said at the start if descriptors do not suffice for the process itself and a few clients
/// with their next hops: the store on disk would take those of others once it is full.
pub(super) fn shortage(config: &Config) -> Option<String> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    shortage_within(config, limit.current?)
}

fn shortage_within(config: &Config, descriptors: u64) -> Option<String> {
    let (own, of_disk) = (own(config), of_disk(config));
    let needed = own + 2 * CLIENTS.start();
    (of_disk > 0 && descriptors < needed).then(|| {
        format!(
            "warning: {descriptors} files may be open, and {needed} are needed once the store on \
             disk is full, {of_disk} of them by it: then requests get 503; raise the limit \
             (`ulimit -n`, `LimitNOFILE`), or make the store smaller"
        )
    })
}

/// Those of the store on disk once it is full.
fn of_disk(config: &Config) -> u64 {
    if !config.disk.enabled || !config.cache.enabled {
        return 0;
    }
    let of_default = weir_disk::open_files_max(DISK_BYTES_DEFAULT);
    let of_directory = |it: &Directory| {
        let bytes = it.size.map_or(DISK_BYTES_DEFAULT, |size| size.bytes());
        weir_disk::open_files_max(bytes)
    };
    match &config.disk.directories[..] {
        [] => of_default,
        directories => directories.iter().map(of_directory).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_half_of_what_workers_and_the_store_leave() {
        let mut config = Config {
            workers: 2,
            ..Config::default()
        };
        config.disk.enabled = false;
        let left = 10_000 - HOUSE_DESCRIPTORS - 2 * WORKER_DESCRIPTORS;
        assert_eq!(clients_within(&config, 10_000) as u64, left / 2);
        config.disk.enabled = true;
        config.disk.directories = vec![Directory {
            path: "/a".into(),
            size: Some("64GiB".parse().expect("a size")),
        }];
        // 1024 segments of 64 MiB, each open twice
        let of_disk = weir_disk::open_files_max(64 << 30);
        assert!(of_disk >= 2048);
        assert_eq!(clients_within(&config, 10_000) as u64, (left - of_disk) / 2);
        assert_eq!(clients_within(&config, 1024), 16);
        let own = HOUSE_DESCRIPTORS + 2 * WORKER_DESCRIPTORS + of_disk;
        assert!(shortage_within(&config, own + 32).is_none());
        let said = shortage_within(&config, own + 31).expect("one is missing");
        assert!(said.contains(&format!("{of_disk} of them")), "{said}");
        config.disk.enabled = false;
        assert_eq!(shortage_within(&config, 64), None);
        config.limits.clients_max = 77;
        assert_eq!(clients_max(&config), 77);
    }
}
