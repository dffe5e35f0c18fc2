//! The arbiter (rule 10, C5).

use crate::bench::{Block, Case, Model, Mutant, Rng, Values};
use crate::meta::{BITS, Meta};

const MUTANTS: &[Mutant] = &[
    Mutant::new(
        "arbiter",
        "tx_open_i && has_data_i && !has_control_i;",
        "tx_open_i && has_data_i;",
    ),
    Mutant::new(
        "arbiter",
        "take_control_o = tx_open_i && has_control_i;",
        "take_control_o = has_control_i;",
    ),
    Mutant::new(
        "arbiter",
        "take_control_o = tx_open_i && has_control_i;",
        "take_control_o = tx_open_i && has_control_i && !has_data_i;",
    ),
    Mutant::new(
        "arbiter",
        "take_data_o    = tx_open_i && has_data_i",
        "take_data_o    = has_data_i",
    ),
    Mutant::new(
        "arbiter",
        "if (take_data_o) packet_o = data_i;",
        "if (take_data_o) packet_o = control_i;",
    ),
    Mutant::new(
        "arbiter",
        "valid_o        = take_control_o || take_data_o;",
        "valid_o        = tx_open_i;",
    ),
];

struct Arbiter(Rng);

impl Model for Arbiter {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let Self(rng) = self;
        let [open, has_control, has_data] = [(); 3].map(|()| rng.one_in(2));
        let [control, data] = [(); 2].map(|()| Meta::draw(rng));
        inputs.set("tx_open_i", open);
        inputs.set("has_control_i", has_control);
        inputs.set_words("control_i", &control.words());
        inputs.set("has_data_i", has_data);
        inputs.set_words("data_i", &data.words());
        let (take, packet) = match (open, has_control, has_data) {
            (true, true, _) => ("take_control_o", control),
            (true, false, true) => ("take_data_o", data),
            _ => return,
        };
        outputs.set(take, 1u8);
        outputs.set("valid_o", 1u8);
        outputs.set_words("packet_o", &packet.words());
    }
}

#[test]
fn arbiter() {
    let case = Case {
        parameters: Vec::new(),
        inputs: vec![
            ("tx_open_i", 1),
            ("has_control_i", 1),
            ("control_i", BITS),
            ("has_data_i", 1),
            ("data_i", BITS),
        ],
        outputs: vec![
            ("take_control_o", 1),
            ("take_data_o", 1),
            ("valid_o", 1),
            ("packet_o", BITS),
        ],
        model: Box::new(|seed| Box::new(Arbiter(Rng::new(seed)))),
    };
    let cases = vec![case];
    Block { name: "arbiter", parts: &["nano_pkg"], cases, mutants: MUTANTS, forbidden: &[] }
        .check();
}
