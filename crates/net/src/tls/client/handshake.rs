//! The handshake with a next hop.

use super::NextHopTls;
use super::certificate_refusal::certificate_refusal;
use super::tls_client::TlsClient;
use crate::tls::stream::HandshakeStop;
use crate::tls::variant_words::variant_words;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, Error};
use std::future::poll_fn;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use weir_semantics::ProxyError;

/// Bytes that a next hop may send for a handshake: chains of certificates have some KiB, with keys
/// and signatures that withstand quantum computers some ten.
const SERVER_BYTES_MAX: usize = 128 * 1024;

/// Why there is no TLS with a next hop.
#[derive(Debug)]
pub(crate) struct TlsFailure {
    /// As RFC 9209 §2.3 has it.
    pub(crate) error: ProxyError,
    /// What is wrong, behind the name of the next hop.
    pub(crate) text: String,
    /// It speaks none of the protocols that were offered.
    pub(crate) refuses_protocols: bool,
    /// Bytes that were received and sent.
    pub(crate) moved: (usize, usize),
}

/// Has the handshake with what `socket` is connected to, which must prove that it is `host`: a name
/// or an address, without brackets; it is to be complete by `until`. HTTP/2 is offered if it
/// `offers_http2`.
///
/// # Errors
///
/// It does not come about; the connection is closed, and nothing else was sent on it.
pub(crate) async fn handshake(
    client: &TlsClient,
    socket: TcpStream,
    (host, offers_http2): (&str, bool),
    until: Instant,
) -> Result<NextHopTls, TlsFailure> {
    let failed = |error, text| TlsFailure {
        error,
        text,
        refuses_protocols: false,
        moved: (0, 0),
    };
    let Ok(name) = ServerName::try_from(host.to_owned()) else {
        let text = "no certificate can be for such a name".to_owned();
        return Err(failed(ProxyError::TlsCertificateError, text));
    };
    let side = UnbufferedClientConnection::new(client.config(offers_http2).clone(), name);
    let side = side.map_err(|error| failed(ProxyError::TlsProtocolError, error.to_string()))?;
    let stream = NextHopTls::new(socket, side);
    stream.start();
    let mut read = 0;
    let done = poll_fn(|cx| stream.poll_handshake(cx, (&mut read, SERVER_BYTES_MAX)));
    let mut refuses_protocols = false;
    let (error, text) = match timeout_at(until, done).await {
        Ok(Ok(())) => return Ok(stream),
        Ok(Err(stop)) => {
            refuses_protocols = has_refused_protocols(&stop);
            reason(&stop)
        }
        Err(_) => (
            ProxyError::ConnectionTimeout,
            "its TLS handshake was not complete in time".to_owned(),
        ),
    };
    Err(TlsFailure {
        error,
        text,
        refuses_protocols,
        moved: (stream.take_received(), stream.take_sent()),
    })
}

fn has_refused_protocols(stop: &HandshakeStop) -> bool {
    let refused = AlertDescription::NoApplicationProtocol;
    matches!(stop, HandshakeStop::Failed(Error::AlertReceived(alert)) if *alert == refused)
}

fn reason(stop: &HandshakeStop) -> (ProxyError, String) {
    match stop {
        HandshakeStop::Disconnected => (
            ProxyError::TlsProtocolError,
            "it has closed the connection during the TLS handshake".to_owned(),
        ),
        HandshakeStop::TooLarge => (
            ProxyError::TlsProtocolError,
            format!("its TLS handshake is longer than {SERVER_BYTES_MAX} bytes"),
        ),
        HandshakeStop::Http => (
            ProxyError::TlsProtocolError,
            "it speaks HTTP in clear where TLS is expected".to_owned(),
        ),
        HandshakeStop::Failed(error) => match error {
            Error::InvalidCertificate(why) => (
                ProxyError::TlsCertificateError,
                format!("its certificate is refused: {}", certificate_refusal(why)),
            ),
            Error::NoCertificatesPresented => (
                ProxyError::TlsCertificateError,
                "it has no certificate".to_owned(),
            ),
            Error::AlertReceived(AlertDescription::NoApplicationProtocol) => (
                ProxyError::TlsAlertReceived,
                "it speaks none of the protocols that were offered (ALPN)".to_owned(),
            ),
            Error::AlertReceived(alert) => (
                ProxyError::TlsAlertReceived,
                format!("it has refused the TLS handshake: {}", variant_words(alert)),
            ),
            error => (
                ProxyError::TlsProtocolError,
                format!("the TLS handshake has failed: {error}"),
            ),
        },
    }
}
