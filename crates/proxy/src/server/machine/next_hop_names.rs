//! Names of next hops that have no address when a configuration is read. That is no mistake of the
//! file: a name may be there later, and a start must not depend on a name server.

use crate::config::{Config, Invalid, NextHopUrl};
use crate::server::run::resolver_config;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;
use weir_measure::Counters;
use weir_net::resolver::{ResolveError, Resolver};

/// Names that are looked up; of further ones nothing is said.
const NAMES_MAX: usize = 256;

/// The next hops whose names do not resolve now. Waits for name servers for `limits.dns` at most,
/// for all names together, and not at all where each next hop is an address.
#[must_use]
pub fn next_hop_warnings(config: &Config) -> Vec<Invalid> {
    let hops = named_hops(config);
    let names: BTreeSet<&str> = hops.iter().map(|(_, url)| url.host.as_str()).collect();
    let names: Vec<String> = names
        .into_iter()
        .take(NAMES_MAX)
        .map(str::to_owned)
        .collect();
    let unresolved = unresolved(config, names);
    let warnings = hops.into_iter().filter_map(|(key, url)| {
        let name = url.host.as_str();
        let (_, why) = unresolved
            .iter()
            .find(|(unresolved, _)| unresolved == name)?;
        Some(Invalid::new(
            key,
            format!("`{url}`: the name `{name}` does not resolve: {why}"),
            "requests get 502 (`dns_error`) until it does; see whether the name is right, and \
             `[dns] servers`",
        ))
    });
    warnings.collect()
}

/// The next hops that are no addresses, each with its key.
fn named_hops(config: &Config) -> Vec<(String, &NextHopUrl)> {
    let of_routes = config.routes.iter().enumerate().flat_map(|(route, it)| {
        let hops = it.next_hops.iter().enumerate();
        hops.map(move |(hop, url)| (format!("route[{route}].next_hops[{hop}]"), url))
    });
    let parents = config.parents.iter().enumerate();
    let parents = parents.filter_map(|(parent, it)| {
        let url = it.url.as_ref()?;
        Some((format!("parent[{parent}].url"), url))
    });
    let all = of_routes.chain(parents);
    all.filter(|(_, url)| url.host.ip().is_none()).collect()
}

/// Those of the names that have no address, and why.
fn unresolved(config: &Config, names: Vec<String>) -> Vec<(String, ResolveError)> {
    if names.is_empty() {
        return Vec::new();
    }
    let mut settings = resolver_config(config);
    settings.lookups_max = NAMES_MAX;
    // without threads and descriptors to find out there is nothing to say
    let Ok(resolver) = Resolver::start(settings, Arc::new(Counters::new())) else {
        return Vec::new();
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let Ok(runtime) = runtime.enable_time().build() else {
        return Vec::new();
    };
    runtime.block_on(async {
        let mut lookups = JoinSet::new();
        for name in names {
            let resolver = resolver.clone();
            lookups.spawn(async move {
                let found = resolver.resolve(&name).await;
                found.err().map(|why| (name, why))
            });
        }
        lookups.join_all().await.into_iter().flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(hops: &[&str]) -> Vec<String> {
        let mut config = Config::default();
        // no name server is asked
        config.dns.servers = vec!["127.0.0.1:9".parse().expect("an address")];
        config.limits.dns = "300ms".parse().expect("a time");
        config.routes = vec![crate::config::Route {
            next_hops: hops
                .iter()
                .map(|hop| hop.parse().expect("a next hop"))
                .collect(),
            ..crate::config::Route::default()
        }];
        let found = next_hop_warnings(&config).into_iter();
        found.map(|warning| warning.to_string()).collect()
    }

    #[test]
    fn next_hop_whose_name_has_no_address_is_named_with_its_key() {
        let addresses = ["http://127.0.0.1", "http://localhost:81", "https://[::1]"];
        assert_eq!(warnings(&addresses), [""; 0]);
        let found = warnings(&["http://127.0.0.1", "http://nowhere.invalid:81"]);
        assert_eq!(found.len(), 1, "{found:?}");
        let expected = "`route[0].next_hops[1]`: `http://nowhere.invalid:81`: the name `nowhere.invalid` does not resolve: ";
        assert!(found[0].starts_with(expected), "{found:?}");
    }
}
