//! The socket of the admin interface: TCP, or a Unix socket that its owner alone can connect to.

use crate::config::AdminAddress;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Connections the kernel holds until they are accepted.
const BACKLOG: i32 = 128;

/// Owner only: every client of the socket can purge.
const SOCKET_MODE: u32 = 0o600;

/// A socket that listens.
#[derive(Debug)]
pub struct AdminSocket {
    pub(in crate::admin) listening: Listening,
    address: AdminAddress,
}

#[derive(Debug)]
pub(in crate::admin) enum Listening {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl AdminSocket {
    /// Listens at `address`; `None` if that is off. A Unix socket without a listener is replaced.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub fn bind(address: &AdminAddress) -> io::Result<Option<Self>> {
        Ok(match address {
            AdminAddress::Off => None,
            AdminAddress::At(address) => Some(bind_tcp(*address)?),
            AdminAddress::Unix(path) => Some(bind_unix(path)?),
        })
    }

    /// Where it listens: port 0 has become a number.
    #[must_use]
    pub const fn address(&self) -> &AdminAddress {
        &self.address
    }
}

/// As listeners are: an IPv6 address is for IPv6 alone.
fn bind_tcp(address: SocketAddr) -> io::Result<AdminSocket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    let listener = std::net::TcpListener::from(socket);
    Ok(AdminSocket {
        address: AdminAddress::At(listener.local_addr()?),
        listening: Listening::Tcp(listener),
    })
}

fn bind_unix(path: &Path) -> io::Result<AdminSocket> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // Linux gives the file the mode of the socket (unix(7)): it is never open to others, not even
    // for a moment
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(SOCKET_MODE))?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    socket.listen(BACKLOG)?;
    Ok(AdminSocket {
        address: AdminAddress::Unix(path.to_owned()),
        listening: Listening::Unix(socket.into()),
    })
}

/// Removes the socket of a process that has ended without doing so. What is no socket stays, and so
/// does one that answers: binding fails then.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Ok(()),
    }
}

/// The file of a Unix socket, removed when dropped, unless another has taken its place.
#[derive(Debug)]
pub(in crate::admin) struct SocketFile {
    path: PathBuf,
    /// Device and number.
    inode: (u64, u64),
}

impl SocketFile {
    pub(in crate::admin) fn of(address: &AdminAddress) -> Option<Self> {
        let AdminAddress::Unix(path) = address else {
            return None;
        };
        let inode = inode_of(path)?;
        let path = path.clone();
        Some(Self { path, inode })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if inode_of(&self.path) == Some(self.inode) {
            // what cannot be removed is replaced at the next start
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn inode_of(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(path: &Path) -> io::Result<Option<AdminSocket>> {
        AdminSocket::bind(&AdminAddress::Unix(path.to_owned()))
    }

    #[test]
    fn unix_socket_is_accessible_to_its_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        let socket = unix(&path).expect("bound").expect("on");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
        assert_eq!(
            socket.address().to_string(),
            format!("unix:{}", path.display())
        );
    }

    #[test]
    fn abandoned_socket_is_replaced_but_not_one_in_use_or_a_plain_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        let first = unix(&path).expect("bound");
        let taken = unix(&path).expect_err("in use");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        // as after kill -9: the file stays, without a listener
        drop(first);
        assert!(path.exists());
        unix(&path).expect("bound again");
        // what is no socket is not ours to remove
        let file = folder.path().join("file");
        fs::write(&file, "kept").expect("a file");
        unix(&file).expect_err("in the way");
        assert_eq!(fs::read_to_string(&file).expect("there"), "kept");
    }

    #[test]
    fn socket_file_bound_by_another_process_is_not_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        let address = AdminAddress::Unix(path.clone());
        let first = unix(&path).expect("bound");
        let file = SocketFile::of(&address).expect("there");
        drop(first);
        let moved = folder.path().join("moved");
        fs::rename(&path, &moved).expect("renamed");
        let _second = unix(&path).expect("bound");
        drop(file);
        assert!(path.exists());
        drop(SocketFile::of(&address));
        assert!(!path.exists());
    }
}
