//! The conversion of one image. It runs in a process of its own.

use super::job::Work;
use image::codecs::gif::GifDecoder;
use image::codecs::png::PngDecoder;
use image::imageops::FilterType;
use image::{AnimationDecoder as _, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use std::io::Cursor;

/// The largest width and height of a WebP image.
const WEBP_SIDE_MAX: u32 = 16_383;

/// Bytes of memory for each pixel that a decoder may take: four, twice while an image is converted.
const BYTES_PER_PIXEL: u64 = 8;

/// The image as WebP; `None` if it is left as it is: it cannot be read, is too large, has several
/// frames or colours that a client would show differently.
pub(super) fn convert(content: &[u8], work: &Work) -> Option<Vec<u8>> {
    let mut reader = ImageReader::new(Cursor::new(content))
        .with_guessed_format()
        .ok()?;
    let format = reader.format()?;
    if !has_one_frame(content, format)? {
        return None;
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(WEBP_SIDE_MAX);
    limits.max_image_height = Some(WEBP_SIDE_MAX);
    limits.max_alloc = Some(work.pixels_max.saturating_mul(BYTES_PER_PIXEL));
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > work.pixels_max {
        return None;
    }
    let profile = decoder.icc_profile().ok()?;
    if profile.is_some_and(|profile| !is_srgb(&profile)) {
        return None;
    }
    let orientation = decoder.orientation().ok()?;
    let mut image = DynamicImage::from_decoder(decoder).ok()?;
    image.apply_orientation(orientation);
    if work.width_max > 0 && image.width() > work.width_max {
        image = image.resize(work.width_max, WEBP_SIDE_MAX, FilterType::Triangle);
    }
    // photographs may lose detail; drawings and text would show it
    encode(&image, format != ImageFormat::Jpeg, work.quality)
}

/// Whether an image is no animation; `None` if it is none of those that are converted.
fn has_one_frame(content: &[u8], format: ImageFormat) -> Option<bool> {
    let cursor = Cursor::new(content);
    Some(match format {
        ImageFormat::Jpeg => true,
        ImageFormat::Png => !PngDecoder::new(cursor).ok()?.is_apng().ok()?,
        ImageFormat::Gif => GifDecoder::new(cursor).ok()?.into_frames().take(2).count() == 1,
        _ => return None,
    })
}

/// Whether a colour profile names sRGB, which is what an image without a profile has. Others would
/// be lost.
fn is_srgb(profile: &[u8]) -> bool {
    let names: [&[u8]; 2] = [b"sRGB", b"s\0R\0G\0B"];
    let has = |name: &[u8]| profile.windows(name.len()).any(|window| window == name);
    names.into_iter().any(has)
}

fn encode(image: &DynamicImage, lossless: bool, quality: u8) -> Option<Vec<u8>> {
    let (width, height) = (image.width(), image.height());
    let encoded = if image.color().has_alpha() {
        let pixels = image.to_rgba8();
        webp::Encoder::from_rgba(&pixels, width, height).encode_simple(lossless, quality.into())
    } else {
        let pixels = image.to_rgb8();
        webp::Encoder::from_rgb(&pixels, width, height).encode_simple(lossless, quality.into())
    };
    encoded.ok().map(|webp| webp.to_vec())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use image::{ExtendedColorType, ImageEncoder as _, Rgb, RgbImage};

    const WORK: Work = Work {
        quality: 75,
        width_max: 0,
        pixels_max: 1_000_000,
    };

    /// Smooth waves of colour, as a photograph has them.
    fn picture(width: u32, height: u32) -> RgbImage {
        let wave = |at: u32| {
            let at = at % 480;
            u8::try_from(at.min(480 - at)).unwrap_or(u8::MAX)
        };
        RgbImage::from_fn(width, height, |x, y| {
            Rgb([wave(3 * x + y), wave(x + 5 * y), wave(x * y / 16)])
        })
    }

    /// A photograph of high quality.
    pub(in super::super) fn jpeg(width: u32, height: u32) -> Vec<u8> {
        let mut out = Vec::new();
        image::codecs::jpeg::JpegEncoder::new_with_quality(&mut out, 98)
            .write_image(
                &picture(width, height),
                width,
                height,
                ExtendedColorType::Rgb8,
            )
            .expect("a picture");
        out
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        let image = DynamicImage::from(picture(width, height)).to_rgba8();
        image
            .write_to(&mut out, ImageFormat::Png)
            .expect("a picture");
        out.into_inner()
    }

    fn gif(frames: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let frame = || image::Frame::new(DynamicImage::from(picture(30, 20)).to_rgba8());
        image::codecs::gif::GifEncoder::new(&mut out)
            .encode_frames((0..frames).map(|_| frame()))
            .expect("a picture");
        out
    }

    #[track_caller]
    fn check(content: &[u8], work: &Work, expected: (u32, u32)) {
        let webp = convert(content, work).expect("an image");
        let image = webp::Decoder::new(&webp).decode().expect("WebP");
        assert_eq!((image.width(), image.height()), expected);
    }

    #[test]
    fn image_becomes_webp_of_the_same_size_or_of_the_width_that_is_wanted() {
        let narrow = Work {
            width_max: 50,
            ..WORK
        };
        for content in [jpeg(200, 100), png(200, 100)] {
            check(&content, &WORK, (200, 100));
            check(&content, &narrow, (50, 25));
        }
        check(&gif(1), &WORK, (30, 20));
        let wide = Work {
            width_max: 500,
            ..WORK
        };
        check(&jpeg(200, 100), &wide, (200, 100));
    }

    #[test]
    fn photograph_gets_smaller() {
        let content = jpeg(400, 300);
        let webp = convert(&content, &WORK).expect("an image");
        assert!(
            webp.len() < content.len() / 2,
            "{} of {}",
            webp.len(),
            content.len()
        );
    }

    #[test]
    fn animation_and_what_cannot_be_read_are_left_as_they_are() {
        let good = jpeg(200, 100);
        for content in [
            &gif(2)[..],
            b"",
            b"GIF89a",
            b"<svg/>",
            &good[..20],
            &good[..300],
        ] {
            assert_eq!(convert(content, &WORK), None);
        }
    }

    /// A small file can have very many pixels.
    #[test]
    fn image_of_more_pixels_than_the_limit_is_left_as_it_is() {
        let content = png(200, 100);
        let exact = Work {
            pixels_max: 20_000,
            ..WORK
        };
        assert!(convert(&content, &exact).is_some());
        let less = Work {
            pixels_max: 19_999,
            ..WORK
        };
        assert_eq!(convert(&content, &less), None);
        // the head of a PNG with 2^31 - 1 pixels on each side
        let mut bomb = png(1, 1);
        bomb[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(convert(&bomb, &WORK), None);
    }
}
