//! Colours: one a proxy, distinct to people with any colour vision, on light and on dark ground.
//!
//! The series are those of Okabe and Ito (2008), which differ in lightness too. A drawing holds the
//! colours for light ground; a style sheet exchanges each for its counterpart on dark ground, by
//! the value of the attribute, so that the same drawing serves both, inside the page and as a file
//! of its own.

use plotters::style::RGBColor;

/// A colour on light and on dark ground.
#[derive(Clone, Copy, Debug)]
pub struct Colour {
    /// On light ground.
    pub light: RGBColor,
    dark: RGBColor,
}

const fn colour(light: (u8, u8, u8), dark: (u8, u8, u8)) -> Colour {
    Colour {
        light: RGBColor(light.0, light.1, light.2),
        dark: RGBColor(dark.0, dark.1, dark.2),
    }
}

/// Of the lines, in the order in which proxies are met.
pub const SERIES: [Colour; 8] = [
    colour((0, 114, 178), (86, 168, 235)),
    colour((213, 94, 0), (255, 138, 66)),
    colour((0, 140, 105), (52, 196, 152)),
    colour((184, 84, 147), (226, 140, 194)),
    colour((196, 138, 0), (240, 185, 48)),
    colour((70, 160, 205), (140, 205, 240)),
    colour((90, 60, 160), (170, 150, 240)),
    colour((110, 90, 70), (200, 180, 155)),
];

/// Text, axes.
pub const INK: Colour = colour((28, 32, 38), (226, 230, 235));
/// Text that may be overlooked.
pub const MUTED: Colour = colour((92, 100, 110), (154, 163, 174));
/// Lines behind the data.
pub const GRID: Colour = colour((225, 229, 234), (52, 58, 66));
/// What is compared with: no caching, what was offered.
pub const BESIDE: Colour = colour((128, 136, 146), (130, 140, 152));
/// The ground.
pub const GROUND: Colour = colour((255, 255, 254), (20, 23, 28));

/// The colour of the proxy that was met as number `index`; they repeat after eight.
pub fn series(index: usize) -> Colour {
    SERIES[index % SERIES.len()]
}

/// Rules that exchange the colours of drawings on dark ground.
pub fn dark_rules(within: &str) -> String {
    let all = SERIES.iter().chain([&INK, &MUTED, &GRID, &BESIDE, &GROUND]);
    all.map(|colour| {
        let (light, dark) = (hex(colour.light), hex(colour.dark));
        format!(
            "{within}[fill=\"{light}\"]{{fill:{dark}}}{within}[stroke=\"{light}\"]{{stroke:{dark}}}"
        )
    })
    .collect()
}

/// Custom properties of the page for series, `--s0` and so on.
pub fn properties(is_dark: bool) -> String {
    let all = SERIES.iter().enumerate();
    all.map(|(index, colour)| {
        let which = if is_dark { colour.dark } else { colour.light };
        format!("--s{index}:{};", hex(which))
    })
    .collect()
}

/// As `plotters` writes it into an SVG.
fn hex(colour: RGBColor) -> String {
    let RGBColor(red, green, blue) = colour;
    format!("#{red:02X}{green:02X}{blue:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of WCAG 2.
    fn luminance(colour: RGBColor) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        let RGBColor(red, green, blue) = colour;
        0.2126_f64.mul_add(
            linear(red),
            0.7152_f64.mul_add(linear(green), 0.0722 * linear(blue)),
        )
    }

    fn contrast(one: RGBColor, two: RGBColor) -> f64 {
        let (one, two) = (luminance(one), luminance(two));
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    #[test]
    fn every_colour_has_enough_contrast_on_light_and_dark_ground() {
        for colour in SERIES.iter().chain([&BESIDE]) {
            let light = contrast(colour.light, GROUND.light);
            let dark = contrast(colour.dark, GROUND.dark);
            assert!(light >= 2.7 && dark >= 4.5, "{colour:?} {light} {dark}");
        }
        for text in [INK, MUTED] {
            assert!(contrast(text.light, GROUND.light) >= 4.5);
            assert!(contrast(text.dark, GROUND.dark) >= 4.5);
        }
    }

    #[test]
    fn every_palette_colour_has_a_distinct_light_hex_value() {
        let all = SERIES.iter().chain([&INK, &MUTED, &GRID, &BESIDE, &GROUND]);
        let mut seen: Vec<String> = all.map(|colour| hex(colour.light)).collect();
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
