//! A client and machines of one service, each with a network stack of its own, on one Ethernet.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use xtask::namespace::Namespace;

/// The address of the service, which each machine has.
pub(crate) const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);

/// An address of no interface: frames to it are lost.
const NOWHERE: &str = "02:00:00:00:ff:ff";

/// One machine.
pub(crate) struct Machine {
    pub(crate) space: Namespace,
}

impl Machine {
    fn join(switch: &Namespace, number: u8) -> Self {
        let space = Namespace::make().expect("a namespace");
        let port = format!("p{number}");
        switch.link(&port, &space, "e0").expect("a link");
        switch
            .ip(&format!("link set {port} master bridge0 up"))
            .expect("a port of the bridge");
        let address = Ipv4Addr::new(10, 77, 0, number);
        for words in [
            format!("link set e0 address {}", hardware(number)),
            format!("addr add {address}/24 dev e0"),
            "link set e0 up".to_owned(),
        ] {
            space.ip(&words).expect("an interface");
        }
        for (setting, value) in [
            ("net/ipv4/conf/all/rp_filter", "0"),
            ("net/ipv4/conf/e0/rp_filter", "0"),
            ("net/ipv4/conf/all/arp_ignore", "1"),
            ("net/ipv4/conf/all/arp_announce", "2"),
        ] {
            space.set(setting, value).expect("a setting");
        }
        Self { space }
    }

    /// What it opens is in its network.
    pub(crate) fn run<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.space.inside(what).expect("its network")
    }

    pub(crate) fn listen(&self) -> TcpListener {
        self.run(|| TcpListener::bind((SERVICE, 0)).expect("a port"))
    }
}

/// The address that machine `number` has alone.
pub(crate) fn own_address(machine: usize) -> Ipv4Addr {
    let number = u8::try_from(machine + 2).expect("few machines");
    Ipv4Addr::new(10, 77, 0, number)
}

/// An IPv4 address.
pub(crate) fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address} is an IPv6 address"),
    }
}

/// The hardware address of the interface of machine `number`.
fn hardware(number: u8) -> String {
    format!("02:00:00:00:00:{number:02x}")
}

/// The client is machine 1, the others have the service's address.
pub(crate) struct Network {
    // the bridge is gone without it
    _switch: Namespace,
    pub(crate) client: Machine,
    pub(crate) machines: Vec<Machine>,
}

impl Network {
    pub(crate) fn make(machines: u8) -> Self {
        let switch = Namespace::make().expect("a namespace");
        for words in ["link add name bridge0 type bridge", "link set bridge0 up"] {
            switch.ip(words).expect("a bridge");
        }
        let client = Machine::join(&switch, 1);
        let machines: Vec<Machine> = (0..machines)
            .map(|number| Machine::join(&switch, number + 2))
            .collect();
        for machine in &machines {
            let address = format!("addr add {SERVICE}/32 dev lo");
            machine.space.ip(&address).expect("an address");
        }
        Self {
            _switch: switch,
            client,
            machines,
        }
    }

    /// A network without a front end, and a connection of the client to machine 0: both ends.
    pub(crate) fn connected() -> (Self, TcpStream, TcpStream) {
        let network = Self::make(2);
        network.lead_to(0);
        let (client, server) = network.connect();
        (network, client, server)
    }

    /// Machine 0 is the front end: what is sent to the service arrives there.
    pub(crate) fn with_front_end(machines: u8) -> Self {
        let network = Self::make(machines);
        let front_end = &network.machines[0].space;
        for words in [
            format!("addr del {SERVICE}/32 dev lo"),
            format!("addr add {SERVICE}/32 dev e0"),
        ] {
            front_end.ip(&words).expect("an address");
        }
        network
    }

    /// Packets of the client to the service arrive at this machine.
    pub(crate) fn lead_to(&self, machine: usize) {
        let number = u8::try_from(machine + 2).expect("few machines");
        self.lead(&hardware(number));
    }

    /// Packets of the client to the service are lost.
    pub(crate) fn lead_nowhere(&self) {
        self.lead(NOWHERE);
    }

    fn lead(&self, hardware: &str) {
        let words = format!("neigh replace {SERVICE} lladdr {hardware} dev e0 nud permanent");
        self.client.space.ip(&words).expect("a neighbour");
    }

    /// A connection of the client to machine 0: both ends.
    pub(crate) fn connect(&self) -> (TcpStream, TcpStream) {
        let listener = self.machines[0].listen();
        let address = listener.local_addr().expect("bound");
        let client = self.connect_to(address);
        let (server, _) = listener.accept().expect("a client");
        (client, server)
    }

    pub(crate) fn connect_to(&self, address: SocketAddr) -> TcpStream {
        let connect = || TcpStream::connect(address).expect("a connection");
        self.client.run(connect)
    }
}
