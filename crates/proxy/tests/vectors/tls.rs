//! TLS on both sides of the proxy: one certificate, for the address that both listen at. No client
//! names a host in its handshake, so that any host may be in its requests.

use crate::client::WAIT_MAX;
use crate::doors::Http;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

/// The certificate, its key, and what clients and servers take from it.
pub(crate) struct Identity {
    _folder: TempDir,
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    client: ClientConfig,
    server: ServerConfig,
}

impl Identity {
    /// That of all tests.
    pub(crate) fn get() -> &'static Self {
        static IDENTITY: OnceLock<Identity> = OnceLock::new();
        IDENTITY.get_or_init(Self::make)
    }

    fn make() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key_pair = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([Ipv4Addr::LOCALHOST.to_string()]);
        let certificate = params.expect("an address").self_signed(&key_pair);
        let chain_pem = certificate.expect("a certificate").pem();
        let key_pem = key_pair.serialize_pem();
        let (chain, key) = (
            folder.path().join("chain.pem"),
            folder.path().join("key.pem"),
        );
        std::fs::write(&chain, &chain_pem).expect("a file");
        let mut file = OpenOptions::new();
        // a key that all can read is refused
        let file = file.write(true).create_new(true).mode(0o600).open(&key);
        let written = file.and_then(|mut file| file.write_all(key_pem.as_bytes()));
        written.expect("a file");
        let shown = CertificateDer::from_pem_slice(chain_pem.as_bytes()).expect("a certificate");
        let secret = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).expect("a key");
        let mut roots = RootCertStore::empty();
        roots.add(shown.clone()).expect("a certificate");
        let client = ClientConfig::builder().with_root_certificates(roots);
        let server = ServerConfig::builder().with_no_client_auth();
        Self {
            _folder: folder,
            chain,
            key,
            client: client.with_no_client_auth(),
            server: server.with_single_cert(vec![shown], secret).expect("a key"),
        }
    }

    /// A client that speaks this version alone.
    pub(crate) fn client(&self, speaks: Http) -> Arc<ClientConfig> {
        let mut config = self.client.clone();
        config.alpn_protocols = protocols(speaks);
        Arc::new(config)
    }

    /// A server that does.
    pub(crate) fn server(&self, speaks: Http) -> Arc<ServerConfig> {
        let mut config = self.server.clone();
        config.alpn_protocols = protocols(speaks);
        Arc::new(config)
    }
}

fn protocols(speaks: Http) -> Vec<Vec<u8>> {
    let protocol: &[u8] = match speaks {
        Http::One => b"http/1.1",
        Http::Two => b"h2",
    };
    vec![protocol.to_vec()]
}

/// The name that the certificate is for.
pub(crate) fn name() -> ServerName<'static> {
    ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST))
}

trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

/// A connection of HTTP/1.1, in clear or by TLS.
pub(crate) struct Socket {
    stream: Box<dyn ReadWrite>,
    raw: TcpStream,
}

impl Socket {
    /// That of a client.
    pub(crate) fn connect(address: SocketAddr, is_tls: bool) -> Self {
        let raw = TcpStream::connect(address).expect("the proxy listens");
        Self::of(raw, |raw| {
            is_tls.then(|| {
                let config = Identity::get().client(Http::One);
                let connection = ClientConnection::new(config, name()).expect("a client");
                Box::new(StreamOwned::new(connection, raw)) as Box<dyn ReadWrite>
            })
        })
    }

    /// That of a server.
    pub(crate) fn accepted(raw: TcpStream, is_tls: bool) -> Self {
        Self::of(raw, |raw| {
            is_tls.then(|| {
                let config = Identity::get().server(Http::One);
                let connection = ServerConnection::new(config).expect("a server");
                Box::new(StreamOwned::new(connection, raw)) as Box<dyn ReadWrite>
            })
        })
    }

    fn of(raw: TcpStream, tls: impl FnOnce(TcpStream) -> Option<Box<dyn ReadWrite>>) -> Self {
        raw.set_read_timeout(Some(WAIT_MAX)).expect("a limit");
        let clone = || raw.try_clone().expect("a descriptor");
        Self {
            stream: tls(clone()).unwrap_or_else(|| Box::new(clone())),
            raw,
        }
    }

    /// Sends nothing more, without an end of TLS.
    pub(crate) fn end_sending(&self) {
        let _ = self.raw.shutdown(Shutdown::Write);
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
