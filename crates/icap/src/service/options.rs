//! The fields of an answer to OPTIONS (RFC 3507 §4.10.2).

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::client::answer::AnswerHead;
use crate::message::error::MessageError;
use crate::message::istag::{IsTag, IsTagError};
use crate::message::method::Method;
use crate::message::service_id::is_service_id;
use crate::service::transfer::{TransferKind, TransferLists, file_extension};

/// How long an answer without `Options-TTL` is valid: one hour. RFC 3507 sets no end.
pub const OPTIONS_TTL_DEFAULT: Duration = Duration::from_secs(3600);

/// The shortest time that an answer is valid, whatever its `Options-TTL`: one second. A service
/// cannot have OPTIONS sent before each message.
pub const OPTIONS_TTL_MIN: Duration = Duration::from_secs(1);

/// The longest time that an answer is valid, whatever its `Options-TTL`: one day.
pub const OPTIONS_TTL_MAX: Duration = Duration::from_secs(24 * 3600);

/// The most connections to a service, whatever its `Max-Connections`: 10000.
pub const MAX_CONNECTIONS_MAX: u32 = 10_000;

/// The most bytes of [`ServiceOptions::service`]; the rest is dropped.
pub const SERVICE_NAME_BYTES_MAX: usize = 256;

/// What a service can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceOptions {
    methods: Vec<Method>,
    istag: IsTag,
    preview_bytes: Option<u32>,
    max_connections: Option<NonZeroU32>,
    allows_204: bool,
    service: String,
    service_id: Option<String>,
    transfer: TransferLists,
    received: Duration,
    ttl: Duration,
}

impl ServiceOptions {
    /// Reads the head of [`ClientEvent::Options`](crate::ClientEvent::Options), which arrived at
    /// `received` on a clock that does not run backwards, from any origin.
    ///
    /// `preview_bytes_max` bounds [`preview_bytes`](Self::preview_bytes): it is that of
    /// [`Limits`](crate::Limits).
    ///
    /// # Errors
    ///
    /// `Methods` or `ISTag` is absent, or a field is malformed or contradicts another one.
    pub fn read(
        answer: &AnswerHead,
        received: Duration,
        preview_bytes_max: u32,
    ) -> Result<Self, MessageError> {
        let fields = answer.fields();
        let istag = answer.istag().cloned();
        let istag = istag.ok_or(MessageError::IsTag(IsTagError::Empty))?;
        let mut methods = Vec::new();
        for name in fields.members("Methods") {
            // a service may have methods of later documents, which are not used
            let method = Method::parse(name).filter(|&method| method != Method::Options);
            if let Some(method) = method
                && !methods.contains(&method)
            {
                methods.push(method);
            }
        }
        if methods.is_empty() {
            return Err(MessageError::FieldValue("Methods"));
        }
        let at_most =
            |bytes: u64, max: u32| u32::try_from(bytes).map_or(max, |bytes| bytes.min(max));
        let preview = fields.number("Preview")?;
        let max_connections = fields
            .number("Max-Connections")?
            .map(|count| {
                NonZeroU32::new(at_most(count, MAX_CONNECTIONS_MAX))
                    .ok_or(MessageError::FieldValue("Max-Connections"))
            })
            .transpose()?;
        let ttl = fields.number("Options-TTL")?.map(Duration::from_secs);
        let name = fields.single("Service")?.unwrap_or_default();
        let name = &name[..name.len().min(SERVICE_NAME_BYTES_MAX)];
        let service_id = fields.single("Service-ID")?.map(|value| {
            let text = core::str::from_utf8(value).unwrap_or_default();
            let text = is_service_id(text).then(|| String::from(text));
            text.ok_or(MessageError::FieldValue("Service-ID"))
        });
        Ok(Self {
            methods,
            istag,
            preview_bytes: preview.map(|bytes| at_most(bytes, preview_bytes_max)),
            max_connections,
            allows_204: fields.allows_204(),
            service: String::from_utf8_lossy(name).into_owned(),
            service_id: service_id.transpose()?,
            transfer: TransferLists::read(fields)?,
            received,
            ttl: ttl
                .unwrap_or(OPTIONS_TTL_DEFAULT)
                .clamp(OPTIONS_TTL_MIN, OPTIONS_TTL_MAX),
        })
    }

    /// Whether the service has this method.
    #[must_use]
    pub fn has_method(&self, method: Method) -> bool {
        self.methods.contains(&method)
    }

    /// The tag of the service's state at that time.
    #[must_use]
    pub const fn istag(&self) -> &IsTag {
        &self.istag
    }

    /// How many bytes of a preview the service needs; `None`: it takes no previews.
    #[must_use]
    pub const fn preview_bytes(&self) -> Option<u32> {
        self.preview_bytes
    }

    /// The most connections that the service takes, at most [`MAX_CONNECTIONS_MAX`]; `None`: it
    /// sets no limit.
    #[must_use]
    pub const fn max_connections(&self) -> Option<NonZeroU32> {
        self.max_connections
    }

    /// Whether the service answers 204 outside of previews, if the client allows it.
    #[must_use]
    pub const fn allows_204(&self) -> bool {
        self.allows_204
    }

    /// Name and version of the service, for people; empty if it has none. Bytes that are not UTF-8
    /// are replaced.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    /// The short label of the service, a token of at most
    /// [`SERVICE_ID_BYTES_MAX`](crate::SERVICE_ID_BYTES_MAX) bytes; `None`: it has none.
    #[must_use]
    pub fn service_id(&self) -> Option<&str> {
        self.service_id.as_deref()
    }

    /// Whether an answer comes from the state that these options describe. If not, they are to be
    /// requested again, and what the service made of older messages is stale (RFC 3507 §4.7).
    ///
    /// True for an answer without a tag.
    #[must_use]
    pub fn is_of_same_state(&self, answer: &AnswerHead) -> bool {
        answer.istag().is_none_or(|istag| *istag == self.istag)
    }

    /// How much of the content of this target (a path, or a URI, with or without a query) the
    /// service receives: that of the [`file_extension`] in its last segment.
    #[must_use]
    pub fn transfer_of_target(&self, target: &str) -> TransferKind {
        self.transfer(file_extension(target))
    }

    /// How much of a file with this extension (without its dot, in any case) the service receives.
    #[must_use]
    pub fn transfer(&self, extension: &str) -> TransferKind {
        match self.transfer.of(extension) {
            // a service that takes no previews has no other way to receive it
            TransferKind::Preview if self.preview_bytes.is_none() => TransferKind::Complete,
            kind => kind,
        }
    }

    /// Whether the answer is still valid at `now`, on the clock of its time of receipt.
    #[must_use]
    pub fn is_valid(&self, now: Duration) -> bool {
        now.saturating_sub(self.received) < self.ttl
    }

    /// When the answer ends to be valid.
    #[must_use]
    pub fn valid_until(&self) -> Duration {
        self.received.saturating_add(self.ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    const RECEIVED: Duration = Duration::from_secs(1000);

    fn read(lines: &str) -> Result<ServiceOptions, MessageError> {
        let head = format!("ICAP/1.0 200 OK\r\n{lines}\r\n");
        let answer = AnswerHead::parse(head.as_bytes(), &Limits::default())?;
        ServiceOptions::read(&answer, RECEIVED, 4096)
    }

    fn with(line: &str) -> Result<ServiceOptions, MessageError> {
        read(&format!("Methods: REQMOD\r\nISTag: \"a\"\r\n{line}"))
    }

    #[test]
    fn answer_of_the_rfc_is_read() {
        let options = read(concat!(
            "Date: Mon, 10 Jan 2000  09:55:21 GMT\r\n",
            "Methods: RESPMOD\r\n",
            "Service: FOO Tech Server 1.0\r\n",
            "Service-ID: FOO\r\n",
            "ISTag: \"W3E4R7U9-L2E4-2\"\r\n",
            "Encapsulated: null-body=0\r\n",
            "Max-Connections: 1000\r\n",
            "Options-TTL: 7200\r\n",
            "Allow: 204\r\n",
            "Preview: 2048\r\n",
            "Transfer-Complete: asp, bat, exe, com\r\n",
            "Transfer-Ignore: html\r\n",
            "Transfer-Preview: *\r\n",
        ))
        .unwrap();
        assert!(options.has_method(Method::Respmod) && !options.has_method(Method::Reqmod));
        assert_eq!(options.service(), "FOO Tech Server 1.0");
        assert_eq!(options.service_id(), Some("FOO"));
        assert_eq!(options.istag().as_str(), "W3E4R7U9-L2E4-2");
        assert_eq!(options.max_connections().map(NonZeroU32::get), Some(1000));
        assert_eq!(options.valid_until(), Duration::from_secs(8200));
        assert!(options.allows_204());
        assert_eq!(options.preview_bytes(), Some(2048));
        assert_eq!(options.transfer("exe"), TransferKind::Complete);
        assert_eq!(options.transfer("html"), TransferKind::Ignore);
        assert_eq!(options.transfer("gif"), TransferKind::Preview);
        let kind = options.transfer_of_target("http://e/a.HTML?b.exe");
        assert_eq!(kind, TransferKind::Ignore);
    }

    #[test]
    fn answer_with_another_tag_is_of_another_state() {
        let options = with("").unwrap();
        let answer = |tag: &str| {
            let head = format!("ICAP/1.0 204 No Content\r\n{tag}\r\n");
            AnswerHead::parse(head.as_bytes(), &Limits::default()).unwrap()
        };
        assert!(options.is_of_same_state(&answer("ISTag: \"a\"\r\n")));
        assert!(!options.is_of_same_state(&answer("ISTag: \"A\"\r\n")));
        assert!(options.is_of_same_state(&answer("")));
    }

    #[test]
    fn answer_is_valid_until_its_ttl_has_passed() {
        let options = with("Options-TTL: 60\r\n").unwrap();
        assert!(options.is_valid(RECEIVED));
        assert!(options.is_valid(Duration::from_millis(1_059_999)));
        assert!(!options.is_valid(Duration::from_secs(1060)));
        let zero = with("Options-TTL: 0\r\n").unwrap();
        assert_eq!(zero.valid_until(), RECEIVED + OPTIONS_TTL_MIN);
        let default = with("").unwrap();
        assert_eq!(default.valid_until(), RECEIVED + OPTIONS_TTL_DEFAULT);
        let capped = with("Options-TTL: 999999999999\r\n").unwrap();
        assert_eq!(capped.valid_until(), RECEIVED + OPTIONS_TTL_MAX);
    }

    #[test]
    fn numbers_are_capped() {
        let options = with("Preview: 99999999999\r\nMax-Connections: 99999999999\r\n").unwrap();
        assert_eq!(options.preview_bytes(), Some(4096));
        let connections = options.max_connections().map(NonZeroU32::get);
        assert_eq!(connections, Some(MAX_CONNECTIONS_MAX));
    }

    #[test]
    fn service_without_preview_receives_whole_files() {
        let options = with("Transfer-Preview: *\r\nTransfer-Ignore: gif\r\n").unwrap();
        assert_eq!(options.transfer("exe"), TransferKind::Complete);
        assert_eq!(options.transfer("gif"), TransferKind::Ignore);
        assert_eq!(with("").unwrap().transfer("exe"), TransferKind::Complete);
        let preview = with("Preview: 0\r\nTransfer-Preview: *\r\n").unwrap();
        assert_eq!(preview.transfer("exe"), TransferKind::Preview);
    }

    #[test]
    fn answer_without_methods_or_tag_and_malformed_fields_are_refused() {
        use MessageError::{FieldValue, IsTag, RepeatedField};
        for (lines, expected) in [
            ("ISTag: \"a\"\r\n", FieldValue("Methods")),
            (
                "ISTag: \"a\"\r\nMethods: OPTIONS\r\n",
                FieldValue("Methods"),
            ),
            ("ISTag: \"a\"\r\nMethods: LOGMOD\r\n", FieldValue("Methods")),
            ("Methods: REQMOD\r\n", IsTag(IsTagError::Empty)),
            (
                "Methods: REQMOD\r\nISTag: a\r\n",
                IsTag(IsTagError::Unquoted),
            ),
        ] {
            assert_eq!(read(lines), Err(expected), "{lines}");
        }
        for (line, expected) in [
            ("ISTag: \"b\"\r\n", RepeatedField("ISTag")),
            ("Preview: x\r\n", FieldValue("Preview")),
            ("Preview: 1\r\nPreview: 1\r\n", RepeatedField("Preview")),
            ("Max-Connections: 0\r\n", FieldValue("Max-Connections")),
            ("Max-Connections: -1\r\n", FieldValue("Max-Connections")),
            ("Options-TTL: 1h\r\n", FieldValue("Options-TTL")),
            ("Service-ID: a b\r\n", FieldValue("Service-ID")),
            ("Service-ID: \u{e9}\r\n", FieldValue("Service-ID")),
            ("Transfer-Ignore: *.gif\r\n", FieldValue("Transfer-Ignore")),
        ] {
            assert_eq!(with(line), Err(expected), "{line}");
        }
    }
}
