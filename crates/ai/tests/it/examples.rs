//! The files of `tests/data`, read and counted.

use std::path::{Path, PathBuf};

use trimline_ai::readers::{File, Format, Options, Trace, read};
use trimline_ai::{Kind, Op, Rank};

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// The trace in a file of `tests/data`, or in the files of a folder there.
fn trace(name: &str, room: u32) -> Trace {
    let path = data(name);
    let mut paths = vec![path.clone()];
    if path.is_dir() {
        paths = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    }
    let files: Vec<(String, Vec<u8>)> = paths
        .iter()
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .collect();
    let files: Vec<File<'_>> = files.iter().map(|(name, bytes)| File { name, bytes }).collect();
    let format = Format::of(files[0].name).expect("a known end");
    read(&files, format, &Options { ranks: room, groups: None, system: None, network: None })
        .unwrap_or_else(|error| panic!("{error}"))
}

/// How many tasks of each kind all ranks have: computations, sends, receives, collectives.
fn counts(trace: &Trace) -> [usize; 4] {
    let mut counts = [0; 4];
    for rank in (0..trace.graph.ranks()).map(Rank) {
        for task in trace.graph.tasks(rank).iter() {
            counts[match task.kind {
                Kind::Compute { .. } => 0,
                Kind::Send { .. } => 1,
                Kind::Recv { .. } => 2,
                Kind::Collective { .. } => 3,
            }] += 1;
        }
    }
    counts
}

#[test]
fn astra_sims_micro_benchmarks_are_one_collective_each() {
    const MIB: u64 = 1 << 20;
    for ranks in [4, 8, 16] {
        for (name, op, bytes) in [
            ("all_reduce", Op::AllReduce, MIB),
            // What one rank brings, times their number.
            ("all_gather", Op::AllGather, MIB * u64::from(ranks)),
            ("reduce_scatter", Op::ReduceScatter, MIB),
            ("all_to_all", Op::AllToAll, MIB),
        ] {
            let trace = trace(&format!("astra-sim/{name}/{ranks}npus_1MB"), 16);
            assert_eq!(trace.graph.ranks(), ranks);
            assert_eq!(counts(&trace), [0, 0, 0, ranks as usize], "{name}");
            assert_eq!((trace.graph.instances(), trace.warnings.len()), (1, 0), "{name}");
            let task = trace.graph.tasks(Rank(0)).get(0);
            let Kind::Collective { group, op: found, bytes: size } = task.kind else { panic!() };
            assert_eq!((found, size), (op, bytes), "{name}");
            assert_eq!(trace.graph.members(group).len(), ranks as usize);
            let label = trace.graph.text(task.label.expect("named"));
            assert!(label.starts_with(name), "{label}");
        }
    }
}

#[test]
fn chakra() {
    let pair = trace("pair", 8);
    assert_eq!(counts(&pair), [1, 2, 2, 0]);
    let bytes = std::fs::read(data("nodes.0.et")).unwrap();
    let names: Vec<String> = (0..4).map(|rank| format!("nodes.{rank}.et")).collect();
    let files = names.iter().map(|name| File { name, bytes: &bytes }).collect::<Vec<_>>();
    let of = |ranks: usize| {
        read(
            &files[..ranks],
            Format::Chakra,
            &Options { ranks: 8, groups: None, system: None, network: None },
        )
    };
    let trace = of(2).unwrap();
    assert_eq!(counts(&trace), [2 * 6, 0, 0, 2 * 3]);
    let warnings: Vec<_> = trace.warnings.iter().map(|warning| warning.count).collect();
    assert_eq!(warnings, [2, 2, 2], "{:?}", trace.warnings);
    let error = of(4).expect_err("group 1 has two of the four ranks").to_string();
    let expected = "nodes.2.et: record 5 at byte ";
    assert!(error.starts_with(expected) && error.contains("rank 2 is not in the group"), "{error}");
}

#[test]
fn goal() {
    let tree = trace("tree_8.goal", 8);
    assert_eq!(counts(&tree), [8, 14, 14, 0]);
    assert!(tree.warnings.is_empty());
    let any = trace("any_3.goal", 8);
    assert_eq!(counts(&any), [1, 4, 4, 0]);
    let warnings: Vec<_> = any.warnings.iter().map(|warning| warning.count).collect();
    assert_eq!(warnings, [1, 2], "{:?}", any.warnings);
}

#[test]
fn simai() {
    let transformer = trace("transformer_8.txt", 64);
    assert_eq!((transformer.graph.ranks(), transformer.graph.steps()), (8, 1));
    // A rank's collectives: three forward and two of them again, two of input gradients, three of
    // weights. All but the last layer's have an update. Computations: four forward and two again,
    // four of each gradient.
    assert_eq!(counts(&transformer), [8 * (14 + 9), 0, 0, 8 * 10]);
    assert_eq!(transformer.warnings.len(), 2);
    let micro = trace("micro.txt", 64);
    assert_eq!((micro.graph.ranks(), micro.graph.steps()), (64, 3));
    assert_eq!(counts(&micro), [3 * 64, 0, 0, 3 * 64]);
}

#[test]
fn aicb() {
    let pipeline = trace("pipeline_8.csv", 64);
    assert_eq!((pipeline.graph.ranks(), pipeline.graph.steps()), (8, 2));
    // Both stages have four messages, half of them over the pipeline's end.
    assert_eq!(counts(&pipeline), [8 + 8 * 2, 8, 8, 8 * 8]);
    let micro = trace("micro.csv", 16);
    assert_eq!((micro.graph.ranks(), micro.graph.steps()), (16, 2));
    assert_eq!(counts(&micro), [0, 0, 0, 4 * 16]);
}

#[test]
fn a_trace_for_more_ranks_than_there_is_room_for_is_an_error() {
    for (name, place) in [
        ("tree_8.goal", ":2:11: more ranks than the 7"),
        ("transformer_8.txt", ":1:96: more GPUs than the 7"),
        ("pipeline_8.csv", ":19:40: more ranks than the 7"),
    ] {
        let bytes = std::fs::read(data(name)).unwrap();
        let files = [File { name, bytes: &bytes }];
        let format = Format::of(name).unwrap();
        let options = Options { ranks: 7, groups: None, system: None, network: None };
        let error = read(&files, format, &options).expect_err(name).to_string();
        assert!(error.starts_with(&format!("{name}{place}")), "{error}");
    }
}

#[test]
fn files_that_are_no_text_or_too_many_say_so() {
    let options = Options { ranks: 7, groups: None, system: None, network: None };
    let file = File { name: "x.goal", bytes: b"num_ranks 1\n\xff" };
    let error = read(&[file], Format::Goal, &options).expect_err("no text").to_string();
    assert!(error.starts_with("x.goal:1:12: the file is not text in UTF-8"), "{error}");
    let error = read(&[file, file], Format::Aicb, &options).expect_err("two").to_string();
    assert!(error.starts_with("x.goal:1:1: 2 files instead of one"), "{error}");
}
