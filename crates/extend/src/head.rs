//! The heads of a request and of a response, as a module sees and changes them.

use crate::answer::{StatusError, is_free_standing};
use crate::coding::Codings;
use crate::content::{Transform, TransformError};
use crate::head_fields::HeadFields;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use core::cell::OnceCell;
use core::fmt;
use weir_semantics::{HostName, RequestDirectives, ResponseDirectives, is_token};

/// Most bytes of the tag of a variant.
const VARIANT_BYTES_MAX: usize = 64;

/// Most bytes of a target that a module sets.
const TARGET_BYTES_MAX: usize = 16 * 1024;

/// The head of a request.
///
/// Its method and version stay what they are. At [`Hook::RequestReceived`] the target may be
/// changed: the proxy then judges the request anew, with its rules of access and its key.
///
/// [`Hook::RequestReceived`]: crate::Hook::RequestReceived
pub struct RequestHead<'h> {
    method: Cow<'h, str>,
    /// The authority, or the host alone if there is a port.
    host: HeadHost<'h>,
    port: Option<u16>,
    /// Both, once they were read.
    host_and_port: OnceCell<String>,
    path_and_query: Cow<'h, str>,
    target_is_changed: bool,
    /// The field lines.
    pub fields: HeadFields<'h>,
    keeps_content: bool,
    has_content: bool,
    transform: Option<Box<dyn Transform>>,
    variant: Option<String>,
}

/// The host of a head. One that the proxy has is read as text only if a module asks for it.
#[derive(Clone, Debug)]
enum HeadHost<'h> {
    Text(Cow<'h, str>),
    Name(&'h HostName),
}

impl HeadHost<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Name(name) => name.as_str(),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Name(name) => name.as_bytes(),
        }
    }
}

impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.method)
            .field("authority", &self.authority())
            .field("path_and_query", &self.path_and_query)
            .field("fields", &self.fields)
            .field("is_transformed", &self.transform.is_some())
            .field("variant", &self.variant)
            .finish_non_exhaustive()
    }
}

/// Why the tag of a variant is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantError;

impl fmt::Display for VariantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the tag of a variant is a token (RFC 9110 section 5.6.2) of at most \
             {VARIANT_BYTES_MAX} bytes"
        )
    }
}

impl core::error::Error for VariantError {}

/// Why a target is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetError;

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a path begins with `/`, a target has printable ASCII only, no `#`, and at most \
             {TARGET_BYTES_MAX} bytes"
        )
    }
}

impl core::error::Error for TargetError {}

impl<'h> RequestHead<'h> {
    /// The head of a request for `path_and_query` of `authority`, a host with its port if that is
    /// not the default one.
    #[inline]
    pub fn new(
        method: &'h str,
        authority: &'h str,
        path_and_query: &'h str,
        fields: impl Into<HeadFields<'h>>,
    ) -> Self {
        Self {
            method: Cow::Borrowed(method),
            host: HeadHost::Text(Cow::Borrowed(authority)),
            port: None,
            host_and_port: OnceCell::new(),
            path_and_query: Cow::Borrowed(path_and_query),
            target_is_changed: false,
            fields: fields.into(),
            keeps_content: false,
            has_content: false,
            transform: None,
            variant: None,
        }
    }

    /// The head of a request for `path_and_query` of `host`, without a port.
    #[inline]
    pub fn of_host(
        method: &'h str,
        host: &'h HostName,
        path_and_query: &'h str,
        fields: impl Into<HeadFields<'h>>,
    ) -> Self {
        let mut head = Self::new(method, "", path_and_query, fields);
        head.host = HeadHost::Name(host);
        head
    }

    /// The same with this port; the authority has none yet.
    #[must_use]
    pub const fn with_port(mut self, port: u16) -> Self {
        self.set_port(port);
        self
    }

    /// Gives the authority this port; it has none yet.
    #[inline]
    pub const fn set_port(&mut self, port: u16) {
        self.port = Some(port);
    }

    /// The same for a request that has content, if `has_content`.
    #[must_use]
    pub const fn with_content(mut self, has_content: bool) -> Self {
        self.has_content = has_content;
        self
    }

    /// The same of a request that had `no-transform` when it was received, if `keeps_content`.
    #[must_use]
    pub const fn keeping_content(mut self, keeps_content: bool) -> Self {
        self.keeps_content = keeps_content;
        self
    }

    /// Whether the request has `no-transform`, or had it when it was received: a module cannot
    /// take that back. The fields are read for that.
    #[must_use]
    pub fn keeps_content(&self) -> bool {
        let mut directives = RequestDirectives::default();
        for value in self.fields.now_and_before("cache-control") {
            directives.add_line(value);
        }
        self.keeps_content || directives.no_transform
    }

    /// Whether content follows.
    #[must_use]
    pub const fn has_content(&self) -> bool {
        self.has_content
    }

    /// A copy as it is now, to undo changes. It has no transform.
    #[must_use]
    pub fn saved(&self) -> Self {
        Self {
            method: self.method.clone(),
            host: self.host.clone(),
            port: self.port,
            host_and_port: self.host_and_port.clone(),
            path_and_query: self.path_and_query.clone(),
            target_is_changed: self.target_is_changed,
            fields: self.fields.clone(),
            keeps_content: self.keeps_content,
            has_content: self.has_content,
            transform: None,
            variant: self.variant.clone(),
        }
    }

    /// The same head, which holds all that it is made of.
    #[must_use]
    pub fn into_owned(self) -> RequestHead<'static> {
        let keeps_content = self.keeps_content();
        RequestHead {
            method: Cow::Owned(self.method.into_owned()),
            host: HeadHost::Text(Cow::Owned(self.host.as_str().into())),
            port: self.port,
            host_and_port: self.host_and_port,
            path_and_query: Cow::Owned(self.path_and_query.into_owned()),
            target_is_changed: self.target_is_changed,
            fields: self.fields.into_owned(),
            keeps_content,
            has_content: self.has_content,
            transform: self.transform,
            variant: self.variant,
        }
    }

    /// The method, such as `GET`.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The host of the canonical target (RFC 9110 §7.1), with its port if that is not the default
    /// one.
    #[must_use]
    pub fn authority(&self) -> &str {
        match self.port {
            None => self.host.as_str(),
            Some(port) => {
                let made = || alloc::format!("{}:{port}", self.host.as_str());
                self.host_and_port.get_or_init(made)
            }
        }
    }

    /// The parts of the authority: the host, and a port beside it. Without one beside it the host
    /// may be followed by its port already, as [`Self::authority`] is.
    #[must_use]
    pub fn host_and_port(&self) -> (&[u8], Option<u16>) {
        (self.host.as_bytes(), self.port)
    }

    /// Path and query of the canonical target.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// Sends the request to another host. The proxy's rules for destinations hold for that.
    ///
    /// # Errors
    ///
    /// Nothing is changed.
    pub fn set_authority(&mut self, authority: &str) -> Result<(), TargetError> {
        let is_delimiter = |byte| matches!(byte, b'/' | b'?' | b'#' | b'@' | b'\\' | b',');
        if authority.is_empty() || !is_plain(authority) || authority.bytes().any(is_delimiter) {
            return Err(TargetError);
        }
        if self.authority() != authority {
            let host = HeadHost::Text(Cow::Owned(authority.into()));
            (self.host, self.port) = (host, None);
            self.target_is_changed = true;
        }
        Ok(())
    }

    /// Requests another path and query.
    ///
    /// # Errors
    ///
    /// Nothing is changed.
    pub fn set_path_and_query(&mut self, path_and_query: &str) -> Result<(), TargetError> {
        if !path_and_query.starts_with('/') || !is_plain(path_and_query) {
            return Err(TargetError);
        }
        if self.path_and_query != path_and_query {
            self.path_and_query = Cow::Owned(path_and_query.into());
            self.target_is_changed = true;
        }
        Ok(())
    }

    /// Whether [`Self::transform`] is permitted.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check_transform(&self) -> Result<(), TransformError> {
        if self.keeps_content() {
            return Err(TransformError::NoTransform);
        }
        if self.fields.get("content-range").is_some() {
            return Err(TransformError::Part);
        }
        Ok(())
    }

    /// Has the content pass `transform` on its way to the next hop. The fields that describe the
    /// content as it was are removed (Content-Length, digests). A request without content is left
    /// as it is. It can be called at [`Hook::RequestReceived`](crate::Hook::RequestReceived) alone.
    ///
    /// # Errors
    ///
    /// As [`Self::check_transform`]; nothing is changed.
    pub fn transform(&mut self, transform: Box<dyn Transform>) -> Result<(), TransformError> {
        self.check_transform()?;
        if self.has_content {
            self.fields.forget_content();
            self.transform = Some(transform);
        }
        Ok(())
    }

    /// Has the content pass `inspector`, which puts out each byte as it came: `no-transform` does
    /// not forbid that, so that no client can keep its content from a module that examines it. A
    /// request without content is left as it is. It can be called at
    /// [`Hook::RequestReceived`](crate::Hook::RequestReceived) alone.
    pub fn inspect(&mut self, inspector: Box<dyn Transform>) {
        if self.has_content {
            self.fields.forget_length();
            self.transform = Some(inspector);
        }
    }

    /// Whether the content is to pass a transform.
    #[must_use]
    pub const fn is_transformed(&self) -> bool {
        self.transform.is_some()
    }

    /// What a module has set by [`Self::transform`] or [`Self::inspect`] since the last call.
    pub fn take_transform(&mut self) -> Option<Box<dyn Transform>> {
        self.transform.take()
    }

    /// Says which variant of the response this request is to get, such as `br` or `webp-640`.
    /// Responses that modules change before they are stored
    /// ([`Module::changes_stored`](crate::Module::changes_stored)) are stored and chosen by it. It
    /// counts at [`Hook::RequestReceived`](crate::Hook::RequestReceived) alone; without it the tag
    /// is empty.
    ///
    /// # Errors
    ///
    /// It is no token, or too long; nothing is changed.
    pub fn set_variant(&mut self, tag: &str) -> Result<(), VariantError> {
        if tag.len() > VARIANT_BYTES_MAX || !is_token(tag.as_bytes()) {
            return Err(VariantError);
        }
        self.variant = Some(tag.into());
        Ok(())
    }

    /// Whether [`Self::set_variant`] has set a tag since the last [`Self::take_variant`].
    #[must_use]
    pub const fn has_variant(&self) -> bool {
        self.variant.is_some()
    }

    /// What a module has set by [`Self::set_variant`] since the last call.
    pub fn take_variant(&mut self) -> Option<String> {
        self.variant.take()
    }

    /// Whether the target was changed.
    #[must_use]
    pub const fn target_is_changed(&self) -> bool {
        self.target_is_changed
    }

    /// Whether anything was changed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.target_is_changed || self.fields.is_changed()
    }
}

fn is_plain(text: &str) -> bool {
    text.len() <= TARGET_BYTES_MAX
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// The head of a final response.
pub struct ResponseHead<'h> {
    status: u16,
    status_is_changed: bool,
    /// The field lines.
    pub fields: HeadFields<'h>,
    keeps_content: bool,
    codings: Codings,
    transform: Option<Box<dyn Transform>>,
    changes_content: bool,
}

impl fmt::Debug for ResponseHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseHead")
            .field("status", &self.status)
            .field("fields", &self.fields)
            .field("is_transformed", &self.transform.is_some())
            .finish_non_exhaustive()
    }
}

impl<'h> ResponseHead<'h> {
    /// The head of a response with this status.
    #[inline]
    pub fn new(status: u16, fields: impl Into<HeadFields<'h>>) -> Self {
        Self {
            status,
            status_is_changed: false,
            fields: fields.into(),
            keeps_content: false,
            codings: Codings::none(),
            transform: None,
            changes_content: false,
        }
    }

    /// The same to a request that has `no-transform`, or of a response that had it when it was
    /// received, if `keeps_content`.
    #[must_use]
    pub const fn keeping_content(mut self, keeps_content: bool) -> Self {
        self.keeps_content = keeps_content;
        self
    }

    /// Whether the request or the response has `no-transform`, or had it when it was received: a
    /// module cannot take that back. The fields are read for that.
    #[must_use]
    pub fn keeps_content(&self) -> bool {
        let mut directives = ResponseDirectives::default();
        for value in self.fields.now_and_before("cache-control") {
            directives.add_line(value);
        }
        self.keeps_content || directives.no_transform
    }

    /// The same head, which holds all that it is made of.
    #[must_use]
    pub fn into_owned(self) -> ResponseHead<'static> {
        let keeps_content = self.keeps_content();
        ResponseHead {
            status: self.status,
            status_is_changed: self.status_is_changed,
            fields: self.fields.into_owned(),
            keeps_content,
            codings: self.codings,
            transform: self.transform,
            changes_content: self.changes_content,
        }
    }

    /// A copy as it is now, to undo changes. It has no transform.
    #[must_use]
    pub fn saved(&self) -> Self {
        Self {
            status_is_changed: self.status_is_changed,
            keeps_content: self.keeps_content,
            ..Self::new(self.status, self.fields.clone())
        }
    }

    /// Whether anything was changed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.status_is_changed || self.fields.is_changed()
    }

    /// The status code.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Changes the status, as a service that blocks content does. The response is not stored then,
    /// unless the operator lets the module have more stored. It can be called at
    /// [`Hook::ResponseReceived`](crate::Hook::ResponseReceived) alone.
    ///
    /// # Errors
    ///
    /// The new status or that of the response is one that decides on its content or needs the
    /// request's preconditions; nothing is changed.
    pub fn set_status(&mut self, status: u16) -> Result<(), StatusError> {
        for status in [self.status, status] {
            if !is_free_standing(status) || matches!(status, 204 | 205) {
                return Err(StatusError(status));
            }
        }
        self.status_is_changed |= self.status != status;
        self.status = status;
        Ok(())
    }

    /// Whether [`Self::set_status`] has changed it.
    #[must_use]
    pub const fn status_is_changed(&self) -> bool {
        self.status_is_changed
    }

    /// Whether [`Self::transform`] is permitted.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check_transform(&self) -> Result<(), TransformError> {
        if self.keeps_content() {
            return Err(TransformError::NoTransform);
        }
        if self.status == 206 {
            return Err(TransformError::Part);
        }
        Ok(())
    }

    /// Has the content pass `transform`. The fields that describe the content as it was are removed
    /// (Content-Length, Accept-Ranges, digests). The entity tag stays, to validate with; clients
    /// get a weak one (RFC 9110 §8.8.1). A response without content, such as that to a HEAD, has
    /// its head changed in the same way. A module that calls this says so by
    /// [`Module::may_transform`](crate::Module::may_transform).
    ///
    /// # Errors
    ///
    /// As [`Self::check_transform`]; nothing is changed.
    pub fn transform(&mut self, transform: Box<dyn Transform>) -> Result<(), TransformError> {
        self.check_transform()?;
        self.fields.forget_content();
        self.transform = Some(transform);
        self.changes_content = true;
        Ok(())
    }

    /// As [`Self::transform`], with the content codings of the next hop undone (`gzip`, `deflate`,
    /// `br`, `zstd`) before the content is handed over. Content-Encoding is removed.
    ///
    /// # Errors
    ///
    /// As [`Self::check_transform`], or a coding is not known; nothing is changed.
    pub fn transform_plain(&mut self, transform: Box<dyn Transform>) -> Result<(), TransformError> {
        self.check_transform()?;
        self.codings = Codings::of(&self.fields)?;
        self.fields.remove_codings();
        self.transform(transform)
    }

    /// Has the content pass `inspector`, which puts out each byte as it came, coded or not, whole
    /// or a part: `no-transform` does not forbid that, and entity tag and digests stay. A module
    /// that calls this says so by [`Module::may_transform`](crate::Module::may_transform).
    pub fn inspect(&mut self, inspector: Box<dyn Transform>) {
        self.fields.forget_length();
        self.transform = Some(inspector);
    }

    /// Whether the content is to pass a transform.
    #[must_use]
    pub const fn is_transformed(&self) -> bool {
        self.transform.is_some()
    }

    /// Whether the content is to be changed, and not only inspected.
    #[must_use]
    pub const fn changes_content(&self) -> bool {
        self.changes_content
    }

    /// What a module has set by [`Self::transform`], [`Self::transform_plain`] or
    /// [`Self::inspect`] since the last call, and the codings that are to be undone before it.
    pub fn take_transform(&mut self) -> Option<(Codings, Box<dyn Transform>)> {
        let codings = core::mem::take(&mut self.codings);
        self.changes_content = false;
        Some((codings, self.transform.take()?))
    }
}

#[cfg(test)]
mod tests;
