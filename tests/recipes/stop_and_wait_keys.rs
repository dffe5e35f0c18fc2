//! `[transport] kind = "stop-and-wait"`: the keys of [`transports::stop_and_wait::Config`].

use transports::stop_and_wait::{Config, StopAndWait};
use units::Dur;

use super::{Around, Transport};
use crate::diagnostic::Diagnostic;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::value::{PART_MAX, Size16};

keys! { KEYS: Config {
    payload: Size16 [Size16(1)..=PART_MAX], "payload of a packet".written();
    header: Size16 [Size16(40)..=PART_MAX], "bytes on the wire beside it".written();
    timeout: Dur [Dur(1)..=Dur::from_ms(1_000)],
        "what is not acknowledged by then is sent again".written();
}}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    vec![section("transport.stop-and-wait", KEYS, &[], None)]
}

/// `kind = "stop-and-wait"`.
pub(super) fn read(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let mut config = Config { payload: 1, header: 40, timeout: Dur(1) };
    table.all_keys(KEYS, &mut config)?;
    Ok(Transport {
        mtu: config.payload + config.header,
        classes: vec![0],
        first_window: u64::from(config.payload),
        ..Transport::new(
            config.framing(),
            wire::frame::UDP,
            Box::new(move |_| Ok(Box::new(StopAndWait::new(config)))),
        )
    })
}
