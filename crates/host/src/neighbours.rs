//! To which MAC address a frame for an IPv4 address goes: the kernel's routes and neighbours
//! (ARP), as it shows them under `/proc` (proc(5)) for the network namespace of this thread.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;

/// A hardware address.
pub(crate) type Mac = [u8; 6];

/// How long a neighbour may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Nothing listens there, or what does throws it away (RFC 863).
const DISCARD: u16 = 9;

/// The interface that has `address`.
pub(crate) fn interface_of(address: Ipv4Addr) -> Option<String> {
    let has = |interface: &nix::ifaddrs::InterfaceAddress| {
        let ip = interface.address.as_ref()?.as_sockaddr_in()?.ip();
        (ip == address).then(|| interface.interface_name.clone())
    };
    getifaddrs().ok()?.find_map(|interface| has(&interface))
}

/// The address of `interface` itself.
pub(crate) fn own(interface: &str) -> Option<Mac> {
    let mut all = getifaddrs().ok()?.filter(|one| one.interface_name == interface);
    all.find_map(|one| one.address.as_ref()?.as_link_addr()?.addr())
}

/// Where frames to `to` go from `interface`. The kernel asks for it if it must, as `socket` sends
/// an empty datagram.
pub(crate) fn find(interface: &str, to: Ipv4Addr, socket: &UdpSocket) -> Result<Mac, String> {
    if interface_of(to).is_some() {
        return Err("it is on this machine; AF_XDP is for what leaves it".to_owned());
    }
    let routes = fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
    let next = next_hop(&routes, interface, to)
        .ok_or_else(|| format!("the kernel has no route to it by {interface}"))?;
    let begun = Instant::now();
    loop {
        let table = fs::read_to_string("/proc/thread-self/net/arp").unwrap_or_default();
        if let Some(mac) = neighbour(&table, interface, next) {
            return Ok(mac);
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!(
                "{next} does not answer ARP at {interface}: is it up, and in this network?"
            ));
        }
        // An error says no more than that there is no answer yet.
        let _ = socket.send_to(&[], (to, DISCARD));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The first hop to `to` of the routes that lead out of `interface`, as `/proc/net/route` lists
/// them: interface, destination, gateway, flags, ..., metric, mask, with addresses in hexadecimal,
/// the last byte first. The longest mask counts.
fn next_hop(routes: &str, interface: &str, to: Ipv4Addr) -> Option<Ipv4Addr> {
    let address = |hex: &str| u32::from_str_radix(hex, 16).ok().map(u32::swap_bytes);
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[name, destination, gateway, _, _, _, _, mask, ..] = &fields[..] else {
            return None;
        };
        let (destination, gateway) = (address(destination)?, address(gateway)?);
        let mask = address(mask)?;
        let leads = name == interface && u32::from(to) & mask == destination;
        leads.then_some((mask, if gateway == 0 { to } else { gateway.into() }))
    };
    routes.lines().skip(1).filter_map(route).max_by_key(|(mask, _)| *mask).map(|(_, next)| next)
}

/// The neighbour `ip` at `interface`, as `/proc/net/arp` lists them: address, type, flags, MAC
/// address, mask, interface.
fn neighbour(table: &str, interface: &str, ip: Ipv4Addr) -> Option<Mac> {
    /// `ATF_COM`: its address is known.
    const COMPLETE: u32 = 2;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[address, _, flags, mac, _, name] = &fields[..] else { return None };
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        let found = name == interface && address.parse() == Ok(ip) && flags & COMPLETE != 0;
        found.then(|| parse(mac)).flatten()
    })
}

fn parse(text: &str) -> Option<Mac> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0104A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0004A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
";

    #[test]
    fn the_longest_mask_counts_and_gateways_are_neighbours() {
        let hop = |interface, to: [u8; 4]| next_hop(ROUTES, interface, to.into());
        assert_eq!(hop("eth0", [192, 168, 4, 7]), Some([192, 168, 4, 7].into()));
        assert_eq!(hop("eth0", [8, 8, 8, 8]), Some([192, 168, 4, 1].into()));
        assert_eq!(hop("eth1", [10, 1, 2, 3]), Some([10, 1, 2, 3].into()));
        assert_eq!(hop("eth1", [192, 168, 4, 7]), None);
    }

    #[test]
    fn a_neighbour_without_an_answer_is_none() {
        let table = "\
IP address       HW type     Flags       HW address            Mask     Device
10.0.0.3         0x1         0x6         02:00:0a:00:00:03     *        net
10.0.0.4         0x1         0x0         00:00:00:00:00:00     *        net
";
        let at = |interface, last| neighbour(table, interface, [10, 0, 0, last].into());
        assert_eq!(at("net", 3), Some([2, 0, 10, 0, 0, 3]));
        assert_eq!((at("net", 4), at("net", 5), at("eth0", 3)), (None, None, None));
    }
}
