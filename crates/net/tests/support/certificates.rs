//! Certificates that `openssl` issues, each its own authority.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The kind of a key.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "each test program uses its own part of this")]
pub(crate) enum KeyKind {
    Ecdsa,
    Rsa,
}

/// The files of a certificate, in PEM.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

impl Issued {
    /// Issues a certificate for `hosts` that is valid for a month, in files of `folder` that begin
    /// with `name`.
    pub(crate) fn new(folder: &Path, name: &str, hosts: &[&str], kind: KeyKind) -> Self {
        Self::made(folder, name, hosts, kind, "critical,CA:FALSE")
    }

    /// The same, as `openssl req -x509` makes it if nothing else is said: that of an authority.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn of_authority(folder: &Path, name: &str, hosts: &[&str]) -> Self {
        Self::made(folder, name, hosts, KeyKind::Ecdsa, "critical,CA:TRUE")
    }

    fn made(folder: &Path, name: &str, hosts: &[&str], kind: KeyKind, constraints: &str) -> Self {
        let issued = Self::files(folder, name);
        let (algorithm, option) = match kind {
            KeyKind::Ecdsa => ("ec", "ec_paramgen_curve:P-256"),
            KeyKind::Rsa => ("rsa", "rsa_keygen_bits:2048"),
        };
        let config = folder.join(format!("{name}.conf"));
        let text = format!(
            "[req]\ndistinguished_name = none\nx509_extensions = server\n[none]\n[server]\n\
             basicConstraints = {constraints}\nsubjectAltName = {}\n",
            alternatives(hosts)
        );
        std::fs::write(&config, text).expect("a file");
        openssl(&[
            "req",
            "-config",
            &config.to_string_lossy(),
            "-x509",
            "-nodes",
            "-days",
            "30",
            "-subj",
            &format!("/CN={name}"),
            "-newkey",
            algorithm,
            "-pkeyopt",
            option,
            "-keyout",
            &issued.key.to_string_lossy(),
            "-out",
            &issued.chain.to_string_lossy(),
        ]);
        issued
    }

    /// Where the files of such a certificate are.
    pub(crate) fn files(folder: &Path, name: &str) -> Self {
        Self {
            chain: folder.join(format!("{name}.pem")),
            key: folder.join(format!("{name}.key")),
        }
    }

    /// The same certificate, as it was issued for 2020 alone.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn expired(folder: &Path, host: &str) -> Self {
        Self::between(folder, host, ("20200101000000Z", "20210101000000Z"))
    }

    /// One that ends in 2020 and begins a year later.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn ending_before_it_begins(folder: &Path, host: &str) -> Self {
        Self::between(folder, host, ("20210101000000Z", "20200101000000Z"))
    }

    fn between(folder: &Path, host: &str, (begin, end): (&str, &str)) -> Self {
        let issued = Self::new(folder, "expired", &[host], KeyKind::Ecdsa);
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let config = format!(
            "[ca]\ndefault_ca = own\n[own]\ndatabase = {}\nserial = {}\nnew_certs_dir = {}\n\
             default_md = sha256\npolicy = any\nx509_extensions = names\n[any]\ncommonName = supplied\n\
             [names]\nsubjectAltName = DNS:{host}\n",
            path("index"),
            path("serial"),
            path("."),
        );
        std::fs::write(folder.join("ca.conf"), config).expect("a file");
        std::fs::write(folder.join("index"), "").expect("a file");
        std::fs::write(folder.join("serial"), "01\n").expect("a file");
        let key = issued.key.to_string_lossy();
        let request = ["req", "-new", "-subj", "/CN=x", "-key", &key, "-out"];
        openssl(&[&request[..], &[&path("csr")]].concat());
        openssl(&[
            "ca",
            "-batch",
            "-notext",
            "-selfsign",
            "-config",
            &path("ca.conf"),
            "-keyfile",
            &key,
            "-in",
            &path("csr"),
            "-startdate",
            begin,
            "-enddate",
            end,
            "-out",
            &issued.chain.to_string_lossy(),
        ]);
        issued
    }
}

fn alternatives(hosts: &[&str]) -> String {
    let each = hosts
        .iter()
        .map(|host| match host.parse::<std::net::IpAddr>() {
            Ok(_) => format!("IP:{host}"),
            Err(_) => format!("DNS:{host}"),
        });
    each.collect::<Vec<_>>().join(",")
}

fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("cannot start openssl: {error}; it is in Debian's package `openssl`")
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments:?}: {said}");
}
