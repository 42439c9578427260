//! The image, and the clients that request it.

use crate::client::get;
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder, Rgb, RgbImage};
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};

pub(in crate::extend) const IMAGES_PER_S: u32 = 25;

/// Each has one image under way at most.
const CLIENTS: u32 = 4;

/// The paper's image had 8 KB.
const BYTES_MAX: usize = 8 << 10;

const WIDTH: u32 = 256;
const HEIGHT: u32 = 192;

/// Makes a picture with waves and grain, as a photograph has them, with the best quality that fits.
///
/// # Errors
/// It cannot be encoded.
pub(super) fn jpeg() -> Result<Vec<u8>, Failure> {
    let wave = |at: u32| (at % 480).min(480 - at % 480);
    let value = |at: u32, grain: u32| u8::try_from((wave(at) + grain).min(255)).unwrap_or(u8::MAX);
    let picture = RgbImage::from_fn(WIDTH, HEIGHT, |x, y| {
        let grain = (x * 7919 + y * 104_729).wrapping_mul(x + 31 * y) % 23;
        Rgb([
            value(3 * x + y, grain),
            value(x + 5 * y, grain),
            value(x * y / 16, grain),
        ])
    });
    for quality in (10..=95).rev().step_by(5) {
        let mut out = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut out, quality);
        let encoded = encoder.write_image(&picture, WIDTH, HEIGHT, ExtendedColorType::Rgb8);
        encoded.during("encode an image")?;
        if out.len() <= BYTES_MAX {
            return Ok(out);
        }
    }
    Err(Failure::Refused(format!(
        "the image has more than {BYTES_MAX} bytes"
    )))
}

/// What clients get of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// What the origin has.
    AsFetched,
    /// What the module has made of it.
    Converted,
}

impl Form {
    /// Where images are that are sent so: the module is for those of one path alone.
    const fn path(self) -> &'static str {
        match self {
            Self::AsFetched => "/as-fetched/",
            Self::Converted => "/images/",
        }
    }

    /// What such images begin with.
    const fn signature(self) -> &'static [u8] {
        match self {
            Self::AsFetched => b"\xff\xd8\xff",
            Self::Converted => b"RIFF",
        }
    }
}

/// What became of the images of a run.
#[derive(Debug, Default)]
pub(super) struct ImagesSent {
    /// Those that came as they should.
    pub(super) received: u64,
    pub(super) trouble: Option<String>,
}

/// Clients that request images, each image once.
#[derive(Debug)]
pub(super) struct Images(Vec<JoinHandle<Result<u64, String>>>);

impl Images {
    /// Sends requests for so many seconds, for images of the `run` of this form.
    pub(super) fn send(weir: SocketAddr, run: (Form, u32), seconds: u32) -> Self {
        let begun = Instant::now();
        let clients = (0..CLIENTS).map(|client| {
            let numbers = (client..IMAGES_PER_S * seconds).step_by(CLIENTS as usize);
            thread::spawn(move || request(weir, run, begun, numbers))
        });
        Self(clients.collect())
    }

    /// Waits until all images have come.
    pub(super) fn end(self) -> ImagesSent {
        let mut sent = ImagesSent::default();
        for client in self.0 {
            match client.join() {
                Ok(Ok(received)) => sent.received += received,
                Ok(Err(trouble)) => sent.trouble = Some(trouble),
                Err(_) => sent.trouble = Some("a client panicked".to_owned()),
            }
        }
        sent
    }
}

/// Requests images, each when it is due, and says how many came; all of them must have the form.
fn request(
    weir: SocketAddr,
    (form, run): (Form, u32),
    begun: Instant,
    numbers: impl Iterator<Item = u32>,
) -> Result<u64, String> {
    let mut stream = get::connect(weir).map_err(|error| error.to_string())?;
    let mut received = 0;
    for number in numbers {
        let due = begun + Duration::from_secs(1) * number / IMAGES_PER_S;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let lines = "Host: origin.example\r\nAccept: image/webp\r\n";
        let target = format!("{}{run}-{number}.jpg", form.path());
        let answer = get::get_with(&mut stream, lines, &target);
        let answer = answer.map_err(|error| format!("{target}: {error}"))?;
        if answer.status != 200 || !answer.body.starts_with(form.signature()) {
            let (status, bytes) = (answer.status, answer.body.len());
            return Err(format!(
                "{target} has status {status} and {bytes} bytes, and does not come as it should: {form:?}"
            ));
        }
        received += 1;
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_has_about_the_length_of_the_papers() {
        let bytes = jpeg().expect("an image").len();
        assert!((BYTES_MAX / 2..=BYTES_MAX).contains(&bytes), "{bytes}");
    }
}
