use prost::Message;

use super::proto::{Attribute, GlobalMetadata, IoInfo, Value};
use super::*;

/// Records, each with its length, the first of them metadata.
fn file(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = GlobalMetadata { version: "0.0.4".to_owned(), attr: Vec::new() }
        .encode_length_delimited_to_vec();
    nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
    bytes
}

fn node(id: u64, kind: i32, attr: &[(&str, Value)]) -> Node {
    let attr = attr
        .iter()
        .map(|(name, value)| Attribute { name: (*name).to_owned(), value: Some(value.clone()) });
    Node { id, kind, attr: attr.collect(), ..Node::default() }
}

fn after(node: Node, data_deps: &[u64]) -> Node {
    Node { data_deps: data_deps.to_vec(), ..node }
}

/// Read one file for each rank.
fn read(ranks: &[Vec<u8>]) -> Result<Trace, ReadError> {
    read_with(ranks, None, None, None)
}

fn read_with(
    ranks: &[Vec<u8>],
    groups: Option<&str>,
    system: Option<&str>,
    network: Option<&str>,
) -> Result<Trace, ReadError> {
    let names: Vec<String> = (0..ranks.len()).map(|rank| format!("x.{rank}.et")).collect();
    let files = names.iter().zip(ranks).map(|(name, bytes)| File { name, bytes });
    let groups = groups.map(|text| File { name: "groups.json", bytes: text.as_bytes() });
    let system = system.map(|text| File { name: "system.json", bytes: text.as_bytes() });
    let network = network.map(|text| File { name: "network.json", bytes: text.as_bytes() });
    read_chakra(&files.collect::<Vec<_>>(), &Options { ranks: 8, groups, system, network })
}

fn message(error: &ReadError) -> String {
    match error {
        ReadError::Record(error) => {
            assert!(!error.hint.is_empty());
            let first = error.to_string();
            first.split("\n  hint").next().unwrap_or("").to_owned()
        }
        ReadError::Text(error) => error.to_string(),
    }
}

const COMPUTE: i32 = 4;
const SEND: i32 = 5;
const RECV: i32 = 6;
const COLLECTIVE: i32 = 7;

fn size(bytes: i64) -> (&'static str, Value) {
    ("comm_size", Value::Int64(bytes))
}

fn all_reduce(id: u64) -> Node {
    node(id, COLLECTIVE, &[("comm_type", Value::Int64(0)), size(100)])
}

fn kinds(trace: &Trace, rank: u32) -> Vec<Kind> {
    trace.graph.tasks(Rank(rank)).iter().map(|task| task.kind).collect()
}

#[test]
fn nodes_become_tasks_in_the_order_of_their_ids() {
    let work = Node { duration_us: 3, ..node(7, COMPUTE, &[("is_cpu_op", Value::Bool(true))]) };
    let send =
        node(5, SEND, &[("comm_dst", Value::Uint32(1)), size(10), ("comm_tag", Value::Sint32(4))]);
    let recv =
        node(2, RECV, &[("comm_src", Value::Fixed64(0)), size(10), ("comm_tag", Value::Int32(4))]);
    let load = node(9, 2, &[]);
    let trace = read(&[
        file(&[after(work, &[5]), after(node(6, COMPUTE, &[]), &[7]), send, load]),
        file(&[Node { name: "wait".to_owned(), ..recv }]),
    ]);
    let trace = trace.expect("valid");
    let expected = [
        Kind::Send { to: Rank(1), bytes: 10, tag: 4 },
        Kind::Compute { dur: NO_DURATION, stream: 0 },
        Kind::Compute { dur: Dur::from_us(3), stream: 1 },
        POINT,
    ];
    assert_eq!(kinds(&trace, 0), expected);
    let tasks = trace.graph.tasks(Rank(0));
    assert_eq!(tasks.after_end_of(0).collect::<Vec<_>>(), [2]);
    assert_eq!(tasks.after_end_of(2).collect::<Vec<_>>(), [1]);
    let recv = trace.graph.tasks(Rank(1)).get(0);
    assert_eq!(recv.kind, Kind::Recv { from: Rank(0), bytes: 10, tag: 4 });
    assert_eq!(trace.graph.text(recv.label.expect("named")), "wait");
    assert_eq!(trace.warnings, [super::super::Warning { count: 1, what: MEMORY }]);
}

#[test]
fn groups_come_from_the_trace_and_from_json() {
    let of = |name: &str, comm_type: i64| {
        let attr = [
            ("pg_name", Value::Text(name.to_owned())),
            size(100),
            ("comm_type", Value::Int64(comm_type)),
        ];
        node(1, COLLECTIVE, &attr)
    };
    let inputs = IoInfo { values: "['[{\"pg_name\": \"7\", \"ranks\": [2, 0]}]']".to_owned() };
    let metadata = Node { inputs: Some(inputs), ..node(9, 1, &[]) };
    let in_pair = file(&[of("7", 2), metadata]);
    let alone = file(&[of("8", 7)]);
    let trace = read_with(&[in_pair.clone(), alone, in_pair], Some("{\"8\": [1]}"), None, None)
        .expect("valid");
    let Kind::Collective { group, op, bytes } = kinds(&trace, 0)[0] else { panic!("{trace:?}") };
    assert_eq!((op, bytes), (Op::AllGather, 200), "an all-gather's size is what one rank brings");
    assert_eq!(trace.graph.members(group), [Rank(2), Rank(0)]);
    assert_eq!(kinds(&trace, 1), [POINT], "a group of one has nothing to do");
    let everyone = read(&[file(&[all_reduce(1)]), file(&[of("0", 0)])]).expect("valid");
    assert_eq!(everyone.graph.instances(), 1);
}

#[test]
fn collectives_that_astra_sim_does_not_run_take_their_time() {
    for comm_type in [1, 3, 4, 5] {
        let node = node(0, COLLECTIVE, &[("comm_type", Value::Int64(comm_type)), size(100)]);
        let trace = read(&[file(&[Node { duration_us: 4, ..node }])]).expect("valid");
        assert_eq!(kinds(&trace, 0), [Kind::Compute { dur: Dur::from_us(4), stream: COMM_STREAM }]);
        assert_eq!(trace.warnings[0].what, REPLAYED);
    }
}

#[test]
fn errors_name_the_record() {
    let send = |attr: &[(&str, Value)]| {
        let mut all = vec![("comm_dst", Value::Int32(1)), size(10)];
        all.extend(attr.iter().cloned());
        file(&[node(3, SEND, &all)])
    };
    let coll = |attr: &[(&str, Value)]| file(&[node(3, COLLECTIVE, attr)]);
    let idle = file(&[]);
    let mut cut = file(&[all_reduce(0)]);
    cut.truncate(cut.len() - 1);
    let cases = [
        (Vec::new(), "x.0.et: the file is empty"),
        (vec![0xff; 20], "x.0.et: record 1 at byte 0: its length is cut off or too long"),
        (
            vec![0xff, 0xff, 0xff, 0xff, 0x0f, 1],
            "x.0.et: record 1 at byte 0: a record of 4294967295 bytes, but the file has 1 more",
        ),
        (cut, "x.0.et: record 2 at byte 8: a record of 32 bytes, but the file has 31 more"),
        (
            file(&[node(1, 8, &[])]),
            "x.0.et: record 2 at byte 8: node 1 (\"\"): unknown type: \"8\"",
        ),
        (
            file(&[node(1, 1, &[]), node(1, 0, &[])]),
            "x.0.et: record 3 at byte 13: record 2 has the same id: \"1\"",
        ),
        (
            file(&[after(node(1, 4, &[]), &[2])]),
            "x.0.et: record 2 at byte 8: node 1 (\"\"): it waits for a node that the file does not \
             have: \"2\"",
        ),
        (
            file(&[after(node(1, 4, &[]), &[1])]),
            "x.0.et: record 2 at byte 8: tasks wait for each other: task 0 of rank 0 for itself",
        ),
        (
            send(&[("comm_src", Value::Int32(1))]),
            "x.0.et: record 2 at byte 8: node 3 (\"\"): comm_src is not rank 0, whose file this is: \
             \"1\"",
        ),
        (
            send(&[("comm_tag", Value::Int64(-1))]),
            "x.0.et: record 2 at byte 8: node 3 (\"\"): comm_tag does not fit 32 bits: \"-1\"",
        ),
        (
            send(&[]),
            "x.0.et: record 2 at byte 8: task 0 of rank 0 has no counterpart: from rank 0 to \
             rank 1 with tag 0 there are 1 sends and 0 receives",
        ),
        (
            file(&[node(3, RECV, &[size(1)])]),
            "x.0.et: record 2 at byte 8: node 3 (\"\"): it has no integer comm_src",
        ),
        (
            file(&[node(3, SEND, &[("comm_dst", Value::Int32(7)), size(1)])]),
            "x.0.et: record 2 at byte 8: rank 7 is named, but the job has 2, numbered from 0",
        ),
        (
            coll(&[("comm_type", Value::Int64(10))]),
            "x.0.et: record 2 at byte 8: node 3 (\"\"): unknown comm_type: \"10\"",
        ),
        (
            coll(&[("comm_type", Value::Int64(0))]),
            "x.0.et: record 2 at byte 8: node 3 (\"\"): it has no integer comm_size",
        ),
        (
            coll(&[("comm_type", Value::Int64(0)), size(-5)]),
            "x.0.et: record 2 at byte 8: node 3 (\"\"): comm_size is no size: \"-5\"",
        ),
        (
            coll(&[
                ("comm_type", Value::Int64(0)),
                ("pg_name", Value::Text("é".to_owned())),
                size(1),
            ]),
            "x.0.et: record 2 at byte 8: node 3 (\"\"): neither the trace nor the file of groups has \
             this group: \"é\"",
        ),
        (
            file(&[all_reduce(0)]),
            "x.0.et: record 2 at byte 8: rank 1 never takes part in the collective of task 0 of rank \
             0: it is number 1 of the group",
        ),
        (
            file(&[Node { duration_us: u64::MAX, ..node(0, COMPUTE, &[]) }]),
            "x.0.et: record 2 at byte 8: node 0 (\"\"): the duration is too long: \
             \"18446744073709551615\"",
        ),
    ];
    for (bytes, expected) in cases {
        let error = read(&[bytes, idle.clone()]).expect_err(expected);
        assert_eq!(message(&error), expected);
    }
}

#[test]
fn files_that_are_no_traces_say_so() {
    for (bytes, expected) in
        [(&b"\x05hello"[..], "not metadata"), (b"\x00\x03\x08\xff\xff", "not a node")]
    {
        let error = read(&[bytes.to_vec()]).expect_err(expected);
        assert!(message(&error).contains(expected), "{error}");
    }
}

#[test]
fn groups_that_the_job_cannot_have_are_errors() {
    for (groups, expected) in [
        ("[1]", "groups.json:1:1: not a list of groups: invalid type: sequence, expected a map"),
        ("{\"1\": [0, 0]}", "groups.json:1:1: group \"1\" names rank 0 twice"),
        ("{\"1\": [9]}", "groups.json:1:1: group \"1\" names rank 9, but the job has 1, from 0"),
        ("{\"1\": []}", "groups.json:1:1: group \"1\" has no ranks"),
    ] {
        let error = read_with(&[file(&[])], Some(groups), None, None).expect_err(expected);
        assert!(message(&error).starts_with(expected), "{error}");
    }
}

#[test]
fn file_names_say_which_rank_they_are_of() {
    let bytes = file(&[]);
    let read = |names: &[&str]| {
        let files: Vec<_> = names.iter().map(|&name| File { name, bytes: &bytes }).collect();
        read_chakra(&files, &Options { ranks: 2, groups: None, system: None, network: None })
    };
    assert!(read(&["a/b.1.et", "a/b.0.et"]).is_ok());
    for (names, expected) in [
        (&[][..], ": no files"),
        (&["x.et"], "x.et: the file's name does not say its rank"),
        (&["x.1.et"], "x.1.et: a file of rank 1, but none of rank 0, or two"),
        (&["x.0.et", "y.0.et"], "y.0.et: a file of rank 0, but none of rank 1, or two"),
        (&["x.0.et", "x.1.et", "x.2.et"], "x.0.et: 3 files, but there is room for 2 ranks"),
    ] {
        assert_eq!(message(&read(names).expect_err(expected)), expected);
    }
}

#[test]
fn a_system_cuts_collectives_into_pieces() {
    let wait = after(node(2, COMPUTE, &[]), &[1]);
    let ranks = [file(&[node(0, COMPUTE, &[]), after(all_reduce(1), &[0]), wait])];
    let two = [ranks[0].clone(), ranks[0].clone()];
    let system = "{\"preferred-dataset-splits\": 3, \"active-chunks-per-dimension\": 2,
        \"all-reduce-implementation\": [\"halvingDoubling\"],
        \"all-to-all-implementation\": [\"direct\"], \"endpoint-delay\": 10}";
    let trace = read_with(&two, None, Some(system), None).expect("valid");
    assert_eq!(trace.algorithm, Some(crate::collective::Algorithm::HalvingDoubling));
    assert_eq!(trace.warnings.iter().map(|w| w.count).collect::<Vec<_>>(), [1, 1]);
    let sizes = kinds(&trace, 0).into_iter().filter_map(|kind| match kind {
        Kind::Collective { bytes, .. } => Some(bytes),
        _ => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [33, 33, 34]);
    let tasks = trace.graph.tasks(Rank(0));
    let ends = |task| tasks.after_end_of(task).collect::<Vec<_>>();
    let expected: [&[u32]; 6] = [&[1], &[2, 3], &[4], &[5], &[5], &[6]];
    assert_eq!((0..6).map(ends).collect::<Vec<_>>(), expected);
}

#[test]
fn systems_that_cannot_be_are_errors() {
    for (system, expected) in [
        (
            "[",
            "system.json:1:1: not a system of astra-sim: invalid type: sequence, expected an object",
        ),
        (
            "{\"preferred-dataset-splits\": 257}",
            "system.json:1:30: preferred-dataset-splits is out of range: \"257\"",
        ),
        (
            "{\n\"active-chunks-per-dimension\": 0}",
            "system.json:2:32: active-chunks-per-dimension is out of range: \"0\"",
        ),
        (
            "{\"all-gather-implementation\": [\"rang\"]}",
            "system.json:1:33: unknown implementation: \"rang\"",
        ),
        (
            "{\"all-gather-implementation\": [\"ring\", \"ring\"]}",
            "system.json:1:13: an implementation for 2 dimensions",
        ),
    ] {
        let error = read_with(&[file(&[])], None, Some(system), None).expect_err(expected);
        assert!(message(&error).starts_with(expected), "{error}");
    }
}

#[test]
fn a_network_has_as_many_ranks_as_the_trace() {
    let read = |network| read_with(&[file(&[]), file(&[])], None, None, Some(network));
    let trace = read("{\"logical-dims\": [\"2\", \"1\"], \"other\": 1}").expect("valid");
    let counts: Vec<u64> = trace.warnings.iter().map(|warning| warning.count).collect();
    assert_eq!(counts, [1, 1], "{:?}", trace.warnings);
    for (network, expected) in [
        (
            "{\n\"logical-dims\": [\"2\", \"4\"]}",
            "network.json:2:2: a network of 8 ranks, and the trace has 2",
        ),
        ("{\"logical-dims\": [\"two\"]}", "network.json:1:3: logical-dims are not numbers"),
        ("topology: [ Ring ]", "network.json:1:2: not a network of astra-sim: expected ident"),
        ("{}", "network.json:1:1: not a network of astra-sim: there is no `logical-dims`"),
        ("{\n\"logical-dims\": [4]}", "network.json:2:2: logical-dims are not numbers"),
    ] {
        let error = read(network).expect_err(expected);
        assert!(message(&error).starts_with(expected), "{error}");
    }
}
