//! nginx as an origin.
//!
//! It gets its listening socket from us, already bound and listening, by the variable it uses
//! itself when it replaces its own binary: no other process can take the port, and a
//! connection made before nginx is ready waits for it.

use super::{Issued, PATIENCE};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// A running nginx; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Nginx {
    child: Option<Child>,
    /// How often it was started.
    launches: usize,
    folder: TempDir,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Nginx {
    /// Starts one with these `location` blocks (or anything else a `server` block may hold).
    pub(crate) fn start(locations: &str) -> Self {
        Self::start_with("", locations)
    }

    /// Starts one with these directives of its `http` block, and these `location` blocks.
    pub(crate) fn start_with(http: &str, locations: &str) -> Self {
        Self::start_on("", http, locations)
    }

    /// Starts one that speaks TLS with this certificate, and has these `location` blocks.
    pub(crate) fn start_tls(issued: &Issued, locations: &str) -> Self {
        let (chain, key) = (issued.chain.display(), issued.key.display());
        let tls = format!("ssl_certificate {chain}; ssl_certificate_key {key};");
        Self::start_on(" ssl", "", &format!("{tls}\n{locations}"))
    }

    /// The same, which speaks HTTP/2, too.
    pub(crate) fn start_tls_http2(issued: &Issued, locations: &str) -> Self {
        let (chain, key) = (issued.chain.display(), issued.key.display());
        let tls = format!("ssl_certificate {chain}; ssl_certificate_key {key};");
        Self::start_on(" ssl http2", "", &format!("{tls}\n{locations}"))
    }

    /// Starts one that speaks HTTP/2 in clear and nothing else, with these `location` blocks.
    pub(crate) fn start_http2(locations: &str) -> Self {
        Self::start_on(" http2", "", locations)
    }

    /// Starts one to which each connection names a client, under TLS if there is a certificate.
    pub(crate) fn start_told(issued: Option<&Issued>, locations: &str) -> Self {
        let Some(issued) = issued else {
            return Self::start_on(" proxy_protocol", "", locations);
        };
        let (chain, key) = (issued.chain.display(), issued.key.display());
        let tls = format!("ssl_certificate {chain}; ssl_certificate_key {key};");
        Self::start_on(" ssl proxy_protocol", "", &format!("{tls}\n{locations}"))
    }

    fn start_on(tls: &str, http: &str, locations: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("www")).expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let text = CONFIG
            .replace("ADDRESS", &format!("{address}{tls}"))
            .replace("HTTP_DIRECTIVES", http)
            .replace("LOCATIONS", locations);
        std::fs::write(folder.path().join("nginx.conf"), text).expect("a file");
        let mut nginx = Self {
            child: None,
            launches: 0,
            folder,
            address,
        };
        nginx.launch(listener);
        nginx
    }

    fn launch(&mut self, listener: TcpListener) {
        listener
            .set_nonblocking(true)
            .expect("nginx expects it of what it inherits");
        let folder = self.folder.path();
        let mut command = Command::new("nginx");
        command
            .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
            .arg(folder)
            // the listener is its file descriptor 0
            .env("NGINX", "0;")
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.child = Some(start_program(&mut command, "nginx"));
        self.launches += 1;
    }

    /// Puts a file where nginx serves it.
    pub(crate) fn file(&self, path: &str, content: &[u8]) -> PathBuf {
        let file = self.path(path);
        let folder = file.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(&file, content).expect("a file");
        file
    }

    /// Where a file is.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("www").join(path)
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The URL of the whole, as a next hop.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same by TLS, under another name.
    pub(crate) fn https(&self, host: &str) -> String {
        format!("https://{host}:{}", self.address.port())
    }

    /// Ends it: from now on connections are refused.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            self.wait_until_it_ends_by_a_signal(&mut child);
            // killed outright, it would leave its worker behind
            let asked = Command::new("kill").arg(child.id().to_string()).status();
            if !asked.is_ok_and(|status| status.success()) {
                let _ended_already = child.kill();
            }
            let _ = child.wait();
        }
    }

    /// Until then it notes a signal, and waits for the next one.
    fn wait_until_it_ends_by_a_signal(&self, child: &mut Child) {
        let until = Instant::now() + PATIENCE;
        let is_ready = || self.errors().matches("start worker processes").count() >= self.launches;
        while !is_ready() && Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
            std::thread::yield_now();
        }
    }

    /// Starts it again on the same port.
    pub(crate) fn start_again(&mut self) {
        let listener = TcpListener::bind(self.address).expect("the port is still free");
        self.launch(listener);
    }

    /// Why it does not work, if it does not.
    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts a program, or fails naming its Debian package.
pub(crate) fn start_program(command: &mut Command, package: &str) -> Child {
    command.spawn().unwrap_or_else(|error| {
        let program = Path::new(command.get_program()).display();
        panic!("cannot start {program}: {error}; it is in Debian's package `{package}`")
    })
}

/// A worker of root's would not be root, and could not read our folder.
const CONFIG: &str = "
user root root;
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log notice;
events { worker_connections 2048; }
http {
    access_log off;
    default_type application/octet-stream;
    types { text/html html; text/plain txt; text/css css; text/javascript js; image/png png; }
    client_body_temp_path temp;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    client_max_body_size 0;
    keepalive_requests 100000;
    HTTP_DIRECTIVES
    server {
        listen ADDRESS;
        root www;
        location = /connection {
            add_header Cache-Control no-store;
            return 200 \"$connection $connection_requests\";
        }
        LOCATIONS
    }
}
";
