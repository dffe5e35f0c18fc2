use super::*;
use crate::graph::{Kind, Op};
use crate::readers::says;

const HEADER: &str = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,\
                      _elapsed_time,algbw,busbw,count\n";

fn read(text: &str) -> Result<Trace, TextError> {
    read_aicb(text, "x", 8)
}

/// A row of `comm_type,comm_group,comm_group_size,msg_size`, with what else it needs.
fn row(start: &str, additional: &str, time: &str) -> String {
    format!("CommType.{start},step,None,None,{additional},{time},None,None,1\n")
}

fn kinds(trace: &Trace, rank: u32) -> Vec<Kind> {
    trace.graph.tasks(Rank(rank)).iter().map(|task| task.kind).collect()
}

#[test]
fn rows_run_one_after_another_in_steps() {
    let text = "[rank0 ~ rank3]\n".to_owned()
        + HEADER
        + &row("all_reduce,CommGroup.tp_group,2,10", "", "None")
        + &row("broadcast,CommGroup.dp_group,2,20", "", "None")
        + &row("epoch_end,None,None,0", "", "None")
        + &row("computation,CommGroup.all,None,((8 8) (8 8))", "", "1.5")
        + &row("reduce,CommGroup.dp_group,2,20", "", "None")
        + &row("computation,CommGroup.all,None,((8 8) (8 8))", "", "None")
        + &row("barrier,CommGroup.all,4,0", "", "None");
    let trace = read(&text).expect("valid");
    assert_eq!((trace.graph.ranks(), trace.graph.steps()), (4, 2));
    let tasks = trace.graph.tasks(Rank(2));
    assert_eq!(tasks.len(), 4);
    assert!((0..3).all(|task| tasks.after_end_of(task).eq([task + 1])));
    let steps: Vec<_> = tasks.iter().map(|task| task.step).collect();
    assert_eq!(steps, [0, 0, 1, 1]);
    let Kind::Collective { group, op, bytes } = tasks.get(1).kind else { panic!("{tasks:?}") };
    assert_eq!((op, bytes), (Op::Broadcast { root: Rank(0) }, 20));
    assert_eq!(trace.graph.members(group), [Rank(0), Rank(2)]);
    assert_eq!(tasks.get(2).kind, Kind::Compute { dur: Dur(1_500), stream: 0 });
    let warnings: Vec<_> = trace.warnings.iter().map(|w| (w.count, w.what)).collect();
    assert_eq!(warnings, [(1, REDUCE_IGNORED), (1, TIMELESS)]);
}

#[test]
fn a_log_counts_in_milliseconds() {
    let text = HEADER.to_owned()
        + &row("computation,CommGroup.all,None,((8 8) (8 8))", "", "1.5")
        + &row("all_reduce,CommGroup.dp_group,8,10", "", "0.25");
    let trace = read(&text).expect("valid");
    assert_eq!(kinds(&trace, 0)[0], Kind::Compute { dur: Dur(1_500_000_000), stream: 0 });
}

#[test]
fn stages_send_to_their_neighbours() {
    let stage = |ranks: &str| {
        format!("[ pp_stage: [{ranks}] ]\n{HEADER}")
            + &row("irecv,CommGroup.pp_group,1,10", "recv_prev", "None")
            + &row("isend,CommGroup.pp_group,1,10", "send_next", "None")
    };
    let text = stage("rank0, rank1") + &stage("rank2, rank3") + &stage("rank4, rank5");
    let trace = read(&text).expect("valid");
    let point = Kind::Compute { dur: Dur::ZERO, stream: 0 };
    let send = |to| Kind::Send { to: Rank(to), bytes: 10, tag: 0 };
    let recv = |from| Kind::Recv { from: Rank(from), bytes: 10, tag: 0 };
    assert_eq!(kinds(&trace, 1), [point, send(3)]);
    assert_eq!(kinds(&trace, 3), [recv(1), send(5)]);
    assert_eq!(kinds(&trace, 5), [recv(3), point]);
}

/// One after another, each stage would wait for what the other sends next.
#[test]
fn an_exchange_with_a_neighbour_is_one_batch() {
    let stage = |rank: u32, to: &str, end: &str| {
        format!("[rank{rank}]\n{HEADER}")
            + &row("irecv,CommGroup.pp_group,1,10", &format!("recv_{to}"), "None")
            + &row("isend,CommGroup.pp_group,1,10", &format!("send_{to}"), "None")
            + &row(&format!("{end},CommGroup.all,2,0"), "", "None")
    };
    let text = stage(0, "next", "barrier") + &stage(1, "prev", "barrier");
    let trace = read(&text).expect("valid");
    for rank in [0, 1].map(Rank) {
        let tasks = trace.graph.tasks(rank);
        assert_eq!((0..3).map(|task| tasks.waits(task)).collect::<Vec<_>>(), [0, 0, 2]);
    }
}

/// AICB writes the embedding group's collectives for the last stage only.
#[test]
fn collectives_that_only_one_stage_has_are_left_out() {
    let embedding = row("all_reduce,CommGroup.embedding_group,2,9", "", "None");
    let text =
        |first: &str| format!("[rank0]\n{HEADER}{first}[rank1]\n{HEADER}{embedding}{embedding}");
    let trace = read(&text("")).expect("valid");
    assert!(trace.graph.is_empty());
    let warnings: Vec<_> = trace.warnings.iter().map(|w| (w.count, w.what)).collect();
    assert_eq!(warnings, [(2, EMBEDDING_IGNORED)]);
    let trace = read(&text(&embedding.repeat(2))).expect("valid");
    assert_eq!((trace.graph.instances(), trace.warnings.len()), (2, 0));
}

#[test]
fn errors_name_the_place_and_the_value() {
    let with = |rows: &str| format!("{HEADER}{rows}");
    let one = |start: &str| with(&row(start, "", "None"));
    let cases = [
        (String::new(), 1, 1, "", "no rows"),
        (HEADER.to_owned(), 1, 103, "", "no rows"),
        ("type,comm_group\n".to_owned(), 1, 1, "type", "unknown column"),
        ("comm_type,comm_type\n".to_owned(), 1, 11, "comm_type", "this column is given twice"),
        ("comm_type,comm_group\n".to_owned(), 1, 21, "", "the column msg_size is missing"),
        (with("CommType.all_red"), 2, 17, "", "the row has 1 fields, the header 12"),
        (one("allreduce,CommGroup.dp_group,8,1"), 2, 10, "allreduce", "unknown comm_type"),
        (one("all_reduce,dp,8,1"), 2, 21, "dp", "unknown comm_group"),
        (one("all_reduce,\"a\nb.c\",8,1"), 2, 22, "a\nb.c", "unknown comm_group"),
        (one("all_reduce,CommGroup.dp_group,8,x"), 2, 42, "x", "msg_size is not a whole number"),
        (one("all_reduce,CommGroup.dp_group,8,None"), 2, 42, "", "msg_size is missing"),
        (
            one("all_reduce,CommGroup.dp_group,9,1"),
            2,
            40,
            "9",
            "with tp 1, ep 1, dp 8 and pp 1 this group has 8 ranks",
        ),
        (
            one("all_reduce,CommGroup.tp_group,3,1"),
            2,
            40,
            "3",
            "groups of 3 do not divide the 8 ranks of a stage",
        ),
        (
            one("all_to_all,CommGroup.ep_group,5,1"),
            2,
            40,
            "5",
            "groups of 5 do not divide the 8 ranks of a data-parallel group",
        ),
        (one("all_reduce,CommGroup.tp_group,0,1"), 2, 40, "0", "comm_group_size is zero"),
        (
            with(&row("isend,CommGroup.pp_group,1,9", "recv_next", "None")),
            2,
            54,
            "recv_next",
            "neither the next nor the previous stage",
        ),
        (with(&row("computation,None,None,9", "", "-1")), 2, 50, "-1", "not a time"),
        (
            "[rank0 ~ rank8]\n".to_owned(),
            1,
            14,
            "8",
            "more ranks than the 8 that there is room for",
        ),
        ("[rank0, rank2]\n".to_owned(), 1, 13, "2", "rank 1 should come here"),
        ("[rank3 ~ rank1]\n".to_owned(), 1, 6, "3", "rank 0 should come here"),
        ("[no]\n".to_owned(), 1, 1, "[no]", "no ranks"),
        ("[rank0]\n[rank1]\n".to_owned(), 2, 1, "", "the stage before has no rows"),
        (one("barrier,CommGroup.all,8,0") + "[rank0]\n", 3, 6, "0", "rank 8 should come here"),
        (format!("[rank0]\n{HEADER}[rank1]\n"), 3, 8, "", "no rows"),
        (
            format!("[rank0, rank1]\n{HEADER}[rank2]\n"),
            3,
            1,
            "",
            "1 ranks, but the first stage has 2",
        ),
    ];
    for (text, line, column, value, message) in cases {
        let error = read(&text).expect_err(&text);
        assert_eq!(says(&error), (line, column, value, message), "{text:?}");
    }
}

#[test]
fn stages_that_do_not_meet_are_an_error_with_a_place() {
    let barrier = row("barrier,CommGroup.all,2,0", "", "None");
    let send = row("isend,CommGroup.pp_group,1,9", "send_next", "None");
    for (first, second, message) in
        [(&barrier, &send, "rank 1 never takes part"), (&send, &send, "no counterpart")]
    {
        let text = format!("[rank0]\n{HEADER}{first}[rank1]\n{HEADER}{second}");
        let error = read(&text).expect_err(message);
        assert!(error.message.contains(message), "{error}");
        assert_eq!((error.line, error.column), (3, 1), "{error}");
    }
}
