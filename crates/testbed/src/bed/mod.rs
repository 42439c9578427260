//! The test bed: servers of several makers started side by side on this machine, each in a
//! directory of its own with a config from `peers/`, and what is asked about them afterwards. Who
//! takes part and what is measured belongs to the chore.

pub(crate) mod affinity;
pub(crate) mod client;
pub(crate) mod contender;
pub(crate) mod files;
pub(crate) mod guarded;
pub(crate) mod host;
pub(crate) mod options;
pub(crate) mod program;
pub(crate) mod record;
pub(crate) mod server;
pub(crate) mod spread;
pub(crate) mod template;
pub(crate) mod usage;
pub(crate) mod workplace;
