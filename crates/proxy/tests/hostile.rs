//! Clients and next hops that mean harm: framing, smuggling, cut and endless messages.

mod support;

#[path = "hostile/generated_responses.rs"]
mod generated_responses;
#[path = "hostile/http2_frames.rs"]
mod http2_frames;
#[path = "hostile/http2_scripts.rs"]
mod http2_scripts;
#[path = "hostile/in_flight/mod.rs"]
mod in_flight;
#[path = "hostile/lenient_response.rs"]
mod lenient_response;
#[path = "hostile/request_framing.rs"]
mod request_framing;
#[path = "hostile/response_framing.rs"]
mod response_framing;
#[path = "hostile/silence.rs"]
mod silence;
#[path = "hostile/truncation.rs"]
mod truncation;
#[path = "hostile/unread_content.rs"]
mod unread_content;
