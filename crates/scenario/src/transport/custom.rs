//! `[transport] kind = "custom"`: a transport that the program brings which runs the scenario.

use std::sync::Arc;

use endpoint::{Endpoint, Framing};
use units::HostId;

use super::{Around, Transport};
use crate::diagnostic::Checked;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::value::{PART_MAX, Size16};

/// Makes the endpoint of a host, or says why there is none.
pub type CustomTransport =
    Arc<dyn Fn(&CustomHost<'_>) -> Result<Box<dyn Endpoint>, String> + Send + Sync>;

/// What the endpoint of a host is made from.
#[derive(Debug, Clone, Copy)]
pub struct CustomHost<'a> {
    /// The host.
    pub me: HostId,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// How messages are cut into packets.
    pub framing: Framing,
    /// The table `[transport]` as it is written.
    pub table: &'a toml::Table,
}

/// The protocol of its packets: none of those that transports here have.
pub const CUSTOM_PROTO: u8 = 251;

struct Config {
    payload: u16,
    header: u16,
}

keys! { KEYS: Config {
    payload: Size16 [Size16(1)..=PART_MAX], "payload of a full packet".written();
    header: Size16 [Size16(40)..=PART_MAX], "bytes on the wire beside the payload".written();
}}

/// For the reference.
pub(crate) fn keys() -> Vec<Section> {
    vec![section("transport.custom", KEYS, &[], None)]
}

/// `kind = "custom"`. All other keys are the transport's own.
pub(super) fn read(table: &mut Reader<'_>, around: &Around<'_>) -> Checked<Transport> {
    let Some(custom) = around.custom.clone() else {
        let hint = "Python has `trimline.Scenario(..., transport=...)`: docs/python.md";
        return table.fail("kind", "no program brings a transport here", "nothing to run", hint);
    };
    let mut config = Config { payload: 1, header: 40 };
    table.all_keys(KEYS, &mut config)?;
    let length = u32::from(config.payload) + u32::from(config.header);
    if length > u32::from(PART_MAX.0) {
        let hint = format!("`payload` and `header` are {}B together at most", PART_MAX.0);
        return table.fail("payload", format!("packets of {length}B"), "too long", hint);
    }
    let (table, hosts) = (table.rest(), around.hosts);
    let framing = Framing { payload: config.payload, overhead: config.header };
    let endpoint = Box::new(move |me| custom(&CustomHost { me, hosts, framing, table: &table }));
    Ok(Transport { sprays: true, ..Transport::new(framing, CUSTOM_PROTO, endpoint) })
}
