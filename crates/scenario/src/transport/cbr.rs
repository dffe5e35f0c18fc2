//! `[transport] kind = "cbr"`: the keys of [`transports::cbr::Config`].

use transports::cbr;

use super::{Around, Transport, bytes, refused};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// `kind = "cbr"`.
pub(crate) fn cbr(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let config = cbr::Config {
        payload: bytes(table, "payload", None, 1)?,
        header: bytes(table, "header", None, 40)?,
        rate: table.need("rate")?,
    };
    config.check().map_err(|why| {
        let keys: &[&str] = match why {
            cbr::ConfigError::Zero(key) => &[key],
            cbr::ConfigError::PacketTooLarge { .. } => &["payload", "header"],
        };
        refused(table, &why.to_string(), keys)
    })?;
    Ok(Transport {
        mtu: config.payload + config.header,
        classes: vec![0],
        // It waits for nothing.
        first_window: u64::MAX,
        unbounded_only: true,
        ..Transport::new(
            config.framing(),
            wire::frame::UDP,
            Box::new(move || Some(Box::new(cbr::Cbr::new(config).ok()?))),
        )
    })
}
