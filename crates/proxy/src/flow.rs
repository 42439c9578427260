//! stub
use tokio::net::TcpStream;
use weir_policy::Now;
#[derive(Debug, Default)]
pub(crate) struct NextHopFlow {}
impl NextHopFlow {
    pub(crate) fn set_window(&mut self, _s: &TcpStream, _w: Option<u32>) {}
}
#[derive(Debug, Default)]
pub(crate) struct ClientFlow {}
impl ClientFlow {
    pub(crate) fn fit(&mut self, _s: &TcpStream, unsent: Option<u32>, most: usize) -> usize {
        unsent.map_or(most, |u| (u as usize).min(most))
    }
    pub(crate) fn reset(&mut self, _s: &TcpStream) {}
    pub(crate) fn sample(&mut self, _s: &TcpStream, _now: Now) -> Option<u32> {
        None
    }
}
pub(crate) struct TcpInfo {
    pub(crate) rtt_us: u32,
}
pub(crate) fn tcp_info(_s: &TcpStream) -> Option<TcpInfo> {
    None
}
