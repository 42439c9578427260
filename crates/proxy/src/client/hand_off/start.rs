//! What hand-off takes of the machine, looked at when the process starts.

use super::{HandOffs, SendMessage, Service};
use crate::config::Config;
use std::io;
use weir_net::hand_off::repair::check_permitted;
use weir_net::hand_off::steering::Steering;

/// `all` counts for every device.
const ARP_IGNORE: &str = "/proc/sys/net/ipv4/conf/all/arp_ignore";

/// Prepares what a configuration with `cluster.mechanism = "hand-off"` needs; nothing without.
///
/// # Errors
/// All that is missing, with what to do about it, a line each.
pub(crate) fn begin(
    hand_offs: &HandOffs,
    config: &Config,
    send: SendMessage,
) -> Result<(), Vec<String>> {
    let Some(service) = config.service() else {
        return Ok(());
    };
    let mut missing = Vec::new();
    if let Err(error) = check_permitted() {
        missing.push(format!(
            "connections cannot be taken out of the kernel ({error}): run as root, or with CAP_NET_ADMIN"
        ));
    }
    match &config.cluster.device {
        Some(device) => match Steering::install(device, service) {
            Ok(steering) => {
                let _ = hand_offs.steering.set(steering);
            }
            Err(error) => missing.push(format!(
                "packets cannot be led to nodes ({error}): install nftables, and name the device of the clients in cluster.device"
            )),
        },
        // a node
        None => missing.extend(check_silence()),
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    let _ = hand_offs.service.set(Service::new(service, send));
    hand_offs.is_ready.notify_one();
    Ok(())
}

/// A node must not say on the network that it has the address of the service.
fn check_silence() -> Option<String> {
    let value: io::Result<String> = std::fs::read_to_string(ARP_IGNORE);
    let ignores = value.is_ok_and(|text| text.trim().parse().is_ok_and(|level: u8| level >= 1));
    (!ignores).then(|| {
        "this node answers for the address of the service on the network: put that on `lo`, and set net.ipv4.conf.all.arp_ignore = 1".to_owned()
    })
}
