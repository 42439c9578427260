//! Bare loops: the least a server on this kernel can do for a request, to compare the cost of
//! proxies with.
//!
//! One thread, edge-triggered epoll, sockets that never wait; no limits, no deadlines, no log, no
//! runtime. `answers` sends one response to every request, in the ways in which a cache can send
//! what it has stored; `relay` forwards. `tls` answers under TLS by the libraries that weir has, on
//! its runtime. A cache has to do more than this and cannot do less.

pub(crate) mod answers;
mod event_loop;
pub(crate) mod relay;
pub(crate) mod tls;
