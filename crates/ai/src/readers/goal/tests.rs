use super::*;
use crate::readers::says;

fn read(text: &str) -> Result<Trace, TextError> {
    read_goal(text, "x", 8)
}

/// The tasks of a rank.
fn kinds(trace: &Trace, rank: u32) -> Vec<Kind> {
    trace.graph.tasks(Rank(rank)).iter().map(|task| task.kind).collect()
}

#[test]
fn reads_operations_and_what_they_wait_for() {
    let text = "\u{feff}// é\nnum_ranks 2\r\nrank 1 { recv 5b from 0 tag 3 }\nrank 0 {\n\
                b requires a\nb: send 5 b to 1 tag 3 cpu 2 nic 1\n/* a\n comment */ a:calc 7 cpu 9\n\
                c: calc 1\nc irequires b // at once\n}";
    let trace = read(text).expect("valid");
    assert_eq!(kinds(&trace, 1), [Kind::Recv { from: Rank(0), bytes: 5, tag: 3 }]);
    let expected = [
        Kind::Send { to: Rank(1), bytes: 5, tag: 3 },
        Kind::Compute { dur: Dur::from_ns(7), stream: 9 },
        Kind::Compute { dur: Dur::from_ns(1), stream: 0 },
    ];
    assert_eq!(kinds(&trace, 0), expected);
    let tasks = trace.graph.tasks(Rank(0));
    assert_eq!(tasks.after_end_of(1).collect::<Vec<_>>(), [0], "b requires a");
    assert_eq!(tasks.after_start_of(0).collect::<Vec<_>>(), [2], "c irequires b");
    let warnings: Vec<_> = trace.warnings.iter().map(|w| (w.count, w.what)).collect();
    assert_eq!(warnings, [(1, NIC_IGNORED)]);
}

#[test]
fn receives_from_any_source_get_the_first_send_that_fits() {
    let text = "num_ranks 4\nrank 0 {\nrecv 1b from -1 tag -1\nrecv 2b from -1 tag 5\n\
                recv 3b from 3 tag -1\nrecv 4b from 1 tag 6\n}\n\
                rank 1 {\nsend 4b to 0 tag 6\n}\nrank 2 {\nsend 1b to 0 tag 4\nsend 2b to 0 tag 5\n}\n\
                rank 3 {\nsend 3b to 0 tag 9\n}\n";
    let trace = read(text).expect("valid");
    let recv = |from, bytes, tag| Kind::Recv { from: Rank(from), bytes, tag };
    assert_eq!(kinds(&trace, 0), [recv(2, 1, 4), recv(2, 2, 5), recv(3, 3, 9), recv(1, 4, 6)]);
    assert_eq!(trace.warnings[0].count, 3);
}

/// Sizes choose first, in the order of each source; sends that a later receive names are left.
#[test]
fn receives_from_any_source_look_for_their_size() {
    let text = |block: &str| {
        format!(
            "num_ranks 3\nrank 0 {{\n{block}\n}}\nrank 1 {{\nsend 100b to 0\nsend 300b to 0 tag 2\n}}\n\
             rank 2 {{\nsend 200b to 0\nsend 400b to 0\n}}\n"
        )
    };
    let of = |block: &str| {
        let trace = read(&text(block)).unwrap_or_else(|e| panic!("{e}"));
        let resized = trace.warnings.iter().find(|w| w.what.contains("whose size"));
        let list: Vec<(u32, u64, u32)> = kinds(&trace, 0)
            .into_iter()
            .map(|kind| match kind {
                Kind::Recv { from, bytes, tag } => (from.0, bytes, tag),
                other => panic!("{other:?}"),
            })
            .collect();
        (list, resized.map_or(0, |w| w.count))
    };
    let any = |sizes: &[u64]| {
        sizes.iter().map(|b| format!("recv {b}b from -1 tag -1\n")).collect::<String>()
    };
    let all = vec![(1, 300, 2), (2, 200, 0), (2, 400, 0), (1, 100, 0)];
    assert_eq!(of(&any(&[300, 200, 400, 100])), (all, 0));
    // Nothing of 400 is next in its turn: the first of all, and its size.
    let first = vec![(1, 100, 0), (2, 200, 0), (1, 300, 2), (2, 400, 0)];
    assert_eq!(of(&any(&[400, 200, 300, 400])), (first, 1));
    // The second send of rank 2 is promised, so the first one goes to who asks first.
    let named = "recv 300b from 1 tag -1\nrecv 200b from -1\nrecv 400b from 2\nrecv 100b from -1";
    assert_eq!(of(named), (vec![(1, 300, 2), (2, 200, 0), (2, 400, 0), (1, 100, 0)], 0));
}

#[test]
fn errors_name_the_place_and_the_value() {
    let two = |block: &str| format!("num_ranks 2\nrank 1 {{}}\nrank 0 {{\n{block}\n}}\n");
    let cases = [
        (String::new(), 1, 1, "", "num_ranks is missing here"),
        ("ranks 2".to_owned(), 1, 1, "ranks", "num_ranks is missing here"),
        ("num_ranks".to_owned(), 1, 10, "", "num_ranks is missing"),
        ("num_ranks 0\n".to_owned(), 1, 11, "0", "a job without ranks"),
        (
            "num_ranks 4000000000\nrank 0{}\n".to_owned(),
            1,
            11,
            "4000000000",
            "a file of 30 bytes cannot hold so many ranks",
        ),
        (
            "num_ranks 9\n".to_owned() + &"/* many */".repeat(9),
            1,
            11,
            "9",
            "more ranks than the 8 that there is room for",
        ),
        ("num_ranks 1\nrank 0 {} }".to_owned(), 2, 11, "}", "\"rank\" is missing here"),
        ("num_ranks 1\nrank 1 {}".to_owned(), 2, 6, "1", "no such rank: num_ranks is 1"),
        ("num_ranks 1\nrank 0 calc".to_owned(), 2, 8, "calc", "\"{\" is missing here"),
        ("num_ranks 2\nrank 0 {\n}\n".to_owned(), 3, 2, "", "rank 1 has no block"),
        ("num_ranks 1\nrank 0 {\ncalc 5\n".to_owned(), 4, 1, "", "the block of rank 0 has no end"),
        (
            "num_ranks 2\nrank 0 {}\nrank 0 {}".to_owned(),
            3,
            6,
            "0",
            "this rank has a block already",
        ),
        (two("/* calc 5"), 4, 1, "/*", "a comment without an end"),
        (two("clac 5"), 4, 1, "clac", "a label without its operation"),
        (two("1a: calc 5"), 4, 1, "1a", "neither an operation nor a label"),
        (two("a: a requires a"), 4, 4, "a", "no operation"),
        (two("a: calc 5\na: calc 5"), 5, 1, "a", "this label is defined twice"),
        (two("a: calc 5\na requires bé"), 5, 12, "bé", "neither an operation nor a label"),
        (
            two("step1: calc 5\nstep1 requires step2"),
            5,
            16,
            "step2",
            "this label is not defined in its block",
        ),
        (two("a: calc 5\na irequires a"), 5, 13, "a", "it waits for itself"),
        (two("calc -5"), 4, 6, "-5", "the time of calc is negative"),
        (two("calc 1000000000000001"), 4, 6, "1000000000000001", "the time of calc is too large"),
        (
            two("send 18446744073709551614b to 1"),
            4,
            6,
            "18446744073709551614",
            "the size is too large",
        ),
        (two("calc 5 tag 1"), 4, 8, "tag", "this does not belong here"),
        (two("calc 5 cpu 256"), 4, 12, "256", "cpu is too large"),
        (two("send 5 to 1"), 4, 8, "to", "\"b\" is missing here"),
        (two("send 5.5b to 1"), 4, 6, "5.5", "the size is not a whole number"),
        (two("send 5b from 1"), 4, 9, "from", "\"to\" is missing here"),
        (two("send 5b to 2"), 4, 12, "2", "no such rank: num_ranks is 2"),
        (two("send 5b to -1"), 4, 12, "-1", "the rank is negative"),
        (two("recv 5b from 0"), 4, 14, "0", "rank 0 waits for a message of its own"),
        (two("send 5b to 1 tag -1"), 4, 18, "-1", "the tag is negative"),
        (two("send 5b to 1 nic 0 cpu 0"), 4, 20, "cpu", "this does not belong here"),
        (two("recv 5b from -1"), 4, 1, "recv", "no send is left for this receive"),
    ];
    for (text, line, column, value, message) in cases {
        let error = read(&text).expect_err(&text);
        assert_eq!(says(&error), (line, column, value, message), "{text:?}");
    }
}

/// Where the graph is wrong, and not a line of its own, the error still stands at a line.
#[test]
fn tasks_that_cannot_end_are_errors_with_a_place() {
    let cases = [
        (
            "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n}",
            (3, 4, "calc 1"),
            "wait for each other",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 5b to 1 tag 1\n}\nrank 1 {\nrecv 5b from 0 tag 2\n}",
            (3, 1, "send 5b to 1 tag 1"),
            "no counterpart",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 5b to 1\n}\nrank 1 {\nrecv 6b from 0\n}",
            (6, 1, "recv 6b from 0"),
            "waits for 6 bytes",
        ),
        (
            "num_ranks 2\nrank 0 {\na: recv 5b from 1\nb: send 5b to 1\nb requires a\n}\n\
             rank 1 {\na: recv 5b from 0\nb: send 5b to 0\nb requires a\n}",
            (3, 4, "recv 5b from 1"),
            "wait for each other",
        ),
    ];
    for (text, (line, column, value), message) in cases {
        let error = read(text).expect_err(text);
        let (found_line, found_column, found_value, found) = says(&error);
        assert_eq!((found_line, found_column, found_value), (line, column, value), "{error}");
        assert!(found.contains(message), "{error}");
    }
}

/// Places are counted in errors only. Otherwise twenty times the lines took four hundred times the
/// time; other programs only ever take time.
#[test]
fn a_long_file_is_read_in_proportion_to_its_length() {
    let least = |lines: usize| {
        let mut text = "num_ranks 1\nrank 0 {\nl0: calc 1\n".to_owned();
        for line in 1..lines {
            text += &format!("l{line}: calc 1 // work\nl{line} requires l{}\n", line - 1);
        }
        text += "}\n";
        let time = |_| {
            let started = std::time::Instant::now();
            assert_eq!(read(&text).expect("valid").graph.len(), lines as u64);
            started.elapsed()
        };
        (0..5).map(time).min().expect("five")
    };
    let (short, long) = (least(2_500), least(50_000));
    assert!(long < 150 * short, "{short:?} and {long:?}");
}
