//! Packets of a capture: container formats, and the layers below TCP.

pub(crate) mod blocks;
pub(crate) mod classic;
pub(crate) mod container;
pub(crate) mod decode;
pub(crate) mod frame;
pub(crate) mod input;
pub(crate) mod link;
