//! The effective config: defaults, then the file, then the flags; checked as a whole.

use crate::disk_size::DiskSize;
use crate::file::Document;
use crate::messages::{Failure, tell};
use crate::serve::flags::ServeFlags;
use std::net::SocketAddr;
use weir_proxy::config::{
    Config, Directory, Disk, Invalid, Listener, MEMORY_MIN, Mistakes, Mode, Route,
};
use weir_proxy::{certificate_warnings, check_certificates, check_modules, state_file_warnings};

/// Reads the file the flags name, if any, and applies the flags. A reload is the same call again.
///
/// # Errors
///
/// A failure of kind bad usage: nothing was started, and nothing is half applied.
pub(crate) fn load(flags: &ServeFlags) -> Result<Config, Failure> {
    load_checked(flags, validate)
}

/// The same, where the modules are not tried.
///
/// # Errors
///
/// As of [`load`].
pub(crate) fn load_without_modules(flags: &ServeFlags) -> Result<Config, Failure> {
    load_checked(flags, Config::mistakes)
}

/// The same, where this machine is to run it: more than it has is refused too. Warnings are told.
///
/// # Errors
///
/// As of [`load`].
pub(crate) fn load_for_this_machine(flags: &ServeFlags) -> Result<Config, Failure> {
    let config = load_checked(flags, |config| {
        and_then(validate(config), || weir_proxy::check_machine(config))
    })?;
    warnings(&config, flags).iter().for_each(tell);
    Ok(config)
}

/// What a valid config is probably not meant to be, a line or two each.
fn warnings(config: &Config, flags: &ServeFlags) -> Vec<String> {
    let mut found = config.warnings();
    found.extend(certificate_warnings(config));
    found.extend(state_file_warnings(config));
    let is_default_disk = config.disk.enabled && config.disk.directories.is_empty();
    if found.is_empty() && !is_default_disk {
        return Vec::new();
    }
    // read a second time, as few have any
    let document = flags.config.as_deref().map(Document::read);
    let document = document.and_then(Result::ok);
    let states = |key: &str| document.as_ref().is_some_and(|it| it.states(key));
    if is_default_disk && states("disk.directories") {
        found.push(Invalid {
            key_path: "disk.directories".to_owned(),
            reason: "an empty list is the default: the user's cache directory".to_owned(),
            hint: "`enabled = false` in `[disk]` keeps nothing on disk; or leave this line out"
                .to_owned(),
        });
    }
    described(&found, document.as_ref())
}

/// The next hops whose names do not resolve now, each in a line or two. Name servers are waited for
/// as long as `limits.dns` says.
pub(crate) fn next_hop_warnings(config: &Config, flags: &ServeFlags) -> Vec<String> {
    let found = weir_proxy::next_hop_warnings(config);
    if found.is_empty() {
        return Vec::new();
    }
    let document = flags.config.as_deref().map(Document::read);
    described(&found, document.and_then(Result::ok).as_ref())
}

/// Warnings with the places where the file states their keys.
fn described(found: &[Invalid], document: Option<&Document>) -> Vec<String> {
    let text = |invalid: &Invalid| match document {
        Some(document) => document.warning(invalid),
        None => format!("warning: {invalid}\nhint: {}", invalid.hint),
    };
    found.iter().map(text).collect()
}

/// The same, and its warnings with what its modules say is wrong outside of it.
///
/// # Errors
///
/// As of [`load_for_this_machine`].
pub(crate) fn load_with_warnings(flags: &ServeFlags) -> Result<(Config, Vec<String>), Failure> {
    let mut all = Vec::new();
    let config = load_checked(flags, |config| {
        let checked = and_then(config.mistakes(), || weir_proxy::check_machine(config));
        let checked = and_then(checked, || check_certificates(config));
        and_then(checked, || {
            all = weir_proxy::module_warnings(config, &crate::serve::kinds::kinds())?;
            Ok(())
        })
    })?;
    let mut found = warnings(&config, flags);
    found.append(&mut all);
    found.extend(next_hop_warnings(&config, flags));
    Ok((config, found))
}

/// Refuses what no machine could run, modules that cannot be loaded among it.
fn validate(config: &Config) -> Mistakes {
    let checked = and_then(config.mistakes(), || check_certificates(config));
    and_then(checked, || {
        check_modules(config, &crate::serve::kinds::kinds())
    })
}

/// The mistakes, or what a check finds that needs a configuration without any.
fn and_then(mut mistakes: Mistakes, check: impl FnOnce() -> Result<(), Invalid>) -> Mistakes {
    if mistakes.is_empty() {
        mistakes.note(check());
    }
    mistakes
}

fn load_checked(
    flags: &ServeFlags,
    check: impl FnOnce(&Config) -> Mistakes,
) -> Result<Config, Failure> {
    let document = flags.config.as_deref().map(Document::read).transpose()?;
    let mut config = match &document {
        Some(document) => document.parse()?,
        None => Config::default(),
    };
    apply(&mut config, flags)?;
    follow_memory(&mut config, document.as_ref());
    let mistakes = check(&config);
    if mistakes.is_empty() {
        return Ok(config);
    }
    let each = mistakes.described().iter();
    let failures = each.map(|invalid| blame(invalid, flags, &config, document.as_ref()));
    Err(Failure::join(failures.collect(), mistakes.more()))
}

fn apply(config: &mut Config, flags: &ServeFlags) -> Result<(), Failure> {
    if let Some(listeners) = listeners(config, flags)? {
        config.listeners = listeners;
    }
    if !flags.origin.is_empty() {
        config.routes = vec![Route {
            next_hops: flags.origin.clone(),
            ..Route::default()
        }];
    }
    if let Some(address) = &flags.admin {
        config.admin.address = address.clone();
    }
    if let Some(size) = flags.memory {
        config.cache.memory = size;
    }
    apply_disk(&mut config.disk, flags)?;
    if let Some(count) = flags.workers {
        config.workers = count;
    }
    if let Some(target) = &flags.access_log {
        config.log.access = target.clone();
    }
    if let Some(format) = flags.log_format {
        config.log.format = format;
    }
    let access = &mut config.access;
    access.clients.extend(&flags.allow_client);
    access.allow_destinations.extend(&flags.allow_destination);
    Ok(())
}

/// One directory instead of those in the file, if the flags mean any; or none at all.
fn apply_disk(disk: &mut Disk, flags: &ServeFlags) -> Result<(), Failure> {
    let size = match flags.disk {
        Some(DiskSize::Off) => {
            disk.enabled = false;
            return Ok(());
        }
        Some(DiskSize::Bytes(size)) => Some(size),
        None => None,
    };
    let path = match &flags.disk_dir {
        Some(path) => std::path::absolute(path).ok(),
        None if size.is_some() => weir_proxy::default_disk_path(),
        None => return Ok(()),
    };
    let path = path.ok_or_else(|| {
        Failure::usage(
            "cannot use `--disk` with a size",
            "neither XDG_CACHE_HOME nor HOME says where the user's cache is",
        )
        .hint("say where with `--disk-dir PATH`")
    })?;
    disk.enabled = true;
    disk.directories = vec![Directory { path, size }];
    Ok(())
}

/// The listeners instead of the file's, if the flags mean any.
///
/// `--origin` makes gateways of them. Without it `--listen` moves the file's listeners and keeps
/// what they are.
fn listeners(config: &Config, flags: &ServeFlags) -> Result<Option<Vec<Listener>>, Failure> {
    let with_mode = |addresses: &[SocketAddr], mode: Mode| {
        let before = config.listeners.iter();
        let before: Vec<_> = before.filter(|it| it.mode == mode.into()).collect();
        let listener = |(index, &address): (usize, &SocketAddr)| Listener {
            address,
            mode: mode.into(),
            name: before.get(index).and_then(|it| it.name.clone()),
            tls: None,
            http2: None,
            proxy_protocol: Vec::new(),
        };
        Some(addresses.iter().enumerate().map(listener).collect())
    };
    let gateways = count(config, Mode::Gateway);
    if !flags.origin.is_empty() {
        return Ok(match (flags.listen.is_empty(), gateways) {
            (false, _) => with_mode(&flags.listen, Mode::Gateway),
            (true, 0) => with_mode(&[GATEWAY_ADDRESS_DEFAULT], Mode::Gateway),
            (true, _) => None,
        });
    }
    match (
        flags.listen.as_slice(),
        gateways,
        count(config, Mode::Forward),
    ) {
        ([], _, _) => Ok(None),
        (addresses, 0, _) => Ok(with_mode(addresses, Mode::Forward)),
        (addresses, _, 0) => Ok(with_mode(addresses, Mode::Gateway)),
        _ => Err(Failure::usage(
            "cannot use `--listen` with this config file",
            "the file has forward and gateway listeners, and the flag does not say which to be",
        )
        .hint("change the addresses in the file, or use `--origin` as well")),
    }
}

/// 8080 is the usual second port of HTTP; loopback, as everything is by default.
const GATEWAY_ADDRESS_DEFAULT: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::LOCALHOST,
    8080,
));

fn count(config: &Config, mode: Mode) -> usize {
    let listeners = config.listeners.iter();
    listeners
        .filter(|listener| listener.mode == mode.into())
        .count()
}

/// A smaller memory with an unstated largest response is no contradiction: the default gives way.
fn follow_memory(config: &mut Config, document: Option<&Document>) {
    let cache = &mut config.cache;
    let stated = || document.is_some_and(|document| document.states("cache.largest_response"));
    let is_memory_refused = cache.memory < MEMORY_MIN;
    if cache.largest_response > cache.memory && !is_memory_refused && !stated() {
        cache.largest_response = cache.memory;
    }
}

/// Says where the value at fault came from: a flag, a line of the file, or the defaults.
fn blame(
    invalid: &Invalid,
    flags: &ServeFlags,
    config: &Config,
    document: Option<&Document>,
) -> Failure {
    let failure = |cause: String| {
        Failure::usage("cannot use this configuration", cause)
            .hint(invalid.hint.replace("`enabled = false`", "`--disk off`"))
    };
    if let Some(address) = listens_on_admin(invalid, flags, config) {
        return failure(format!("`--listen`: {address} is the admin interface's"));
    }
    match (flag_of(&invalid.key_path, flags, config), document) {
        (Some(flag), _) => failure(format!("`{flag}`: {}", invalid.reason)),
        (None, Some(document)) => document.contradiction(invalid),
        (None, None) => failure(invalid.to_string()),
    }
}

/// The address of `--listen` that is the admin interface's too, if that is the fault and no flag
/// moved the interface there.
fn listens_on_admin(invalid: &Invalid, flags: &ServeFlags, config: &Config) -> Option<SocketAddr> {
    let admin = config.admin.address.socket()?;
    let is_fault = invalid.key_path == "admin.address" && flags.admin.is_none();
    (is_fault && flags.listen.contains(&admin)).then_some(admin)
}

/// The flag that gave the value of this key, if one did.
fn flag_of(key_path: &str, flags: &ServeFlags, config: &Config) -> Option<&'static str> {
    if allows_client(key_path, flags, config) {
        return Some("--allow-client");
    }
    let given = [
        ("listener", "--listen", !flags.listen.is_empty()),
        ("listener", "--origin", !flags.origin.is_empty()),
        ("route", "--origin", !flags.origin.is_empty()),
        ("admin.address", "--admin", flags.admin.is_some()),
        ("cache.memory", "--memory", flags.memory.is_some()),
        ("disk.directories", "--disk-dir", flags.disk_dir.is_some()),
        ("disk.directories", "--disk", flags.disk.is_some()),
        ("workers", "--workers", flags.workers.is_some()),
    ];
    given
        .into_iter()
        .find(|(key, flag, given)| {
            let is_size = key_path.ends_with(".size");
            *given && key_path.starts_with(key) && !(is_size && *flag == "--disk-dir")
        })
        .map(|(_, flag, _)| flag)
}

/// Whether the key is all clients, of which `--allow-client` has added some, or one that it has
/// added: those stand behind the file's.
fn allows_client(key_path: &str, flags: &ServeFlags, config: &Config) -> bool {
    if key_path == "access.clients" && !flags.allow_client.is_empty() {
        return true;
    }
    let index = key_path.strip_prefix("access.clients[");
    let index = index.and_then(|rest| rest.strip_suffix(']')?.parse::<usize>().ok());
    let of_file = config.access.clients.len() - flags.allow_client.len();
    index.is_some_and(|index| index >= of_file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn check(arguments: &str, expected: Result<&str, &str>) {
        let command = format!("weir serve {arguments}");
        let cli = crate::flags::Cli::try_parse_from(command.split_whitespace()).unwrap();
        let crate::flags::Command::Serve(flags) = cli.command else {
            panic!("not serve");
        };
        let found = load(&flags)
            .map(|config| {
                let listeners: Vec<String> = config
                    .listeners
                    .iter()
                    .map(|listener| format!("{} {}", listener.mode, listener.address))
                    .collect();
                listeners.join(", ")
            })
            .map_err(|failure| failure.cause);
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expected, "{arguments}");
    }

    #[test]
    fn listen_flag_sets_the_address_and_origin_flag_selects_gateway_mode() {
        check("", Ok("forward 127.0.0.1:3128"));
        check("--listen 127.0.0.1:1", Ok("forward 127.0.0.1:1"));
        check("--origin http://a", Ok("gateway 127.0.0.1:8080"));
        check(
            "--origin http://a --listen 127.0.0.1:1 --listen [::1]:1",
            Ok("gateway 127.0.0.1:1, gateway [::1]:1"),
        );
    }

    #[test]
    fn listen_flag_leaves_the_listeners_of_its_mode_their_names() {
        let listener = |name: &str, mode: &str| {
            let address = "127.0.0.1:0";
            serde_json::json!({"address": address, "mode": mode, "name": name})
        };
        let three = [
            listener("peers", "peer"),
            listener("lan", "forward"),
            listener("office", "forward"),
        ];
        let config = Config {
            listeners: serde_json::from_value(three.into()).expect("listeners"),
            ..Config::default()
        };
        let flags = ServeFlags {
            listen: vec!["127.0.0.1:1".parse().expect("an address")],
            ..ServeFlags::default()
        };
        let moved = listeners(&config, &flags).expect("flags").expect("moved");
        let names: Vec<_> = moved.iter().map(|it| it.name.as_deref()).collect();
        assert_eq!(names, [Some("lan")]);
    }

    #[test]
    fn error_names_the_flag_or_key_with_the_bad_value() {
        check(
            "--listen 127.0.0.1:1 --listen 127.0.0.1:1",
            Err("`--listen`: 127.0.0.1:1 is already taken by the listener on 127.0.0.1:1"),
        );
        check(
            "--memory 1KiB",
            Err("`--memory`: 1KiB is less than the minimum, 1MiB"),
        );
        check(
            "--origin http://127.0.0.1:8080",
            Err(
                "`--origin`: http://127.0.0.1:8080 is a listener of this proxy: requests would go round",
            ),
        );
        check(
            "--listen 127.0.0.1:3129",
            Err("`--listen`: 127.0.0.1:3129 is the admin interface's"),
        );
        check(
            "--listen 127.0.0.1:1 --admin 127.0.0.1:1",
            Err("`--admin`: the listener on 127.0.0.1:1 already takes it"),
        );
    }

    #[test]
    fn allow_client_flag_is_named_where_it_would_open_the_proxy_or_has_no_effect() {
        check(
            "--listen 0.0.0.0:1 --allow-client 10.0.0.0/8",
            Ok("forward 0.0.0.0:1"),
        );
        check(
            "--listen 0.0.0.0:1 --allow-client 10.0.0.0/8 --allow-client 0.0.0.0/0",
            Err(
                "`--allow-client`: 0.0.0.0/0 makes the forward listener on 0.0.0.0:1 an open proxy",
            ),
        );
        check(
            "--origin http://a --allow-client 10.0.0.0/8",
            Err(
                "`--allow-client`: it is for clients of forward listeners, and there is none: no client would be \
                 denied",
            ),
        );
    }

    #[test]
    fn too_small_disk_is_reported_under_its_flag_with_a_flag_as_hint() {
        check(
            "--disk 1MiB --disk-dir /tmp/store",
            Err("`--disk`: 1MiB is less than the minimum, 16MiB"),
        );
        let arguments = [
            "weir",
            "serve",
            "--disk",
            "1MiB",
            "--disk-dir",
            "/tmp/store",
        ];
        let cli = crate::flags::Cli::try_parse_from(arguments).unwrap();
        let crate::flags::Command::Serve(flags) = cli.command else {
            panic!("not serve");
        };
        let hint = load(&flags).unwrap_err().hint.unwrap();
        assert_eq!(hint, "use at least \"16MiB\", or `--disk off`");
    }

    #[test]
    fn memory_flag_below_the_default_is_accepted_by_itself() {
        check("--memory 32MiB", Ok("forward 127.0.0.1:3128"));
    }
}
