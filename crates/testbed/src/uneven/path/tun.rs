//! Ends of a link whose packets a program carries.

use crate::process::ioctl;
use std::fs::{File, OpenOptions};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use xtask::failure::{During, Failure};
use xtask::namespace::Namespace;

/// `O_NONBLOCK`
const NON_BLOCKING: rustix::fs::OFlags = rustix::fs::OFlags::NONBLOCK;

/// An interface of `namespace` that is one end of a link between two addresses; packets are read
/// from and written to the file.
pub(crate) fn interface(
    namespace: &Namespace,
    name: &str,
    here: Ipv4Addr,
    there: Ipv4Addr,
) -> Result<File, Failure> {
    let device = namespace.inside(|| {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .custom_flags(NON_BLOCKING.bits().cast_signed());
        let device = options.open("/dev/net/tun")?;
        ioctl::become_interface(&device, name)?;
        std::io::Result::Ok(device)
    })?;
    let device = device.during("make a TUN interface")?;
    namespace.ip(&format!("addr add {here} peer {there} dev {name}"))?;
    // a program that reads in turns must not lose what arrives between them
    namespace.ip(&format!("link set dev {name} txqueuelen 20000 up"))?;
    Ok(device)
}
