//! The ICAP head of an answer.

use crate::limits::Limits;
use crate::message::error::MessageError;
use crate::message::fields::IcapFields;
use crate::message::istag::IsTag;
use crate::message::start_line::parse_status_line;

/// The ICAP head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerHead {
    status: u16,
    fields: IcapFields,
    istag: Option<IsTag>,
}

impl AnswerHead {
    /// Reads a whole head.
    pub(crate) fn parse(head: &[u8], limits: &Limits) -> Result<Self, MessageError> {
        let line_end = head.windows(2).position(|pair| pair == b"\r\n");
        let (line, section) = head.split_at(line_end.unwrap_or(head.len()));
        let status = parse_status_line(line)?;
        let section = section.get(2..).unwrap_or_default();
        let fields = IcapFields::parse_answer(section, &limits.icap_head)?;
        let istag = fields.single("ISTag")?.map(IsTag::parse).transpose();
        Ok(Self {
            status,
            istag: istag.map_err(MessageError::IsTag)?,
            fields,
        })
    }

    /// The status code, 100 to 599.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The fields.
    #[must_use]
    pub const fn fields(&self) -> &IcapFields {
        &self.fields
    }

    /// The tag of the service's state, if the answer has it.
    #[must_use]
    pub const fn istag(&self) -> Option<&IsTag> {
        self.istag.as_ref()
    }
}
