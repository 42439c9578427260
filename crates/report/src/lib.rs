//! Presentation: figures as data and as SVG, colours, numbers with units, pages of HTML.
//!
//! Pure: a page or a figure is a string that the caller writes. Nothing here refers to another
//! host, so that a page can be read anywhere. The benchmark and the simulator draw with it;
//! deliberately absent is what they show.
//!
//! A [`Figure`] is lines over two axes, drawn by `plotters`. Its colours on dark ground come from a
//! style sheet that exchanges them ([`palette`]), so one drawing serves both.

mod axis;
mod drawing;
mod figure;
mod html;
pub mod palette;
mod unit;

pub use axis::{Axis, nines};
pub use drawing::{file, inline};
pub use figure::{Figure, Line, Point, Stroke, xs, ys};
pub use html::{Html, escape};
pub use palette::Colour;
pub use unit::{Scale, Unit, count, digits, float};
