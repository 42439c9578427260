//! A request as a server receives it (RFC 3507 §4.3.2).

use crate::limits::Limits;
use crate::message::encapsulated::{Encapsulated, ListKind};
use crate::message::error::MessageError;
use crate::message::fields::IcapFields;
use crate::message::method::Method;
use crate::message::service_uri::ServiceUri;
use crate::message::start_line::parse_request_line;

/// The ICAP head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    method: Method,
    service: ServiceUri,
    fields: IcapFields,
    preview: Option<u32>,
    list: Encapsulated,
}

impl RequestHead {
    /// Reads a whole head.
    pub(crate) fn parse(head: &[u8], limits: &Limits) -> Result<Self, MessageError> {
        let line_end = head.windows(2).position(|pair| pair == b"\r\n");
        let (line, section) = head.split_at(line_end.unwrap_or(head.len()));
        let (method, service) = parse_request_line(line)?;
        let fields = IcapFields::parse(section.get(2..).unwrap_or_default(), &limits.icap_head)?;
        if fields.single("Host")?.is_none_or(<[u8]>::is_empty) {
            return Err(MessageError::MissingHost);
        }
        let (kind, list) = match method {
            Method::Options => {
                let list = fields.encapsulated()?.unwrap_or(Encapsulated::BARE);
                (ListKind::Bare, list)
            }
            Method::Reqmod => (ListKind::ReqmodRequest, fields.required_encapsulated()?),
            Method::Respmod => (ListKind::RespmodRequest, fields.required_encapsulated()?),
        };
        list.check(kind).map_err(MessageError::Encapsulated)?;
        fields.check_framing(list != Encapsulated::BARE)?;
        let preview = match fields.number("Preview")? {
            Some(bytes) => {
                let bytes = u32::try_from(bytes).map_err(|_| MessageError::PreviewTooLarge)?;
                if bytes > limits.preview_bytes_max {
                    return Err(MessageError::PreviewTooLarge);
                }
                Some(bytes)
            }
            None => None,
        };
        Ok(Self {
            method,
            service,
            fields,
            preview,
            list,
        })
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The service.
    #[must_use]
    pub const fn service(&self) -> &ServiceUri {
        &self.service
    }

    /// The fields.
    #[must_use]
    pub const fn fields(&self) -> &IcapFields {
        &self.fields
    }

    /// How many bytes the preview has at most; `None`: there is no preview. Clients announce one
    /// for a message without content too, so that 204 is allowed.
    #[must_use]
    pub const fn preview(&self) -> Option<u32> {
        self.preview
    }

    /// Whether content follows; it may be empty.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.list.has_content()
    }

    /// Whether 204 may be the answer at any time.
    #[must_use]
    pub fn allows_204(&self) -> bool {
        self.fields.allows_204()
    }

    /// The parts of the message.
    pub(crate) const fn list(&self) -> &Encapsulated {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::encapsulated::EncapsulatedError;
    use weir_wire::HeadError;

    fn check(method: &str, lines: &str, expected: Result<(), MessageError>) {
        let head = format!("{method} icap://e/s ICAP/1.0\r\n{lines}\r\n");
        let result = RequestHead::parse(head.as_bytes(), &Limits::default());
        assert_eq!(result.map(|_| ()), expected, "{head}");
    }

    #[test]
    fn request_has_host_and_the_parts_of_its_method() {
        use MessageError as E;
        let list = |error| Err(E::Encapsulated(error));
        check("OPTIONS", "Host: e\r\n", Ok(()));
        check(
            "OPTIONS",
            "Host: e\r\nEncapsulated: null-body=0\r\n",
            Ok(()),
        );
        check(
            "OPTIONS",
            "Host: e\r\nEncapsulated: opt-body=0\r\n",
            list(EncapsulatedError::PartNotAllowed),
        );
        check("OPTIONS", "", Err(E::MissingHost));
        check("OPTIONS", "Host:\r\n", Err(E::MissingHost));
        check(
            "OPTIONS",
            "Host: e\r\nhost: e\r\n",
            Err(E::RepeatedField("Host")),
        );
        check(
            "OPTIONS",
            "Host : e\r\n",
            Err(E::Head(HeadError::SpaceInName)),
        );
        let reqmod = "Host: e\r\nEncapsulated: req-hdr=0, req-body=9\r\n";
        check("REQMOD", reqmod, Ok(()));
        check("REQMOD", "Host: e\r\n", list(EncapsulatedError::Missing));
        check("RESPMOD", reqmod, list(EncapsulatedError::PartNotAllowed));
        check(
            "REQMOD",
            &format!("{reqmod}Encapsulated: req-hdr=0, req-body=9\r\n"),
            Err(E::RepeatedField("Encapsulated")),
        );
        check("REQMOD", &format!("{reqmod}Preview: 65536\r\n"), Ok(()));
        let large = Err(E::PreviewTooLarge);
        check("REQMOD", &format!("{reqmod}Preview: 65537\r\n"), large);
        check("REQMOD", &format!("{reqmod}Preview: 4294967296\r\n"), large);
        let framing = Err(E::FramingField);
        check("REQMOD", &format!("{reqmod}Content-Length: 0\r\n"), framing);
        check(
            "REQMOD",
            &format!("{reqmod}Transfer-Encoding: chunked\r\n"),
            framing,
        );
    }
}
