//! A message as a peer reads it: a head, plainly split, and how much content follows.

/// A head as received.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    text: String,
}

impl Head {
    /// The head at the front of `bytes`, and its length; `None` while it is not whole.
    pub(crate) fn take(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = bytes[..end].iter().map(|byte| char::from(*byte)).collect();
        Some((Self { text }, end))
    }

    /// The first line.
    pub(crate) fn start_line(&self) -> &str {
        self.text.split("\r\n").next().unwrap_or("")
    }

    /// The method of a request.
    pub(crate) fn method(&self) -> &str {
        self.start_line().split(' ').next().unwrap_or("")
    }

    /// The status code of a response; 0 if there is none.
    pub(crate) fn status(&self) -> u16 {
        let code = self.start_line().split(' ').nth(1);
        code.and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    /// The value of the first field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.text.split("\r\n").skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// How long the content is that follows.
    pub(crate) fn length(&self) -> u64 {
        let length = self.field("content-length");
        length.and_then(|length| length.parse().ok()).unwrap_or(0)
    }

    /// The row that a request is of.
    pub(crate) fn row(&self) -> Option<u64> {
        self.field("user-agent")?.strip_prefix("row/")?.parse().ok()
    }

    /// First and last byte of a Range of one part, the last one if it is given.
    pub(crate) fn range(&self) -> Option<(u64, Option<u64>)> {
        part(self.field("range")?.strip_prefix("bytes=")?)
    }

    /// First byte and last byte of a Content-Range.
    pub(crate) fn content_range(&self) -> Option<(u64, u64)> {
        let (range, _) = self
            .field("content-range")?
            .strip_prefix("bytes ")?
            .split_once('/')?;
        let (first, last) = part(range)?;
        Some((first, last?))
    }
}

fn part(text: &str) -> Option<(u64, Option<u64>)> {
    let (first, last) = text.split_once('-')?;
    let last = if last.is_empty() {
        None
    } else {
        Some(last.parse().ok()?)
    };
    Some((first.parse().ok()?, last))
}
