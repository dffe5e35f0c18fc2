use units::Dur;

use super::*;
use crate::graph::{Kind, Op};
use crate::readers::says;

fn read(text: &str) -> Result<Trace, TextError> {
    read_simai(text, "x", 8)
}

/// A rank's tasks as words: `c5` works for 5 ns, `R8/2` is an all-reduce of 8 bytes by two ranks.
fn tasks(trace: &Trace, rank: u32) -> String {
    let word = |kind: Kind| match kind {
        Kind::Compute { dur: Dur(ps), stream: 0 } => format!("c{}", ps / 1_000),
        Kind::Compute { dur: Dur(ps), .. } => format!("u{}", ps / 1_000),
        Kind::Collective { group, op, bytes } => {
            let letter = match op {
                Op::AllReduce => "R",
                Op::AllGather => "G",
                Op::ReduceScatter => "S",
                Op::Broadcast { root: Rank(0) } => "B",
                _ => "A",
            };
            format!("{letter}{bytes}/{}", trace.graph.members(group).len())
        }
        _ => "?".to_owned(),
    };
    let tasks = trace.graph.tasks(Rank(rank));
    tasks.iter().map(|task| word(task.kind)).collect::<Vec<_>>().join(" ")
}

/// What each task of rank 0 waits for.
fn waits(trace: &Trace) -> Vec<Vec<u32>> {
    let tasks = trace.graph.tasks(Rank(0));
    let mut waits = vec![Vec::new(); tasks.len()];
    for pred in 0..tasks.len() as u32 {
        tasks.after_end_of(pred).for_each(|task| waits[task as usize].push(pred));
    }
    waits
}

const LAYERS: &str = "2\nl0 -1 1 ALLGATHER 10 2 REDUCESCATTER 20 3 ALLREDUCE 30 9\n\
                      l1 -1 4 NONE 0 5 ALLTOALL_EP 50 6 ALLGATHER_DP_EP 60 0\n";

#[test]
fn transformer_waits_for_all_but_weight_gradients() {
    let head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 2 ga: 1 \
                all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n";
    let trace = read(&(head.to_owned() + LAYERS)).expect("valid");
    let expected = "c1 G10/2 c9 c4 c5 A50/2 c6 G60/2 c2 S20/2 c9 c3 R30/4 u9";
    assert_eq!(tasks(&trace, 0), expected);
    assert_eq!(tasks(&trace, 7), expected, "all ranks run the same");
    let expected: [&[u32]; 14] = [
        &[],
        &[0],
        &[1],
        &[2],
        &[3],
        &[4],
        &[5],
        &[6],
        // The backward pass goes on beside the gather of weight gradients,
        &[6],
        &[8],
        &[9],
        &[10],
        // for which only the next collective of that kind waits.
        &[7, 11],
        &[11, 12],
    ];
    assert_eq!(waits(&trace), expected);
    assert_eq!(trace.warnings, []);
    assert_eq!(trace.graph.text(trace.graph.tasks(Rank(0)).get(0).label.expect("named")), "l0");
}

#[test]
fn recomputed_layers_run_forward_again() {
    let head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 all_gpus: 8 \
                checkpoints: 1 0 checkpoint_initiates: 1 1 pp: 4 pp_comm 77.0\n";
    let layers = "2\nl0 -1 1 NONE 0 2 NONE 0 3 NONE 0 0\nl1 -1 4 NONE 0 5 NONE 0 6 NONE 0 0\n";
    let trace = read(&(head.to_owned() + layers)).expect("valid");
    assert_eq!(tasks(&trace, 0), "c1 c4 c1 c5 c6 c2 c3");
    let warnings: Vec<_> = trace.warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "pipeline stages; as in SimAI's packet simulation every rank runs every layer: 4",
        "bytes between pipeline stages (pp_comm), which are not sent: 77",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn the_other_policies_have_their_own_order() {
    let layers = "2\nl0 -1 1 ALLREDUCE 10 2 ALLREDUCE 20 3 ALLREDUCE 30 9\n\
                  l1 -1 4 NONE 0 5 ALLREDUCE 50 6 ALLREDUCEALLTOALL 60 0\n";
    let played = |policy: &str| read(&format!("{policy}\n{layers}")).expect("valid");
    let data = played("DATA");
    assert_eq!(tasks(&data, 0), "c1 c4 c6 R60/8 c5 c3 R30/8 u9");
    assert_eq!(data.warnings.len(), 1, "{:?}", data.warnings);
    let model = played("MODEL");
    assert_eq!(tasks(&model, 0), "c1 R10/8 c9 c4 c5 R50/8 c6 c2 c3");
    let waits = waits(&model);
    assert_eq!((&waits[6], &waits[7]), (&vec![4], &vec![5, 6]), "beside, then joined");
    assert_eq!(tasks(&played("DISTRIBUTED_INFERENCE"), 0), "c1 R10/8 c9 c4");
    let text = "DISTRIBUTED_INFERENCE\n1\nl0 -1 1 BROADCAST 10 0 NONE 0 0 NONE 0 0\n";
    assert_eq!(tasks(&read(text).expect("valid"), 3), "c1 B10/8");
    let micro = played("MICRO");
    assert_eq!(tasks(&micro, 0), "R30/8 c9 R60/8");
    assert_eq!(micro.graph.steps(), 2);
}

#[test]
fn errors_name_the_place_and_the_value() {
    let head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 8";
    let layer = "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
    let with = |keys: &str| format!("{head} {keys}\n1\n{layer}\n");
    let of_layer = |layer: &str| format!("MICRO\n1\n{layer}\n");
    let cases = [
        (String::new(), 1, 1, "", "the file is empty"),
        ("TRANSFORMER\n".to_owned(), 1, 1, "TRANSFORMER", "unknown policy"),
        ("HYBRID_DLRM\n".to_owned(), 1, 1, "HYBRID_DLRM", "this policy is not played"),
        ("MICRO\n".to_owned(), 1, 6, "", "no layers"),
        ("MICRO\n0\n".to_owned(), 2, 1, "0", "no layers"),
        ("MICRO\n1 2\n".to_owned(), 2, 3, "2", "a field more than the 1 of such a line"),
        (format!("MICRO\n4000000000\n{layer}\n"), 3, 34, "", "1 layers instead of 4000000000"),
        (
            format!("MICRO\n1\n{layer}\n{layer}\n"),
            4,
            1,
            "l",
            "a layer more than the 1 that the second line says",
        ),
        (with("gpus: 4"), 1, 60, "gpus:", "unknown key"),
        (with("all_gpus: 4"), 1, 60, "all_gpus:", "this key is given twice"),
        (with("ep:"), 1, 63, "", "ep is missing"),
        (
            with("ep: 3"),
            1,
            64,
            "3",
            "groups of 3 do not divide the 4 GPUs of a data-parallel group",
        ),
        (with("checkpoints: 4000000000 1"), 1, 85, "", "the number of a layer is missing"),
        (with("checkpoints: 1 1"), 1, 75, "1", "no such layer: there are 1"),
        (with("checkpoint_initiates: 1 0"), 1, 84, "0", "no checkpoint is before this layer"),
        (
            "MICRO all_gpus: 9\n".to_owned(),
            1,
            17,
            "9",
            "more GPUs than the 8 that there is room for",
        ),
        (
            "MICRO model_parallel_NPU_group: 3\n".to_owned(),
            1,
            33,
            "3",
            "groups of 3 do not divide the 8 GPUs",
        ),
        (of_layer("l x"), 3, 3, "x", "the dependency is not a whole number"),
        (
            of_layer("l -1 1 NONE 0 1 NONE"),
            3,
            21,
            "",
            "the size of the input gradient's collective is missing",
        ),
        (
            of_layer("l -1 1 NONE 0 1 NONE 0 1 ALREDUCE 0 1"),
            3,
            26,
            "ALREDUCE",
            "unknown collective",
        ),
        (of_layer("l -1 1 NONE_EP 0 1 NONE 0 1 NONE 0 1"), 3, 8, "NONE_EP", "unknown collective"),
        (
            of_layer("l -1 1.5 NONE 0 1 NONE 0 1 NONE 0 1"),
            3,
            6,
            "1.5",
            "the forward time is not a whole number",
        ),
        (
            of_layer(&format!("{layer} HYBRID_TRANSFORMER")),
            3,
            35,
            "HYBRID_TRANSFORMER",
            "a field more than the 12 of such a line",
        ),
    ];
    for (text, line, column, value, message) in cases {
        let error = read(&text).expect_err(&text);
        assert_eq!(says(&error), (line, column, value, message), "{text:?}");
    }
}

#[test]
fn layers_that_would_run_forward_twice_are_an_error() {
    let head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 1 0 checkpoint_initiates: 2 1 2\n";
    let layers = "3\n".to_owned() + &"l -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n".repeat(3);
    let error = read(&(head.to_owned() + &layers)).expect_err("twice");
    assert_eq!(says(&error), (1, 76, "2", "layers would be run forward twice"));
}

#[test]
fn a_short_file_cannot_ask_for_much_memory() {
    let layers = "l -1 1 ALLREDUCE 9 1 ALLREDUCE 9 1 ALLREDUCE 9 1\n".repeat(40);
    let text = format!("HYBRID_TRANSFORMER model_parallel_NPU_group: 8\n40\n{layers}");
    let error = read_simai(&text, "x", 1 << 20).expect_err("too many");
    assert_eq!(says(&error).3, "1048576 GPUs and 40 layers make too many tasks");
}
