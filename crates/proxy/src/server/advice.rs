//! What an operator can do where the system refuses an address or a place: the hint of a failed
//! start.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// An address that cannot be listened on; `setting` is where another one is named.
pub(crate) fn of_address(
    address: Option<SocketAddr>,
    setting: &str,
    error: &io::Error,
) -> Option<String> {
    let port = address.map_or_else(String::new, |address| {
        format!("; `ss -ltnp sport = :{}` shows which", address.port())
    });
    match error.kind() {
        io::ErrorKind::AddrInUse => Some(format!(
            "another program listens there{port}: stop it, or name another address with {setting}"
        )),
        io::ErrorKind::PermissionDenied => Some(format!(
            "ports below 1024 need root or the capability CAP_NET_BIND_SERVICE: name a port from 1024 on with {setting}"
        )),
        io::ErrorKind::AddrNotAvailable => Some(format!(
            "no interface of this machine has the address (`ip address` lists them): name another one with {setting}"
        )),
        _ => None,
    }
}

/// A file or directory that cannot be used; `setting` is where another one is named.
pub(crate) fn of_place(path: &Path, setting: &str, error: &io::Error) -> Option<String> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new(".")).display();
    match error.kind() {
        io::ErrorKind::NotFound => Some(format!(
            "make the directory `{parent}` first, or name another place with {setting}"
        )),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => Some(format!(
            "a file is where a directory belongs: move it away, or name another place with {setting}"
        )),
        io::ErrorKind::IsADirectory => Some(format!(
            "a directory is where a file belongs: name a file in it with {setting}"
        )),
        io::ErrorKind::ReadOnlyFilesystem => Some(format!(
            "mount the file system of `{parent}` to be written, or name another place with {setting}"
        )),
        io::ErrorKind::PermissionDenied => Some(format!(
            "run this as the user that is to run the proxy, who must be allowed to write in `{parent}`; or name another place with {setting}"
        )),
        io::ErrorKind::StorageFull => Some(format!("make room on the file system of `{parent}`")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::ErrorKind;

    #[test]
    fn advice_names_the_remedy_for_each_error_kind() {
        let address = "127.0.0.1:80".parse().ok();
        for (kind, part) in [
            (ErrorKind::AddrInUse, "sport = :80"),
            (ErrorKind::PermissionDenied, "CAP_NET_BIND_SERVICE"),
            (ErrorKind::AddrNotAvailable, "ip address"),
        ] {
            let advice = of_address(address, "`--listen`", &kind.into()).expect("advice");
            assert!(
                advice.contains(part) && advice.contains("`--listen`"),
                "{advice}"
            );
        }
        let place = Path::new("/var/log/weir/access.log");
        for (kind, part) in [
            (ErrorKind::NotFound, "make the directory `/var/log/weir`"),
            (ErrorKind::NotADirectory, "a file is where a directory"),
            (ErrorKind::IsADirectory, "a directory is where a file"),
            (ErrorKind::PermissionDenied, "as the user"),
        ] {
            let advice = of_place(place, "`log.access`", &kind.into()).expect("advice");
            assert!(advice.contains(part), "{advice}");
        }
        assert_eq!(of_place(place, "", &ErrorKind::Other.into()), None);
    }
}
