//! The target URI of a request (RFC 9110 §7.1).
//!
//! The canonical form is that of `weir-semantics`, so that a trace and the live cache agree which
//! targets are the same. What that refuses (and real clients sent all the same) still needs a name
//! here: it is taken as it stands, host in lower case, fragment removed.

use weir_semantics::{
    Authority, FieldLine, Form, HostName, Method, Scheme, Target, canonical_target, line_named,
};

use crate::TraceScheme;

/// What a source says about the target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TargetForm<'a> {
    /// A request target in any of its forms, as in a request line.
    Line(&'a str),
    /// A whole URI, as a log or an archive has it. It keeps its spelling but for the fragment, so
    /// that a file with a number of different URIs has as many targets.
    Uri(&'a str),
}

/// The request line and where it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTarget<'a> {
    /// The method as received.
    pub(crate) method: &'a str,
    /// The target.
    pub(crate) target: TargetForm<'a>,
    /// The scheme where the target does not say it.
    pub(crate) scheme: TraceScheme,
    /// Host and port where neither the target nor `Host` says them: the server's address.
    pub(crate) default_authority: &'a str,
}

/// A target URI and its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetUri {
    /// The scheme; `None` if it is neither of ours or not said (CONNECT).
    pub(crate) scheme: Option<TraceScheme>,
    /// `scheme://host:port`, the port always written; for a CONNECT, whose scheme is not known,
    /// `//host:port`.
    pub(crate) origin: String,
    /// The URI, without fragment and without the scheme's own port; for a CONNECT `host:port`.
    pub(crate) text: String,
    /// Where path and query begin in `text`.
    path_start: usize,
}

impl TargetUri {
    /// Path and query.
    pub(crate) fn path_and_query(&self) -> &str {
        &self.text[self.path_start..]
    }
}

impl RequestTarget<'_> {
    /// The target URI; `fields` for `Host`.
    pub(crate) fn target_uri(&self, fields: &[FieldLine<'_>]) -> TargetUri {
        let raw = match self.target {
            TargetForm::Uri(uri) => return as_spelt(uri.split('#').next().unwrap_or_default()),
            TargetForm::Line(target) => target.split('#').next().unwrap_or_default(),
        };
        let method = Method::parse(self.method);
        let scheme = match self.scheme {
            TraceScheme::Http => Scheme::Http,
            TraceScheme::Https => Scheme::Https,
        };
        let mut host = HostName::EMPTY;
        if let Ok(default) = Authority::parse(self.default_authority)
            && let Ok((target, form)) =
                canonical_target(method, raw, fields, false, &default, scheme, &mut host)
        {
            return canonical(&target, form);
        }
        self.as_it_stands(raw, fields)
    }

    /// What to call a target that has no canonical form.
    fn as_it_stands(&self, raw: &str, fields: &[FieldLine<'_>]) -> TargetUri {
        let host = || match line_named(fields, "host").map(str::from_utf8) {
            Some(Ok(host)) if !host.trim().is_empty() => host.trim(),
            _ => self.default_authority,
        };
        let (scheme, authority, path) = match split(raw) {
            Some((scheme, authority, path)) => (scheme.to_ascii_lowercase(), authority, path),
            None => (self.scheme.as_str().to_owned(), host(), raw),
        };
        let authority = authority.to_ascii_lowercase();
        let known = TraceScheme::from_word(&scheme);
        let origin = with_port(&scheme, &authority, known);
        let slash = if path.starts_with('/') { "" } else { "/" };
        let text = format!("{scheme}://{authority}{slash}{path}");
        TargetUri {
            scheme: known,
            path_start: scheme.len() + 3 + authority.len(),
            origin,
            text,
        }
    }
}

/// Scheme, authority without userinfo, and the rest of a URI, as they are spelt.
fn split(uri: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = uri.split_once("://")?;
    if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    Some((
        scheme,
        authority.rsplit('@').next().unwrap_or_default(),
        path,
    ))
}

/// A URI whose text stays what it is.
fn as_spelt(uri: &str) -> TargetUri {
    let (scheme, authority, path) = split(uri).unwrap_or(("", "", uri));
    let scheme = scheme.to_ascii_lowercase();
    let known = TraceScheme::from_word(&scheme);
    TargetUri {
        scheme: known,
        origin: with_port(&scheme, &authority.to_ascii_lowercase(), known),
        path_start: uri.len() - path.len(),
        text: uri.to_owned(),
    }
}

/// `scheme://authority` with a port, if it is known which.
fn with_port(scheme: &str, authority: &str, known: Option<TraceScheme>) -> String {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    let port = match known {
        Some(TraceScheme::Http) if !has_port => ":80",
        Some(TraceScheme::Https) if !has_port => ":443",
        _ => "",
    };
    format!("{scheme}://{authority}{port}")
}

fn canonical(target: &Target<'_>, form: Form) -> TargetUri {
    let scheme = match target.scheme {
        Scheme::Http => TraceScheme::Http,
        Scheme::Https => TraceScheme::Https,
    };
    let origin = format!("{}:{}", target.host, target.port);
    if form == Form::Authority {
        return TargetUri {
            scheme: None,
            path_start: origin.len(),
            origin: format!("//{origin}"),
            text: origin,
        };
    }
    let mut authority = Vec::new();
    target.write_authority(&mut authority);
    let authority = String::from_utf8_lossy(&authority);
    // `OPTIONS *` is about the server: its URI has no path (RFC 9112 §3.3)
    let path = match form {
        Form::Asterisk => "",
        _ => target.path_and_query,
    };
    let scheme_text = scheme.as_str();
    TargetUri {
        scheme: Some(scheme),
        origin: format!("{scheme_text}://{origin}"),
        path_start: scheme_text.len() + 3 + authority.len(),
        text: format!("{scheme_text}://{authority}{path}"),
    }
}
