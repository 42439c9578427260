//! Machines on one Ethernet, all on this one: network namespaces that are joined by a bridge.

use crate::failure::Failure;
use crate::namespace::Namespace;
use std::net::Ipv4Addr;

/// The device of each machine.
pub const DEVICE: &str = "e0";

/// A switch without machines. It is removed with the last of them.
#[derive(Debug)]
pub struct Ethernet {
    switch: Namespace,
}

/// The address that machine `number` has alone; its network has 24 bits.
#[must_use]
pub const fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number)
}

/// The hardware address of the device of machine `number`.
#[must_use]
pub fn hardware(number: u8) -> String {
    format!("02:00:00:00:00:{number:02x}")
}

impl Ethernet {
    /// # Errors
    /// As [`Namespace::make`].
    pub fn make() -> Result<Self, Failure> {
        let switch = Namespace::make()?;
        switch.ip("link add name bridge0 type bridge")?;
        switch.ip("link set bridge0 up")?;
        Ok(Self { switch })
    }

    /// One machine more. It says nothing on the network of addresses that it has on `lo`, and takes
    /// packets of any source.
    ///
    /// # Errors
    /// There is one of this number already.
    pub fn join(&self, number: u8) -> Result<Namespace, Failure> {
        let machine = Namespace::make()?;
        let port = format!("p{number}");
        self.switch.link(&port, &machine, DEVICE)?;
        self.switch
            .ip(&format!("link set {port} master bridge0 up"))?;
        machine.ip(&format!("link set {DEVICE} address {}", hardware(number)))?;
        machine.ip(&format!("addr add {}/24 dev {DEVICE}", address(number)))?;
        machine.ip(&format!("link set {DEVICE} up"))?;
        for (setting, value) in [
            ("net/ipv4/conf/all/rp_filter", "0"),
            ("net/ipv4/conf/e0/rp_filter", "0"),
            ("net/ipv4/conf/all/arp_ignore", "1"),
            ("net/ipv4/conf/all/arp_announce", "2"),
        ] {
            machine.set(setting, value)?;
        }
        Ok(machine)
    }
}
