//! One stored response: a head ready to send, and its content.

use crate::charge::allocated_bytes;
use crate::content::StoredContent;
use weir_policy::StoredFacts;
use weir_semantics::{EntityTag, Timestamp, Validators};

/// A stored response. Immutable: freshening makes another one that shares the content.
///
/// Of a part the head is in the form of the 200: status line 200 and the complete length, no
/// Content-Range.
#[derive(Debug)]
pub struct StoredResponse {
    /// Status line and field lines as they are sent, each ended by CRLF, without the empty line and
    /// without the fields that are made for each use (Age, Cache-Status, Connection, Date stays as
    /// received).
    pub head: Box<[u8]>,
    /// What decisions need.
    pub facts: StoredFacts,
    /// Value of ETag as received, if it has one. If modules have changed the content, the head has
    /// another one, for clients.
    pub entity_tag: Option<Box<[u8]>>,
    /// Last-Modified, if it parsed.
    pub last_modified: Option<Timestamp>,
    /// Date, or the time of receipt.
    pub date: Timestamp,
    /// The content, which may be a part.
    pub body: StoredContent,
}

impl StoredResponse {
    /// The validators preconditions of clients are evaluated against (RFC 9110 §13).
    ///
    /// Of content that modules have changed only the entity tag of the head counts. Its dates are
    /// those of the origin's representation: another configuration makes other content of that.
    #[must_use]
    pub fn validators(&self) -> Validators<'_> {
        if self.has_own_tag() {
            return Validators {
                entity_tag: self.client_tag().and_then(EntityTag::parse),
                last_modified: None,
                date: None,
            };
        }
        Validators {
            entity_tag: self.entity_tag.as_deref().and_then(EntityTag::parse),
            last_modified: self.last_modified,
            // without any validator, changed content is another one at each fetch
            date: (!self.facts.is_transformed || self.last_modified.is_some()).then_some(self.date),
        }
    }

    /// Whether clients know it by another entity tag than the next hop: modules have changed its
    /// content, and not only inspected it.
    #[must_use]
    pub fn has_own_tag(&self) -> bool {
        self.facts.is_transformed && self.client_tag() != self.entity_tag.as_deref()
    }

    /// The value of ETag in its head.
    fn client_tag(&self) -> Option<&[u8]> {
        head_value(&self.head, "etag")
    }

    /// The complete length of its content in bytes; `None` if that is not known, which only a part
    /// can be.
    #[must_use]
    pub fn complete_length(&self) -> Option<u64> {
        self.body.complete_length()
    }

    /// Whether some of its content is missing (RFC 9111 §3.3).
    #[must_use]
    pub fn is_part(&self) -> bool {
        !self.body.is_whole()
    }

    /// The same head and facts with `body`.
    #[must_use]
    pub fn with_body(&self, body: StoredContent) -> Self {
        Self {
            head: self.head.clone(),
            facts: self.facts,
            entity_tag: self.entity_tag.clone(),
            last_modified: self.last_modified,
            date: self.date,
            body,
        }
    }

    /// The same without its content, whose complete length it knows still.
    #[must_use]
    pub fn without_content(&self) -> Self {
        let body = StoredContent::on_disk(Vec::new(), self.body.complete_length());
        self.with_body(body.unwrap_or_default())
    }

    /// The same response with other facts.
    #[must_use]
    pub fn with_facts(&self, facts: StoredFacts) -> Self {
        Self {
            facts,
            ..self.with_body(self.body.clone())
        }
    }

    /// Ends the head with the length of the body, for a response that came without.
    pub fn add_content_length(&mut self) {
        let length = format!("Content-Length: {}\r\n", self.body.len());
        let mut head = std::mem::take(&mut self.head).into_vec();
        head.extend_from_slice(length.as_bytes());
        self.head = head.into_boxed_slice();
    }

    /// Bytes of memory it holds, allocator rounding included.
    #[must_use]
    pub fn charged_bytes(&self) -> usize {
        Self::charged_head(
            self.head.len(),
            self.entity_tag.as_ref().map_or(0, |tag| tag.len()),
        ) + self.body.charged_bytes()
    }

    /// Bytes of memory a response takes beside its content.
    #[must_use]
    pub fn charged_head(head_bytes: usize, entity_tag_bytes: usize) -> usize {
        // the reference counts of the Arc: two words
        allocated_bytes(size_of::<Self>() + 2 * size_of::<usize>())
            + allocated_bytes(head_bytes)
            + allocated_bytes(entity_tag_bytes)
    }
}

/// The value of the first field `name` in a head in the form of [`StoredResponse::head`].
fn head_value<'h>(head: &'h [u8], name: &str) -> Option<&'h [u8]> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    let mut fields = lines.filter_map(|line| {
        let (field, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?.trim_ascii();
        field.eq_ignore_ascii_case(name.as_bytes()).then_some(value)
    });
    fields.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_that_of_the_first_field_with_the_name() {
        let check = |head: &str, expected: Option<&str>| {
            let found = head_value(head.as_bytes(), "etag");
            assert_eq!(found, expected.map(str::as_bytes), "{head}");
        };
        check(
            "HTTP/1.1 200 OK\r\nA: b\r\neTag: \"x\"\r\nETag: \"y\"\r\n",
            Some("\"x\""),
        );
        check("HTTP/1.1 200 OK\r\nETag:\r\n", Some(""));
        check("HTTP/1.1 200 OK\r\nETags: x\r\nX-ETag: y\r\n", None);
        check("ETag: \"x\"\r\n", None);
        check("", None);
    }
}
