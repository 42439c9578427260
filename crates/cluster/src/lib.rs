//! Where the members of a cluster come from, if not from the configuration.
//!
//! A [`Source`] says where; [`MembersTask`] follows it on a thread of its own and hands each list
//! of members to a [`MemberSink`]. What a source cannot give leaves the last good list in force:
//! requests never wait for a source. Whether a list is good is decided in one place, [`check`], and
//! each refusal names the member and the part of it, which the source turns into a line of a file
//! or a key.
//!
//! Deliberately absent: what is done with members, and gossip between them. A list has one origin
//! that an operator can read.

#![forbid(unsafe_code)]

mod dns;
pub mod etcd;
mod file;
mod member;
mod output;
mod own;
mod retry;
mod source;
mod task;

pub use file::{FileError, read as read_file};
pub use member::{
    BadMember, InvalidUrl, MEMBERS_MAX, Member, MemberPart, WEIGHT_DEFAULT, check, parse_url,
};
pub use output::{MemberList, MemberSink, SourceReport};
pub use own::OwnNode;
pub use source::{ETCD_PREFIX, InvalidSource, Source};
pub use task::MembersTask;
