//! The client against servers: ours, hostile ones, and c-icap.

mod c_icap;
mod c_icap_process;
mod coded;
mod hostile;
mod pair;
mod play;
mod scripted;
