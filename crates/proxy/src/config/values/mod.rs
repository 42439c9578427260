//! The kinds of values that settings have: sizes, spans of time, addresses, names.

pub(super) mod address;
pub(super) mod byte_size;
pub(super) mod cidr;
pub(super) mod field_name;
pub(super) mod host;
pub(super) mod module_option;
pub(super) mod name;
pub(super) mod next_hop_url;
pub(super) mod quantity;
pub(super) mod rate;
pub(super) mod read_ahead;
pub(super) mod text;
pub(super) mod time;
pub(super) mod token_file;
pub(super) mod when_busy;
