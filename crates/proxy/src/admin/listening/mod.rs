//! Where the admin interface listens, and the connections that it accepts there.

pub(super) mod listener;
pub(super) mod places;
pub(super) mod socket;
