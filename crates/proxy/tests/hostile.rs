//! Clients and next hops that mean harm: framing, smuggling, cut and endless messages.

mod support;

#[path = "hostile/answered.rs"]
mod answered;
#[path = "hostile/cut.rs"]
mod cut;
#[path = "hostile/lenient_response.rs"]
mod lenient_response;
#[path = "hostile/request_framing.rs"]
mod request_framing;
#[path = "hostile/response_framing.rs"]
mod response_framing;
#[path = "hostile/silence.rs"]
mod silence;
#[path = "hostile/unread.rs"]
mod unread;
