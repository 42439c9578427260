//! A client and machines of one service, each with a network stack of its own, on one Ethernet.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use xtask::namespace::Namespace;
use xtask::namespace::ethernet::{Ethernet, address, hardware};

/// The address of the service, which each machine has.
pub(crate) const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);

/// An address of no interface: frames to it are lost.
const NOWHERE: &str = "02:00:00:00:ff:ff";

/// One machine.
pub(crate) struct Machine {
    pub(crate) space: Namespace,
}

impl Machine {
    fn join(ethernet: &Ethernet, number: u8) -> Self {
        let space = ethernet.join(number).expect("a machine");
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
    address(number)
}

/// An IPv4 address.
pub(crate) fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address} is an IPv6 address"),
    }
}

/// The client is machine 1, the others have the service's address.
pub(crate) struct Network {
    _ethernet: Ethernet,
    pub(crate) client: Machine,
    pub(crate) machines: Vec<Machine>,
}

impl Network {
    pub(crate) fn make(machines: u8) -> Self {
        let ethernet = Ethernet::make().expect("a network");
        let client = Machine::join(&ethernet, 1);
        let machines: Vec<Machine> = (0..machines)
            .map(|number| Machine::join(&ethernet, number + 2))
            .collect();
        for machine in &machines {
            let address = format!("addr add {SERVICE}/32 dev lo");
            machine.space.ip(&address).expect("an address");
        }
        Self {
            _ethernet: ethernet,
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
