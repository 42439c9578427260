//! Properties of a stream, in the words of Envoy's attributes, which filters are written for.

use super::StreamData;
use std::net::IpAddr;
use weir_extend::{Call, ListenerMode};
use weir_wasm::Pairs;

/// What is known of a request beside its fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) client: Option<IpAddr>,
    pub(crate) mode: Option<ListenerMode>,
}

impl Facts {
    /// What a call of a module tells of its request.
    pub(crate) fn of(call: &Call) -> Self {
        Self {
            client: Some(call.client),
            mode: Some(call.mode),
        }
    }
}

/// A property: its path with dots, its form, what it is, and how its value is made.
pub(crate) struct Property {
    pub(crate) path: &'static str,
    pub(crate) form: &'static str,
    pub(crate) help: &'static str,
    value: fn(&mut StreamData) -> Option<Vec<u8>>,
}

const fn property(
    path: &'static str,
    form: &'static str,
    help: &'static str,
    value: fn(&mut StreamData) -> Option<Vec<u8>>,
) -> Property {
    Property {
        path,
        form,
        help,
        value,
    }
}

/// All but the fields of the two heads, and those of the filter itself (`plugin_name`, …).
pub(crate) static PROPERTIES: [Property; 13] = [
    property("request.path", "string", "Path and query.", |it| {
        request(it, b":path")
    }),
    property("request.url_path", "string", "The path.", |it| {
        Some(split_path(it)?.0)
    }),
    property("request.query", "string", "The query, without `?`.", |it| {
        Some(split_path(it)?.1)
    }),
    property(
        "request.host",
        "string",
        "Host and port, as in `:authority`.",
        |it| request(it, b":authority"),
    ),
    property("request.scheme", "string", "`http`.", |it| {
        request(it, b":scheme")
    }),
    property("request.method", "string", "The method.", |it| {
        request(it, b":method")
    }),
    property(
        "request.protocol",
        "string",
        "`HTTP/1.1`: the one that requests are sent with.",
        |_| Some(b"HTTP/1.1".to_vec()),
    ),
    property("request.referer", "string", "The field Referer.", |it| {
        request(it, b"referer")
    }),
    property(
        "request.useragent",
        "string",
        "The field User-Agent.",
        |it| request(it, b"user-agent"),
    ),
    property(
        "response.code",
        "integer, 8 bytes",
        "The status code.",
        |it| {
            let status = it.response.fields.read()?.get(b":status")?;
            let status: u64 = str::from_utf8(status).ok()?.parse().ok()?;
            Some(status.to_le_bytes().to_vec())
        },
    ),
    property(
        "source.address",
        "string",
        "The address of the client, with port 0: modules are not told the port.",
        |it| {
            let text = match it.facts.client? {
                IpAddr::V4(ip) => format!("{ip}:0"),
                IpAddr::V6(ip) => format!("[{ip}]:0"),
            };
            Some(text.into_bytes())
        },
    ),
    property(
        "connection.mtls",
        "1 byte",
        "0: clients do not use TLS.",
        |_| Some(vec![0]),
    ),
    property(
        "weir.listener",
        "string",
        "`forward` or `gateway`: how the listener takes requests.",
        |it| {
            let mode = match it.facts.mode? {
                ListenerMode::Forward => "forward",
                ListenerMode::Gateway => "gateway",
            };
            Some(mode.into())
        },
    ),
];

/// Properties of a field of a head: the path that comes before its name.
pub(crate) const FIELD_PATHS: [&str; 2] = ["request.headers", "response.headers"];

fn request(stream: &mut StreamData, name: &[u8]) -> Option<Vec<u8>> {
    field(stream.request.fields.read(), name)
}

fn field(fields: Option<&Pairs>, name: &[u8]) -> Option<Vec<u8>> {
    fields?.get(name).map(<[u8]>::to_vec)
}

fn split_path(stream: &mut StreamData) -> Option<(Vec<u8>, Vec<u8>)> {
    let path = request(stream, b":path")?;
    let end = path.iter().position(|byte| *byte == b'?');
    let (path, query) = match end {
        Some(end) => (&path[..end], &path[end + 1..]),
        None => (&path[..], &b""[..]),
    };
    Some((path.to_vec(), query.to_vec()))
}

/// The value of a property; segments of its path have a NUL between them.
pub(crate) fn value(path: &[u8], stream: &mut StreamData) -> Option<Vec<u8>> {
    let mut known = PROPERTIES.iter();
    if let Some(property) = known.find(|property| is_path(property.path, path)) {
        return (property.value)(stream);
    }
    let end = path.iter().rposition(|byte| *byte == 0)?;
    let (map, name) = (&path[..end], &path[end + 1..]);
    let [of_request, of_response] = FIELD_PATHS.map(|known| is_path(known, map));
    match (of_request, of_response) {
        (true, _) => field(stream.request.fields.read(), name),
        (_, true) => field(stream.response.fields.read(), name),
        _ => None,
    }
}

/// Whether the proxy has this property, so that a filter cannot set it.
pub(crate) fn is_own(path: &[u8]) -> bool {
    let mut known = PROPERTIES.iter().map(|property| property.path);
    known.any(|known| is_path(known, path))
        || FIELD_PATHS.iter().any(|known| {
            let map = path.get(..known.len());
            map.is_some_and(|map| is_path(known, map)) && path.get(known.len()) == Some(&0)
        })
}

/// Whether a path with dots is one with NULs.
fn is_path(dotted: &str, path: &[u8]) -> bool {
    dotted.len() == path.len()
        && dotted
            .bytes()
            .zip(path)
            .all(|(expected, found)| match expected {
                b'.' => *found == 0,
                expected => *found == expected,
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&[u8]>) {
        let mut stream = StreamData::default();
        let request = [
            (":path", "/a?b=1"),
            (":authority", "a.example"),
            ("x-a", "1"),
        ];
        *stream.request.fields.begin() = Pairs::of(request).expect("room");
        stream.response.fields.keep(404, b"X-B: 2\r\n", 1);
        stream.facts.client = Some(IpAddr::from([127, 0, 0, 1]));
        let path = path.replace('.', "\0");
        assert_eq!(value(path.as_bytes(), &mut stream).as_deref(), expected);
    }

    #[test]
    fn properties_come_from_the_heads_and_the_connection() {
        check("request.path", Some(b"/a?b=1"));
        check("request.url_path", Some(b"/a"));
        check("request.query", Some(b"b=1"));
        check("request.host", Some(b"a.example"));
        check("request.headers.x-a", Some(b"1"));
        check("request.headers.x-b", None);
        check("response.headers.x-b", Some(b"2"));
        check("response.code", Some(&[0x94, 1, 0, 0, 0, 0, 0, 0]));
        check("source.address", Some(b"127.0.0.1:0"));
        check("request.referer", None);
        check("request", None);
        check("xds.node", None);
    }

    #[test]
    fn property_of_the_proxy_is_not_the_filters_to_set() {
        for path in ["request\0path", "response\0code", "request\0headers\0x-a"] {
            assert!(is_own(path.as_bytes()), "{path}");
        }
        for path in ["my_state", "request", "request\0headers", "xrequest\0path"] {
            assert!(!is_own(path.as_bytes()), "{path}");
        }
    }
}
