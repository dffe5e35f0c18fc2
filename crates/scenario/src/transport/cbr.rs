//! `[transport] kind = "cbr"`: the keys of [`transports::cbr::Config`].

use transports::cbr::{self, Config};
use units::Rate;

use super::{Around, Transport, made, refused};
use crate::diagnostic::Checked;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::value::{PART_MAX, Size16};

keys! { KEYS: Config {
    payload: Size16 [Size16(1)..=PART_MAX], "payload of a packet".written();
    header: Size16 [Size16(40)..=PART_MAX], "bytes on the wire beside it".written();
    rate: Rate, "rate of each message, headers included".range("above 0").written();
}}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    vec![section("transport.cbr", KEYS, &[], None)]
}

/// `kind = "cbr"`.
pub(super) fn read(table: &mut Reader<'_>, _: &Around<'_>) -> Checked<Transport> {
    let mut config = Config { payload: 1, header: 40, rate: Rate(1) };
    table.all_keys(KEYS, &mut config)?;
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    Ok(Transport {
        mtu: config.payload + config.header,
        classes: vec![0],
        // It waits for nothing.
        first_window: u64::MAX,
        unbounded_only: true,
        constant_rate: Some(config.rate),
        ..Transport::new(
            config.framing(),
            wire::frame::UDP,
            Box::new(move |_| made(cbr::Cbr::new(config))),
        )
    })
}
