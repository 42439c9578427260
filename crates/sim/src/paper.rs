//! Papers as commands: their tables and figures, made again and laid beside what was published.

mod drawing;
mod exhibit;
pub mod lard;
mod page;
pub mod proxim;
