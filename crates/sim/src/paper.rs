//! Papers as commands: their tables and figures, made again and laid beside what was published.

mod drawing;
pub mod proxim;
