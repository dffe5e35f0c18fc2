//! Bounded proofs, and that a mistake breaks them.

use std::fs;
use std::path::{Path, PathBuf};

use trimline_rtl::prove::{ProveError, Prover};
use trimline_rtl::sim::Design;

/// A block with what is to hold of it.
struct Claim {
    /// The module that holds the block and the assertions, and its file in `proofs`.
    name: &'static str,
    /// Of `rtl/`, without `.sv`; the last is the block's.
    files: &'static [&'static str],
    parameters: &'static [(&'static str, u32)],
    /// After the reset.
    cycles: u32,
    /// In the block's file, mistakes each of which breaks it.
    mistakes: &'static [[&'static str; 2]],
}

impl Claim {
    fn check(&self) {
        let prover = match Prover::find() {
            Ok(prover) => prover,
            Err(why) => {
                println!("{} skipped: {why}", self.name);
                return;
            }
        };
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let rtl = here.join("../../rtl");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("payload").join(self.name);
        fs::create_dir_all(&folder).unwrap();
        let mut sources: Vec<PathBuf> =
            self.files.iter().map(|file| rtl.join(format!("{file}.sv"))).collect();
        let block = sources.len() - 1;
        sources.push(here.join("tests/payload/proofs").join(format!("{}.sv", self.name)));
        let parameter = |(name, value): &(&str, u32)| ((*name).to_owned(), value.to_string());
        let mut design = Design {
            top: self.name.into(),
            sources,
            parameters: self.parameters.iter().map(parameter).collect(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let proof = prover.prove(&design, self.cycles, &folder);
        let proof = proof.unwrap_or_else(|why| panic!("{why}"));
        println!("{}: {} cycles, {} clauses", self.name, proof.cycles, proof.clauses);

        let text = fs::read_to_string(&design.sources[block]).unwrap();
        design.sources[block] = folder.join("mistake.sv");
        for [from, to] in self.mistakes {
            assert_eq!(text.matches(from).count(), 1, "{}: `{from}`", self.name);
            fs::write(&design.sources[block], text.replace(from, to)).unwrap();
            let broken = prover.prove(&design, self.cycles, &folder);
            let is_broken = matches!(broken, Err(ProveError::Broken { .. }));
            assert!(is_broken, "{}: `{to}`: {broken:?}", self.name);
        }
    }
}

#[test]
fn what_goes_into_a_queue_comes_out_in_its_turn() {
    let claim = Claim {
        name: "stream_fifo_proof",
        files: &["stream_fifo/stream_fifo"],
        parameters: &[("Width", 2), ("Depth", 4)],
        cycles: 12,
        mistakes: &[["count != (PtrW+1)'(Depth);", "1'b1;"]],
    };
    claim.check();
}

#[test]
fn what_goes_into_a_descriptor_queue_comes_out_in_its_turn() {
    let claim = Claim {
        name: "fifo_proof",
        files: &["fifo/fifo"],
        parameters: &[("Width", 2), ("Depth", 4)],
        cycles: 10,
        mistakes: &[["kept_o[0] ? write_q + PtrW'(1) : write_q;", "write_q + PtrW'(1);"]],
    };
    claim.check();
}

#[test]
fn no_buffer_is_out_twice() {
    let claim = Claim {
        name: "buffers_proof",
        files: &["buffers/buffers"],
        parameters: &[],
        cycles: 10,
        mistakes: &[["(free_q & ~(taken & {Total{take_i}})) | given;", "free_q | given;"]],
    };
    claim.check();
}

#[test]
fn a_timer_fires_at_the_first_look_at_or_after_its_deadline() {
    let claim = Claim {
        name: "timers_proof",
        files: &["timers/timers"],
        parameters: &[("Ids", 2), ("TimeoutCycles", 5)],
        cycles: 16,
        mistakes: &[["cycles_t'(TimeoutCycles);", "cycles_t'(TimeoutCycles - 1);"]],
    };
    claim.check();
}

#[test]
fn the_arbiter_takes_control_first() {
    let claim = Claim {
        name: "arbiter_proof",
        files: &["nano_pkg/nano_pkg", "arbiter/arbiter"],
        parameters: &[],
        cycles: 2,
        mistakes: &[["has_data_i && !has_control_i;", "has_data_i;"]],
    };
    claim.check();
}

#[test]
fn a_reader_never_overtakes_the_writer() {
    let claim = Claim {
        name: "burst_proof",
        files: &["stream_pkg/stream_pkg", "burst_writer/burst_writer", "burst_reader/burst_reader"],
        parameters: &[],
        cycles: 10,
        mistakes: &[["busy_q && !blocked &&", "busy_q &&"]],
    };
    claim.check();
}

#[test]
fn a_switchs_port_loses_nothing_without_a_word() {
    if std::env::var_os("TRIMLINE_RTL_MUTANTS").is_none() {
        println!("trim_queue_proof skipped: set TRIMLINE_RTL_MUTANTS=1");
        return;
    }
    let claim = Claim {
        name: "trim_queue_proof",
        files: &["fifo/fifo", "trim_queue/trim_queue"],
        parameters: &[],
        cycles: 12,
        mistakes: &[
            ["wanted <= Memory", "left <= Memory"],
            ["room[QueueW'(join_queue_i)] &&", "room[0] &&"],
            ["turn_d = TurnW'(place);", "turn_d = turn_q;"],
            [".push_i({lost_o, done_i})", ".push_i({1'b0, done_i})"],
            ["service_length_q <= length_o;", "service_length_q <= join_length_i;"],
            [".data0_i({join_length_i, join_tag_i})", ".data0_i({join_length_i, tag_o})"],
        ],
    };
    claim.check();
}
