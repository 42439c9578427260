//! How much of a file a service receives, by its extension (RFC 3507 §4.10.2).

use alloc::string::String;
use alloc::vec::Vec;

use weir_semantics::words;

use crate::message::error::MessageError;
use crate::message::fields::IcapFields;

/// The most file extensions in the three lists of one service.
pub const FILE_EXTENSIONS_MAX: usize = 1024;

/// The most bytes of one file extension.
pub const FILE_EXTENSION_BYTES_MAX: usize = 32;

words! {
    /// How much of a file a service receives.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TransferKind {
        /// A preview first.
        Preview = "Transfer-Preview",
        /// Nothing: the file needs no adaptation.
        Ignore = "Transfer-Ignore",
        /// The whole, without a preview.
        Complete = "Transfer-Complete",
    }
}

/// The three lists.
///
/// An extension in two lists, and `*` in two lists, are refused. Where no list has `*`, all other
/// files are sent whole, as if there were no lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransferLists {
    /// In lower case, sorted.
    by_extension: Vec<(String, TransferKind)>,
    default: TransferKind,
}

impl TransferLists {
    pub(crate) fn read(fields: &IcapFields) -> Result<Self, MessageError> {
        let mut by_extension: Vec<(String, TransferKind)> = Vec::new();
        let mut default = None;
        for kind in TransferKind::ALL {
            let error = MessageError::FieldValue(kind.as_str());
            for member in fields.members(kind.as_str()) {
                if member == b"*" {
                    if default.replace(kind).is_some_and(|other| other != kind) {
                        return Err(error);
                    }
                    continue;
                }
                let is_plain = |byte: &u8| byte.is_ascii_graphic() && *byte != b'*';
                if member.len() > FILE_EXTENSION_BYTES_MAX
                    || by_extension.len() == FILE_EXTENSIONS_MAX
                    || !member.iter().all(is_plain)
                {
                    return Err(error);
                }
                let extension = member
                    .iter()
                    .map(|byte| char::from(byte.to_ascii_lowercase()));
                by_extension.push((extension.collect(), kind));
            }
        }
        by_extension.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let disagree = |pair: &&[(String, TransferKind)]| matches!(pair, [(a, kind), (b, other)] if a == b && kind != other);
        if let Some([.., (_, kind)]) = by_extension.windows(2).find(disagree) {
            return Err(MessageError::FieldValue(kind.as_str()));
        }
        by_extension.dedup();
        Ok(Self {
            by_extension,
            default: default.unwrap_or(TransferKind::Complete),
        })
    }

    pub(crate) fn of(&self, extension: &str) -> TransferKind {
        let is_of = |(listed, _): &&(String, TransferKind)| listed.eq_ignore_ascii_case(extension);
        let found = self.by_extension.iter().find(is_of);
        found.map_or(self.default, |&(_, kind)| kind)
    }
}

/// The file extension of a target, a path or a URI: what follows the last dot of its last segment,
/// without query and fragment. Empty if there is none. Escapes (`%2e`) are not decoded.
#[must_use]
pub fn file_extension(target: &str) -> &str {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    // an authority without a path has no file
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => path,
    };
    let segment = path.rsplit('/').next().unwrap_or_default();
    segment
        .rsplit_once('.')
        .map_or("", |(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::HeadLimits;

    fn read(lines: &str) -> Result<TransferLists, MessageError> {
        let section = format!("{lines}\r\n");
        let fields = IcapFields::parse(section.as_bytes(), &HeadLimits::default()).unwrap();
        TransferLists::read(&fields)
    }

    #[test]
    fn extension_is_found_without_regard_to_case() {
        let lists = read(concat!(
            "Transfer-Complete: asp, bat, EXE, com\r\n",
            "Transfer-Ignore: html\r\n",
            "Transfer-Preview: *\r\n",
        ))
        .unwrap();
        assert_eq!(lists.of("exe"), TransferKind::Complete);
        assert_eq!(lists.of("HTML"), TransferKind::Ignore);
        assert_eq!(lists.of("png"), TransferKind::Preview);
        assert_eq!(lists.of(""), TransferKind::Preview);
        let without_star = read("Transfer-Preview: a\r\n").unwrap();
        assert_eq!(without_star.of("png"), TransferKind::Complete);
        let lists = read("Transfer-Ignore: *\r\nTransfer-Complete: a\r\n").unwrap();
        assert_eq!(lists.of("png"), TransferKind::Ignore);
    }

    #[test]
    fn extension_or_star_in_two_lists_is_refused() {
        let error = |name| Err(MessageError::FieldValue(name));
        let two = read("Transfer-Preview: a\r\nTransfer-Complete: b, A\r\n");
        assert!(matches!(two, Err(MessageError::FieldValue(_))));
        let two = read("Transfer-Preview: *\r\nTransfer-Ignore: *\r\n");
        assert_eq!(two, error("Transfer-Ignore"));
        assert_eq!(read("Transfer-Preview: *.a\r\n"), error("Transfer-Preview"));
        assert!(read("Transfer-Ignore: a, A\r\nTransfer-Ignore: a, *, *\r\n").is_ok());
    }

    #[test]
    fn file_extension_is_that_of_the_last_segment() {
        for (target, expected) in [
            ("/a/b.tar.gz", "gz"),
            ("/a.b/c", ""),
            ("/a?b.exe", ""),
            ("/a.png?b.exe/c.gif", "png"),
            ("http://e.com", ""),
            ("http://e.com/", ""),
            ("http://e.com?a.b", ""),
            ("http://e.com/a.b#c.d", "b"),
            ("/a.", ""),
            ("/.htaccess", "htaccess"),
            ("*", ""),
            ("", ""),
        ] {
            assert_eq!(file_extension(target), expected, "{target}");
        }
    }

    #[test]
    fn lists_are_bounded() {
        let long = "x".repeat(FILE_EXTENSION_BYTES_MAX);
        assert!(read(&format!("Transfer-Ignore: {long}\r\n")).is_ok());
        assert!(read(&format!("Transfer-Ignore: {long}x\r\n")).is_err());
        let many = |count: usize| {
            let list: Vec<_> = (0..count).map(|number| format!("e{number}")).collect();
            read(&format!("Transfer-Ignore: {}\r\n", list.join(",")))
        };
        assert!(many(FILE_EXTENSIONS_MAX).is_ok());
        assert!(many(FILE_EXTENSIONS_MAX + 1).is_err());
    }
}
