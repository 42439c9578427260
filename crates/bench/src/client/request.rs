//! How requests are written: in the three forms, the two versions, with and without conditions.

use weir_semantics::{Timestamp, write_http_date};
use weir_wire::{Version, write};
use weir_workload::{Http, Method, RequestType, Scenario, Site, WorkloadRequest};

use super::Form;
use crate::mark::{self, Id};

/// The content of a POST is this byte, so often as it is long.
const POSTED: u8 = b'p';

/// Writes the requests of a run.
#[derive(Debug)]
pub(super) struct Requests {
    version: Version,
    /// By server, before the path: `http://10.0.0.1:80`, `/s3`, or nothing.
    prefixes: Vec<String>,
    /// By server: the Host field.
    hosts: Vec<String>,
}

/// What differs between two requests for the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestDetails {
    pub(super) id: Id,
    pub(super) agent: u32,
    /// Request that the connection be kept.
    pub(super) keep: bool,
    /// `If-Modified-Since`.
    pub(super) modified_since: Option<Timestamp>,
}

impl Requests {
    /// `servers`: how many the site has.
    pub(super) fn new(scenario: &Scenario, form: &Form, servers: u32) -> Self {
        let version = match scenario.clients.http {
            Http::Http10 => Version::Http10,
            Http::Http11 => Version::Http11,
        };
        let numbers = 0..servers;
        let (prefixes, hosts) = match form {
            Form::Forward { servers } => servers
                .iter()
                .map(|server| (format!("http://{server}"), server.to_string()))
                .unzip(),
            Form::Gateway { authority } => numbers
                .map(|number| (format!("/s{number}"), authority.clone()))
                .unzip(),
            Form::Direct { servers } => servers
                .iter()
                .map(|server| (String::new(), server.to_string()))
                .unzip(),
        };
        Self {
            version,
            prefixes,
            hosts,
        }
    }

    /// Appends the request, its content included.
    pub(super) fn write(
        &self,
        site: &Site,
        ask: &WorkloadRequest,
        about: RequestDetails,
        out: &mut Vec<u8>,
    ) {
        let server = usize::try_from(ask.target.server).unwrap_or(usize::MAX);
        let (method, content_bytes) = match ask.method {
            Method::Get => ("GET ", None),
            Method::Head => ("HEAD ", None),
            Method::Post { content_bytes } => ("POST ", Some(content_bytes)),
        };
        out.extend_from_slice(method.as_bytes());
        out.extend_from_slice(self.prefixes[server].as_bytes());
        site.write_path(ask.target, out);
        out.push(b' ');
        out.extend_from_slice(self.version.as_str().as_bytes());
        out.extend_from_slice(b"\r\n");
        write::field(out, "Host", self.hosts[server].as_bytes());
        out.extend_from_slice(mark::FIELD.as_bytes());
        out.extend_from_slice(b": ");
        about.id.write(out);
        out.extend_from_slice(b"\r\n");
        match (self.version, about.keep) {
            (Version::Http10, true) => write::field(out, "Connection", b"keep-alive"),
            (Version::Http11, false) => write::field(out, "Connection", b"close"),
            _ => {}
        }
        self.write_kind(ask, about, out);
        if ask.cookie {
            write_cookie(about.agent, site.cookie_bytes(ask.target), out);
        }
        if let Some(bytes) = content_bytes {
            write::field(out, "Content-Type", b"application/octet-stream");
            write::number_field(out, "Content-Length", u64::from(bytes));
        }
        write::end_of_head(out);
        let bytes = usize::try_from(content_bytes.unwrap_or(0)).unwrap_or(0);
        out.resize(out.len() + bytes, POSTED);
    }

    fn write_kind(&self, ask: &WorkloadRequest, about: RequestDetails, out: &mut Vec<u8>) {
        match ask.kind {
            RequestType::Plain => {}
            RequestType::IfModifiedSince { .. } => {
                if let Some(since) = about.modified_since {
                    let mut date = [0; 29];
                    write_http_date(since, &mut date);
                    write::field(out, "If-Modified-Since", &date);
                }
            }
            RequestType::Reload => {
                write::field(out, "Cache-Control", b"no-cache");
                write::field(out, "Pragma", b"no-cache");
            }
        }
    }
}

/// Each agent has its own, which begins with its number and is as long as the site has it.
fn write_cookie(agent: u32, bytes: u64, out: &mut Vec<u8>) {
    const NAME: &[u8] = b"session=";
    out.extend_from_slice(b"Cookie: ");
    let begins = out.len();
    out.extend_from_slice(NAME);
    write::hexadecimal(out, u64::from(agent));
    let length = usize::try_from(bytes.min(COOKIE_BYTES_MAX)).unwrap_or(0);
    if out.len() < begins + length {
        out.resize(begins + length, b'c');
    }
    out.extend_from_slice(b"\r\n");
}

/// The longest cookie that browsers keep (RFC 6265 §6.1).
const COOKIE_BYTES_MAX: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_workload::Target;

    const ASK: WorkloadRequest = WorkloadRequest::plain(
        1,
        Target {
            server: 0,
            number: 3,
        },
    );

    fn written(
        form: &Form,
        assignments: &[&str],
        ask: &WorkloadRequest,
        about: RequestDetails,
    ) -> String {
        let mut scenario = Scenario::built_in("hits").expect("it comes with the program");
        for assignment in assignments {
            scenario.set(assignment).expect("a key");
        }
        let site = Site::new(&scenario, 1);
        let requests = Requests::new(&scenario, form, site.servers());
        let mut out = Vec::new();
        requests.write(&site, ask, about, &mut out);
        String::from_utf8(out).expect("text")
    }

    fn about(keep: bool) -> RequestDetails {
        RequestDetails {
            id: Id {
                phase: 1,
                share: 2,
                number: 255,
            },
            agent: 0x1f,
            keep,
            modified_since: None,
        }
    }

    fn forward() -> Form {
        Form::Forward {
            servers: vec!["10.0.0.1:8000".parse().expect("an address")],
        }
    }

    #[test]
    fn request_line_and_fields_follow_form_and_http_version() {
        let check = |form: &Form, assignments: &[&str], keep, expected: &str| {
            let found = written(form, assignments, &ASK, about(keep));
            assert_eq!(found, expected);
        };
        check(
            &forward(),
            &[],
            true,
            "GET http://10.0.0.1:8000/hit3.bin HTTP/1.1\r\nHost: 10.0.0.1:8000\r\nWeir-Bench: 1-2-ff\r\n\r\n",
        );
        let gateway = Form::Gateway {
            authority: "proxy:80".to_owned(),
        };
        check(
            &gateway,
            &[],
            false,
            "GET /s0/hit3.bin HTTP/1.1\r\nHost: proxy:80\r\nWeir-Bench: 1-2-ff\r\nConnection: close\r\n\r\n",
        );
        let direct = Form::Direct {
            servers: vec!["10.0.0.1:8000".parse().expect("an address")],
        };
        let old = ["clients.http=1.0"];
        check(
            &direct,
            &old,
            false,
            "GET /hit3.bin HTTP/1.0\r\nHost: 10.0.0.1:8000\r\nWeir-Bench: 1-2-ff\r\n\r\n",
        );
        check(
            &direct,
            &old,
            true,
            "GET /hit3.bin HTTP/1.0\r\nHost: 10.0.0.1:8000\r\nWeir-Bench: 1-2-ff\r\nConnection: keep-alive\r\n\r\n",
        );
    }

    #[test]
    fn condition_method_and_cookie_are_written_into_the_request() {
        let check = |ask: WorkloadRequest, about: RequestDetails, first: &str, rest: &str| {
            let found = written(&forward(), &[], &ask, about);
            let (line, fields) = found.split_once("\r\n").expect("a line");
            let (_, fields) = fields.split_once("1-2-ff\r\n").expect("a mark");
            assert_eq!((line.split(' ').next(), fields), (Some(first), rest));
        };
        let conditional = WorkloadRequest {
            kind: RequestType::IfModifiedSince { newer: true },
            ..ASK
        };
        let since = RequestDetails {
            modified_since: Some(Timestamp(784_111_777)),
            ..about(true)
        };
        check(
            conditional,
            since,
            "GET",
            "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
        );
        // a target without a date of modification cannot be requested so
        check(conditional, about(true), "GET", "\r\n");
        let reload = WorkloadRequest {
            kind: RequestType::Reload,
            cookie: true,
            ..ASK
        };
        check(
            reload,
            about(true),
            "GET",
            "Cache-Control: no-cache\r\nPragma: no-cache\r\nCookie: session=1f\r\n\r\n",
        );
        let head = WorkloadRequest {
            method: Method::Head,
            ..ASK
        };
        check(head, about(true), "HEAD", "\r\n");
        let post = WorkloadRequest {
            method: Method::Post { content_bytes: 3 },
            ..ASK
        };
        check(
            post,
            about(true),
            "POST",
            "Content-Type: application/octet-stream\r\nContent-Length: 3\r\n\r\nppp",
        );
    }

    #[test]
    fn cookie_is_padded_to_its_length_and_capped_at_4096_bytes() {
        let check = |bytes, expected: &str| {
            let mut out = Vec::new();
            write_cookie(7, bytes, &mut out);
            assert_eq!(String::from_utf8(out).expect("text"), expected);
        };
        check(0, "Cookie: session=7\r\n");
        check(12, "Cookie: session=7ccc\r\n");
        let mut out = Vec::new();
        write_cookie(7, u64::MAX, &mut out);
        assert_eq!(out.len(), "Cookie: \r\n".len() + 4096);
    }
}
