//! What a packet costs in the pipelines of a P4 program, interpreted and compiled to Rust: a DATA packet and
//! what grants (Homa) or pulls (NDP) the next, through ingress, and a DATA packet through egress. The NIC's blocks
//! are not in it: what the programs ask them is answered at once. `cargo bench` in `benches/`.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use p4::interp::Machine;
use p4::ir::{self, ExternId, PipelineId};
use p4::program::{Externs, Program};

/// The blocks, with one answer to each question: a packet in the middle of a message.
struct Blocks {
    info: ExternId,
}

impl Externs for Blocks {
    fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]) {
        black_box(args);
        if which == self.info {
            // fail, rx_msg_id, is_new_msg, is_new_pkt, is_last_pkt, ack_no, is_done
            results.copy_from_slice(&[0, 3, 0, 1, 0, 4, 0]);
        } else {
            // Of the scheduler: success.
            results.fill(1);
        }
    }
}

fn compile(file: &str) -> Arc<ir::Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    Arc::new(p4::front::compile(&text, file, &[]).expect("a program of p4/"))
}

/// A frame of a protocol, its transport header with these flags and a message of 20 packets.
fn frame(protocol: u8, flags: u8) -> [u8; 64] {
    let mut frame = [0; 64];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[23] = protocol;
    frame[34] = flags;
    frame[39..41].copy_from_slice(&(20 * 1024_u16).to_be_bytes());
    frame[41] = 4;
    frame
}

fn packets(c: &mut Criterion) {
    const DATA: u8 = 1;
    // The flag that PULL and GRANT share.
    const PULL: u8 = 8;
    for (name, file, protocol) in [("ndp", "ndp.p4", 155), ("homa", "homa.p4", 154)] {
        let program = compile(file);
        let known = program.externs.iter().position(|e| e.kind == "get_rx_msg_info");
        let mut blocks = Blocks { info: ExternId(known.unwrap_or(usize::MAX) as u32) };
        let compiled = programs::find::<Blocks>(Arc::clone(&program)).expect("it is compiled");
        let interpreted: Box<dyn Program<Blocks>> = Box::new(Machine::new(Arc::clone(&program)));
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(1));
        for (how, mut machine) in [("interpreted", interpreted), ("compiled", compiled)] {
            for (what, pipeline, flags) in [
                ("data in", "ingress", DATA),
                ("pull in", "ingress", PULL),
                ("data out", "egress", DATA),
            ] {
                let id: PipelineId = program.pipeline(pipeline).expect("an architecture's name");
                let packet = frame(protocol, flags);
                let mut meta = metadata(&program, id);
                let mut out = Vec::new();
                group.bench_function(format!("{how}, {what}"), |b| {
                    b.iter(|| {
                        let packet = black_box(&packet);
                        machine.run(id, packet, black_box(&mut meta), &mut out, &mut blocks)
                    });
                });
            }
        }
        group.finish();
    }
}

/// Of a DATA packet in the middle of a message.
fn metadata(program: &ir::Program, pipeline: PipelineId) -> Vec<u128> {
    let value = |name: &str| match name.rsplit('.').next() {
        Some("flags") => 1,
        Some("msg_len") => 20 * 1024,
        Some("pkt_offset") => 4,
        Some("rtt_pkts") => 9,
        _ => 7,
    };
    program.pipelines[pipeline.index()].meta.iter().map(|meta| value(&meta.name)).collect()
}

criterion_group!(benches, packets);
criterion_main!(benches);
