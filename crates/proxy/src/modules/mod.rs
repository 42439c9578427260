//! Modules: what an operator has put into the way of requests and responses (`weir_extend`).
//!
//! [`loaded`] are the modules of a configuration, [`request_modules`] what they have of one
//! request, and [`request_modules::reached`] how far that has come; `exchange::module_calls` has
//! the hooks. [`hosts`] are what modules have of the proxy, [`status`] outlives a configuration,
//! and [`report`] is what an operator sees. Without modules a request pays for the test of an
//! empty list. [`call_time`] says whether a call was late; [`threads`] are for modules that do not
//! run on workers. Where a module changes content, [`module_content`] is the filter of the stream,
//! and [`message_memory`] what that may take.

mod breaker_lines;
mod call_time;
pub(crate) mod content_chain;
pub(crate) mod content_source;
pub(crate) mod hosts;
pub(crate) mod loaded;
mod message_memory;
pub(crate) mod module_answer;
pub(crate) mod module_content;
pub(crate) mod own_work;
pub(crate) mod report;
pub(crate) mod request_modules;
pub(crate) mod status;
pub(crate) mod threads;
