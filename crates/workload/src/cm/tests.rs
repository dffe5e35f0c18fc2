//! What `.cm` files mean, and what is wrong with wrong ones.

use super::*;

/// A ring: each flow starts the next.
const RING: &str = "# two steps\nNodes 4\nConnections 3\nTriggers 2\nFailures 1\n\
    0->1 id 1 start 100 size 5000 send_done_trigger 7\n\
    1->2 id 2 trigger 7 size 5000 recv_done_trigger 8 prio 3\n\
    2->3 id 3 trigger 8 size 5000 prio 1\n\
    trigger id 7 oneshot\ntrigger id 8 barrier count 1\n\
    failure switch_type AGG switch_id 2 link_id 5\n";

#[test]
fn reads_flows_triggers_and_failures() {
    let matrix = read_cm(RING, "x.cm").expect("valid");
    assert_eq!((matrix.nodes, matrix.flows.len()), (4, 3));
    let second = CmFlow {
        src: HostId(1),
        dst: HostId(2),
        id: Some(2),
        msg: None,
        start: Start::Trigger(0),
        size: 5000,
        send_done: None,
        recv_done: Some(1),
        prio: Some(3),
    };
    assert_eq!(matrix.flows[1], second);
    assert_eq!(matrix.flows[0].start, Start::At(Time(100)));
    assert_eq!(matrix.triggers[1], CmTrigger { id: 8, kind: TriggerKind::Barrier(1) });
    let failure = LinkFailure { switch_type: SwitchType::Agg, switch: 2, link: 5 };
    assert_eq!(matrix.failures, [failure]);
    let plan = matrix.plan();
    let prios: Vec<u8> = plan.flows.iter().map(|flow| flow.prio).collect();
    assert_eq!(prios, [2, 1, 0], "a flow without prio comes last");
    assert!(plan.schedules(4, units::Dur(1)).is_ok());
}

#[test]
fn starts_are_exact_and_size_zero_never_ends() {
    let text =
        "Nodes 2\nConnections 2\n0->1 start 16777217 size 0\n1->0 start 0.000000 size 5000000000\n";
    let matrix = read_cm(text, "x").expect("valid");
    assert_eq!(matrix.flows[0].start, Start::At(Time(16_777_217)), "a 32-bit float cannot");
    assert_eq!(matrix.flows[0].size, UNBOUNDED);
    assert_eq!(matrix.flows[1].size, 5_000_000_000, "31 bits cannot");
    assert!(matrix.plan().flows.iter().all(|flow| flow.prio == 0));
}

#[test]
fn messages_of_one_connection_are_in_order() {
    let text =
        "Nodes 2\nConnections 2\n0->1 id 5 msg 1 start 0 size 9\n0->1 id 5 msg 2 start 0 size 9\n";
    let plan = read_cm(text, "x").expect("valid").plan();
    assert_eq!([plan.flows[0].channel, plan.flows[1].channel], [5, 5]);
    let unnumbered = text.replace("msg 1", "msg").replace("msg 2", "msg");
    let matrix = read_cm(&unnumbered, "x").expect("valid");
    assert_eq!(matrix.flows.iter().map(|f| f.msg).collect::<Vec<_>>(), [Some(0), Some(0)]);
    for (from, to) in [("msg 2", "msg 1"), ("msg 2 ", ""), ("0->1 id 5 msg 2", "1->0 id 5 msg 2")] {
        let error = read_cm(&text.replace(from, to), "x").expect_err(to);
        assert_eq!((error.line, error.column), (4, 9), "{error}");
    }
}

#[test]
fn a_larger_matrix_than_the_fabric_is_an_error() {
    let matrix = read_cm(RING, "x.cm").expect("valid");
    assert_eq!(matrix.check_hosts(4), Ok(()));
    let error = matrix.check_hosts(3).expect_err("too small");
    assert_eq!((error.file.as_str(), error.line, error.column), ("x.cm", 2, 7));
    assert_eq!(error.value, "4");
}

/// Replaces `from` in [`RING`] and returns the error.
fn broken(from: &str, to: &str) -> (u32, u32, String, String) {
    assert!(RING.contains(from), "{from}");
    let error = read_cm(&RING.replacen(from, to, 1), "x").expect_err(to);
    assert!(!error.hint.is_empty());
    (error.line, error.column, error.value, error.message)
}

#[test]
fn starts_count_in_the_unit_that_the_caller_names() {
    let start = |text: &str, unit| {
        let read = read_cm_in(&RING.replace("start 100", text), "x.cm", unit);
        read.map(|matrix| matrix.flows[0].start).map_err(|e| e.message)
    };
    let us = StartUnit::Microseconds;
    assert_eq!(start("start 40", us), Ok(Start::At(Time(40_000_000))));
    assert_eq!(start("start 1.5", us), Ok(Start::At(Time(1_500_000))));
    assert_eq!(start("start 0.0000010", us), Ok(Start::At(Time(1))));
    assert_eq!(start("start 40", StartUnit::Picoseconds), Ok(Start::At(Time(40))));
    let fine = "the start is not a whole number of picoseconds".to_owned();
    assert_eq!(start("start 0.0000001", us), Err(fine.clone()));
    assert_eq!(start("start 1.x", us), Err(fine));
    assert_eq!(start("start 9223372036855", us), Err("the start is too large".to_owned()));
}

#[test]
fn errors_name_the_place_and_the_value() {
    let cases: [(&str, &str, u32, u32, &str, &str); 29] = [
        ("Nodes 4\n", "", 1, 1, "", "Nodes is missing"),
        ("Nodes 4", "Nodes four", 2, 7, "four", "Nodes is not a whole number"),
        ("Nodes 4", "Nodes", 2, 6, "", "Nodes is missing"),
        ("Nodes 4", "Nodes 4 5", 2, 9, "5", "a second value"),
        (
            "Connections 3",
            "Connections 4",
            3,
            13,
            "4",
            "Connections disagrees with the file, which has 3 flows",
        ),
        ("Triggers 2\n", "", 1, 1, "", "Triggers disagrees with the file, which has 2 triggers"),
        ("Failures 1", "Nodes 1", 5, 1, "Nodes", "given twice"),
        ("Failures 1", "Failure 1", 5, 1, "Failure", "unknown line"),
        ("0->1", "0->0", 6, 1, "0->0", "the flow goes from a host to itself"),
        ("0->1", "0->4", 6, 4, "4", "no such host: the file has 4 nodes"),
        ("0->1", "->1", 6, 1, "", "the source is missing"),
        ("0->1", "0->-1", 6, 4, "-1", "the destination is negative"),
        ("id 1", "id 0", 6, 9, "0", "the flow id is zero"),
        ("id 1", "id 2", 7, 9, "2", "this flow id is used twice"),
        ("id 1", "addon", 6, 6, "addon", "addon is not supported"),
        ("id 1", "ID 1", 6, 6, "ID", "unknown attribute"),
        ("start 100", "", 6, 1, "0->1", "the flow has neither start nor trigger"),
        ("start 100", "start 1.5", 6, 17, "1.5", "the start is not a whole number"),
        (
            "start 100",
            "start 99999999999999999999",
            6,
            17,
            "99999999999999999999",
            "the start is too large",
        ),
        ("2 trigger 7", "2 trigger 7 start 1", 7, 21, "start", "both start and trigger"),
        ("2 trigger 7", "2 trigger 9", 7, 19, "9", "this trigger is not defined"),
        ("size 5000", "", 6, 1, "0->1", "the flow has no size"),
        ("size 5000", "size -1", 6, 26, "-1", "the size is negative"),
        ("size 5000", "size 0", 7, 19, "7", "this flow never starts: its trigger cannot fire"),
        (
            "recv_done_trigger 8",
            "recv_done_trigger 7",
            7,
            49,
            "7",
            "one activation too many for this oneshot: it takes 1",
        ),
        (
            "barrier count 1",
            "barrier count 2",
            8,
            19,
            "8",
            "this flow never starts: its trigger cannot fire",
        ),
        ("barrier count 1", "barrier", 10, 14, "barrier", "the barrier has no count"),
        ("trigger id 8", "trigger id 7", 10, 12, "7", "this trigger id is used twice"),
        ("AGG", "SPINE", 11, 21, "SPINE", "unknown switch type"),
    ];
    for (from, to, line, column, value, message) in cases {
        let expected = (line, column, value.to_owned(), message.to_owned());
        assert_eq!(broken(from, to), expected, "{from:?} -> {to:?}");
    }
}

#[test]
fn empty_and_cut_off_files_are_errors() {
    assert_eq!(read_cm("", "x").expect_err("empty").message, "Nodes is missing");
    let cut = RING.split_once("2->3").expect("has it").0;
    assert_eq!(
        read_cm(cut, "x").expect_err("cut").hint,
        "write Connections 2, or is the file cut off?"
    );
}

#[test]
fn many_priorities_are_too_many() {
    let flows: String = (0..257).map(|prio| format!("0->1 start 0 size 1 prio {prio}\n")).collect();
    let error = read_cm(&format!("Nodes 2\nConnections 257\n{flows}"), "x").expect_err("many");
    assert_eq!((error.line, error.column, error.value.as_str()), (259, 26, "256"));
}
