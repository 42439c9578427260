//! Standard output and standard error as lines of a log.

use crate::limits::LOG_LINE_BYTES_MAX;

/// The beginning of a line whose end was not written yet.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    pending: Vec<u8>,
}

impl LineBuffer {
    /// Takes what was written, and gives the lines that it completes.
    pub(crate) fn write(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, is_complete) = match part {
                [text @ .., b'\n'] => (text, true),
                text => (text, false),
            };
            let mut text = text;
            while self.pending.len() + text.len() > LOG_LINE_BYTES_MAX {
                let (fits, rest) = text.split_at(LOG_LINE_BYTES_MAX - self.pending.len());
                self.pending.extend(fits);
                self.flush(&mut line);
                text = rest;
            }
            self.pending.extend(text);
            if is_complete {
                self.flush(&mut line);
            }
        }
    }

    /// Gives the beginning of a line as a line. An empty line is none.
    pub(crate) fn flush(&mut self, mut line: impl FnMut(&[u8])) {
        if !self.pending.is_empty() {
            line(&self.pending);
            self.pending.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(writes: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let mut buffer = LineBuffer::default();
        for bytes in writes {
            buffer.write(bytes, |line| lines.push(line.to_vec()));
        }
        buffer.flush(|line| lines.push(line.to_vec()));
        lines
    }

    #[test]
    fn line_is_put_together_from_writes() {
        let expected = [&b"panic: x"[..], b"y", b"z"];
        assert_eq!(lines(&[b"panic: ", b"x\n\ny\nz"]), expected);
    }

    #[test]
    fn long_line_is_split_at_the_limit() {
        let text = vec![b'a'; 2 * LOG_LINE_BYTES_MAX + 1];
        let sizes: Vec<usize> = lines(&[b"b", &text]).iter().map(Vec::len).collect();
        assert_eq!(sizes, [LOG_LINE_BYTES_MAX, LOG_LINE_BYTES_MAX, 2]);
    }
}
