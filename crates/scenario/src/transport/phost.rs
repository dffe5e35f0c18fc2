//! `[transport] kind = "phost"`: the keys of [`transports::phost::Config`].

use transports::phost::{self, Config, FreeTokens};

use super::{
    Around, Begun, Need, Presets, Signals, Transport, Wait, made, payload, refused, sections,
};
use crate::diagnostic::Checked;
use crate::key::{Section, keys};
use crate::reader::Reader;
use crate::value::{PART_MAX, Size16, word_or};

const PRESETS: &Presets<Config> = &[("ndp-paper", Config::ndp_paper), ("authors", Config::authors)];

keys! { KEYS: Config {
    payload: Size16 [Size16(1)..=PART_MAX], "payload of a full packet".written();
    header: Size16 [Size16(40)..=PART_MAX], "bytes on the wire beside the payload";
    control: Size16 [Size16(40)..=PART_MAX], "bytes on the wire of a control packet";
    free_tokens: FreeTokens,
        "tokens that a sender gives itself when a message starts. `\"bdp\"`: what it can send in \
         one round trip; n: one for each packet of a message of at most n, none for a longer one";
    window: u32, "tokens of a message in flight at once".range("at least 1");
    token_expiry: f64, "packet times after which an unused token is void".range("0.001 to 1000000");
    window_timeout: f64,
        "a message whose window is used up gets one more token after this many packet times \
         without one".range("0.001 to 1000000");
    resend_timeout: f64,
        "when every packet has had its token, what is missing gets others after this many packet \
         times".range("0.001 to 1000000");
    request_timeout: f64,
        "a sender that has heard nothing for this many packet times asks again"
            .range("0.001 to 1000000");
    short_packets: u64, "a message of at most this many packets is short";
    class_control (classes.control): u8, "traffic class of control packets".range("0 to 7");
    class_short (classes.short): u8, "traffic class of data of short messages".range("0 to 7");
    class_long (classes.long): u8, "traffic class of other data".range("0 to 7");
    abort_after: units::Dur,
        "a message of which nothing is heard for this long fails (own)"
            .range("above 0, below `time_wait`").was("give_up");
    time_wait: units::Dur,
        "how long a receiver remembers a finished message (own)".range("above `abort_after`");
    rx_idle_timeout: units::Dur,
        "a receiver forgets a message silent for this long (own)"
            .range("at least `abort_after`").was("linger");
}}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    sections("transport.phost", KEYS, PRESETS)
}

/// `kind = "phost"`.
pub(super) fn read(table: &mut Reader<'_>, around: &Around<'_>) -> Checked<Transport> {
    let mut begun = Begun::of(table, PRESETS, payload(table, "payload"))?;
    begun.config.paths = around.mode.sender;
    let config = begun.read(table, KEYS)?;
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    Ok(Transport {
        pauses: true,
        mtu: (config.payload + config.header).max(config.control),
        classes: vec![config.classes.control, config.classes.short, config.classes.long],
        // It has so many packets in flight, from the first round trip or the second on.
        first_window: u64::from(config.window) * u64::from(config.payload),
        timers: vec![
            ("window_timeout", Wait::Packets(config.window_timeout)),
            ("resend_timeout", Wait::Packets(config.resend_timeout)),
            ("request_timeout", Wait::Packets(config.request_timeout)),
        ],
        sprays: true,
        signals: Signals { classes: Need::Needs, ..Signals::NONE },
        life_max: Some(config.life_max()),
        // No acknowledgements of single packets: only whole messages are.
        ..Transport::new(
            config.framing(),
            wire::phost::PROTO,
            Box::new(move |_| made(phost::PHost::new(config))),
        )
    })
}

word_or!(FreeTokens: u32, "bdp" => FreeTokens::Bdp; FreeTokens::UpTo);
