//! What the processes are given, and give back, on a stream of bytes.
//!
//! A job is `quality` (1 byte), `width_max` (4), `pixels_max` (8), the length of the content (4),
//! and that; an answer is the length of the new content (4), zero if there is none, and that.
//! Numbers are big-endian.

use std::io::{self, Read, Write};

/// What is to be done with an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// Of a photograph, 1 to 100.
    pub(super) quality: u8,
    /// Wider ones are made so wide; 0 if none is.
    pub(super) width_max: u32,
    /// Images with more pixels are left as they are.
    pub(super) pixels_max: u64,
}

/// Most bytes of an image, before and after.
pub(super) const IMAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(super) fn write_job(to: &mut impl Write, work: &Work, content: &[u8]) -> io::Result<()> {
    let mut head = vec![work.quality];
    head.extend(work.width_max.to_be_bytes());
    head.extend(work.pixels_max.to_be_bytes());
    head.extend(length_of(content)?);
    to.write_all(&head)?;
    to.write_all(content)?;
    to.flush()
}

/// The next job; `None` if there will be none.
pub(super) fn read_job(from: &mut impl Read) -> io::Result<Option<(Work, Vec<u8>)>> {
    let mut quality = [0];
    if from.read(&mut quality)? == 0 {
        return Ok(None);
    }
    let work = Work {
        quality: quality[0],
        width_max: u32::from_be_bytes(read_array(from)?),
        pixels_max: u64::from_be_bytes(read_array(from)?),
    };
    Ok(Some((work, read_content(from, IMAGE_BYTES_MAX)?)))
}

pub(super) fn write_answer(to: &mut impl Write, content: &[u8]) -> io::Result<()> {
    to.write_all(&length_of(content)?)?;
    to.write_all(content)?;
    to.flush()
}

/// An answer of at most so many bytes.
pub(super) fn read_answer(from: &mut impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    read_content(from, bytes_max)
}

fn length_of(content: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(content.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(length.to_be_bytes())
}

fn read_content(from: &mut impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let length = u32::from_be_bytes(read_array(from)?) as usize;
    if length > bytes_max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    Ok(content)
}

fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    from.read_exact(&mut array)?;
    Ok(array)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work {
        quality: 75,
        width_max: 640,
        pixels_max: 1 << 40,
    };

    #[test]
    fn job_and_answer_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        write_job(&mut bytes, &WORK, b"image").expect("memory");
        write_job(&mut bytes, &WORK, b"").expect("memory");
        let mut from = &*bytes;
        assert_eq!(
            read_job(&mut from).expect("a job"),
            Some((WORK, b"image".to_vec()))
        );
        assert_eq!(
            read_job(&mut from).expect("a job"),
            Some((WORK, Vec::new()))
        );
        assert_eq!(read_job(&mut from).expect("the end"), None);
        let mut bytes = Vec::new();
        write_answer(&mut bytes, b"webp").expect("memory");
        assert_eq!(read_answer(&mut &*bytes, 4).expect("an answer"), b"webp");
        assert!(read_answer(&mut &*bytes, 3).is_err());
    }

    #[test]
    fn job_that_is_cut_is_an_error() {
        let mut bytes = Vec::new();
        write_job(&mut bytes, &WORK, b"image").expect("memory");
        for end in 1..bytes.len() {
            assert!(read_job(&mut &bytes[..end]).is_err(), "{end}");
        }
    }
}
