use proptest::prelude::*;
use units::Dur;

use super::*;

const WORK: Kind = Kind::Compute { dur: Dur(5), stream: 0 };

fn send(to: u32, bytes: u64) -> Task {
    Task::new(Kind::Send { to: Rank(to), bytes, tag: 0 })
}

fn recv(from: u32, bytes: u64) -> Task {
    Task::new(Kind::Recv { from: Rank(from), bytes, tag: 0 })
}

fn add(job: &mut Builder, rank: u32, task: Task) -> TaskId {
    job.add(Rank(rank), task).unwrap()
}

fn collective(job: &mut Builder, rank: u32, op: Op, bytes: u64) -> Result<TaskId, Fault> {
    let group = job.everyone().unwrap();
    job.add(Rank(rank), Task::new(Kind::Collective { group, op, bytes }))
}

/// The faults that `finish` finds.
fn fault(job: Builder) -> String {
    job.finish().unwrap_err().to_string()
}

#[test]
fn tasks_keep_what_was_said() {
    let mut job = Builder::new(2).unwrap();
    let name = job.label("layer 1").unwrap();
    assert_eq!(job.label("layer 1").unwrap(), name);
    let work = add(&mut job, 0, Task { kind: WORK, step: 4, label: Some(name) });
    let first = add(&mut job, 0, send(1, 9));
    let second = add(&mut job, 0, send(1, 8));
    let last = add(&mut job, 1, recv(0, 9));
    add(&mut job, 1, recv(0, 8));
    job.after(first, work).unwrap();
    job.after_start(second, first).unwrap();
    job.after_start(second, first).unwrap();
    let graph = job.finish().unwrap();
    let tasks = graph.tasks(Rank(0));
    assert_eq!((graph.len(), graph.steps(), tasks.len()), (5, 5, 3));
    assert_eq!(graph.text(tasks.get(0).label.unwrap()), "layer 1");
    assert_eq!([0, 1, 2].map(|n| tasks.waits(n)), [0, 1, 1]);
    assert_eq!(tasks.after_end_of(0).collect::<Vec<_>>(), [1]);
    assert_eq!(tasks.after_start_of(1).collect::<Vec<_>>(), [2]);
    assert_eq!(tasks.after_end_of(1).count(), 0);
    assert_eq!([1, 2].map(|n| tasks.counterpart(n)), [Some(last.index), Some(1)]);
    assert_eq!((tasks.counterpart(0), tasks.instance(1)), (None, None));
}

#[test]
fn each_collective_of_a_group_is_one_for_all_members() {
    let mut job = Builder::new(3).unwrap();
    let pair = job.group(&[Rank(2), Rank(0)]).unwrap();
    let of_pair = Kind::Collective { group: pair, op: Op::AllToAll, bytes: 7 };
    for rank in [0, 2] {
        add(&mut job, rank, Task::new(of_pair));
    }
    for rank in 0..3 {
        collective(&mut job, rank, Op::AllReduce, 6).unwrap();
        collective(&mut job, rank, Op::Broadcast { root: Rank(1) }, 5).unwrap();
    }
    let graph = job.finish().unwrap();
    assert_eq!(graph.instances(), 3);
    assert_eq!(graph.members(pair), [Rank(2), Rank(0)]);
    let of = |rank, index| graph.instance(graph.tasks(Rank(rank)).instance(index).unwrap());
    for rank in [0, 2] {
        assert_eq!(of(rank, 0), Instance { group: pair, op: Op::AllToAll, bytes: 7 });
    }
    for (rank, index) in [(0, 1), (1, 0), (2, 1)] {
        assert_eq!((of(rank, index).op, of(rank, index).bytes), (Op::AllReduce, 6));
        assert_eq!(of(rank, index + 1).op, Op::Broadcast { root: Rank(1) });
    }
}

#[test]
fn what_cannot_be_added() {
    assert_eq!(Builder::new(0).unwrap_err(), Fault::Ranks(0));
    assert!(Builder::new(Builder::RANKS_MAX + 1).is_err());
    let mut job = Builder::new(2).unwrap();
    assert_eq!(job.group(&[]).unwrap_err(), Fault::EmptyGroup);
    assert_eq!(job.group(&[Rank(1), Rank(1)]).unwrap_err(), Fault::TwiceInGroup(Rank(1)));
    let unknown = Fault::NoSuchRank { rank: Rank(2), ranks: 2 };
    assert_eq!(job.group(&[Rank(2)]).unwrap_err(), unknown);
    assert_eq!(job.add(Rank(2), Task::new(WORK)).unwrap_err(), unknown);
    assert_eq!(job.add(Rank(0), send(2, 1)).unwrap_err(), unknown);
    let zeroth = TaskId { rank: Rank(0), index: 0 };
    assert_eq!(job.add(Rank(0), recv(0, 1)).unwrap_err(), Fault::ToItself(zeroth));
    let alone = job.group(&[Rank(1)]).unwrap();
    let reduce = Task::new(Kind::Collective { group: alone, op: Op::AllReduce, bytes: 1 });
    let outside = Fault::NotInGroup { task: zeroth, rank: Rank(0) };
    assert_eq!(job.add(Rank(0), reduce).unwrap_err(), outside);
    let op = Op::Broadcast { root: Rank(0) };
    let sent = Task::new(Kind::Collective { group: alone, op, bytes: 1 });
    assert!(matches!(job.add(Rank(1), sent), Err(Fault::NotInGroup { rank: Rank(0), .. })));
    let work = add(&mut job, 0, Task::new(WORK));
    let other = add(&mut job, 1, Task::new(WORK));
    let none = TaskId { rank: Rank(0), index: 1 };
    assert_eq!(job.after(none, work).unwrap_err(), Fault::NoSuchTask(none));
    assert_eq!(
        job.after(work, other).unwrap_err().to_string(),
        "task 0 of rank 0 cannot wait for task 0 of rank 1: they are of different ranks; use a \
         message"
    );
    let itself = job.after_start(work, work).unwrap_err();
    assert_eq!(itself.to_string(), "tasks wait for each other: task 0 of rank 0 for itself");
    assert_eq!(itself.task(), Some(work));
}

#[test]
fn messages_without_a_counterpart() {
    let mut job = Builder::new(2).unwrap();
    add(&mut job, 0, send(1, 5));
    add(&mut job, 0, send(1, 6));
    add(&mut job, 1, recv(0, 5));
    let unmatched = job.clone().finish().unwrap_err();
    assert_eq!(unmatched.task(), Some(TaskId { rank: Rank(0), index: 1 }));
    assert_eq!(
        unmatched.to_string(),
        "task 1 of rank 0 has no counterpart: from rank 0 to rank 1 with tag 0 there are 2 sends \
         and 1 receives"
    );
    add(&mut job, 1, recv(0, 7));
    let expected = "task 1 of rank 1 waits for 7 bytes, but task 1 of rank 0 sends 6";
    assert_eq!(fault(job), expected);
    let mut job = Builder::new(2).unwrap();
    add(&mut job, 1, recv(0, 5));
    add(&mut job, 0, Task::new(Kind::Send { to: Rank(1), bytes: 5, tag: 1 }));
    assert!(fault(job).starts_with("task 0 of rank 1 has no counterpart"), "another tag");
}

#[test]
fn collectives_that_do_not_meet() {
    let mut job = Builder::new(3).unwrap();
    for rank in 0..3 {
        collective(&mut job, rank, Op::AllReduce, 8).unwrap();
    }
    let whole = job.clone();
    for rank in [0, 2] {
        collective(&mut job, rank, Op::AllGather, 8).unwrap();
    }
    assert_eq!(
        fault(job),
        "rank 1 never takes part in the collective of task 1 of rank 0: it is number 2 of the group"
    );
    let differs = |first: (Op, u64), second: (Op, u64)| {
        let mut job = whole.clone();
        for rank in 0..3 {
            let (op, bytes) = if rank == 2 { second } else { first };
            collective(&mut job, rank, op, bytes).unwrap();
        }
        fault(job)
    };
    let same = "task 1 of rank 0 and task 1 of rank 2 are the same collective of a group, but";
    let root = |rank| Op::Broadcast { root: Rank(rank) };
    assert_eq!(
        [
            differs((Op::AllReduce, 8), (Op::AllReduce, 9)),
            differs((Op::AllReduce, 8), (Op::Barrier, 8)),
            differs((root(0), 8), (root(1), 8)),
        ],
        [
            format!("{same} the size differs: 8 and 9 bytes"),
            format!("{same} the operation differs: all-reduce and barrier"),
            format!("{same} the root differs: rank 0 and rank 1"),
        ]
    );
}

#[test]
fn tasks_that_wait_for_each_other() {
    let mut job = Builder::new(1).unwrap();
    let tasks: Vec<TaskId> = (0..10).map(|_| add(&mut job, 0, Task::new(WORK))).collect();
    for pair in tasks.windows(2).take(8) {
        job.after(pair[1], pair[0]).unwrap();
    }
    let mut pair = job.clone();
    pair.after_start(tasks[0], tasks[1]).unwrap();
    assert_eq!(
        fault(pair),
        "tasks wait for each other: task 0 of rank 0 for task 1 of rank 0 for the first"
    );
    job.after(tasks[1], tasks[8]).unwrap();
    let cycle = job.finish().unwrap_err();
    assert!(cycle.to_string().ends_with("for 2 more and then the first"), "{cycle}");
    let Fault::Cycle(cycle) = cycle else { panic!("{cycle}") };
    assert_eq!(cycle.len(), 8, "without task 0, which nothing waits for");
}

#[test]
fn ranks_that_wait_for_each_other() {
    // Each receives before it sends.
    let mut job = Builder::new(2).unwrap();
    for rank in 0..2 {
        let received = add(&mut job, rank, recv(1 - rank, 5));
        let sent = add(&mut job, rank, send(1 - rank, 5));
        job.after(sent, received).unwrap();
    }
    assert_eq!(
        fault(job),
        "tasks wait for each other: task 0 of rank 0 for task 1 of rank 1 for task 0 of rank 1 for \
         task 1 of rank 0 for the first"
    );
    // Each begins with another collective of the two.
    let mut job = Builder::new(2).unwrap();
    let groups = [&[Rank(0), Rank(1)], &[Rank(1), Rank(0)]].map(|g| job.group(g).unwrap());
    for rank in 0..2 {
        let order = if rank == 0 { groups } else { [groups[1], groups[0]] };
        let kinds = order.map(|group| Kind::Collective { group, op: Op::AllReduce, bytes: 8 });
        let [first, second] = kinds.map(|kind| add(&mut job, rank, Task::new(kind)));
        job.after(second, first).unwrap();
    }
    let Fault::Cycle(cycle) = job.finish().unwrap_err() else { panic!("another fault") };
    assert_eq!(cycle.len(), 4);
}

proptest! {
    /// Tasks that wait only for earlier ones are a job, whatever their messages.
    #[test]
    fn what_goes_forward_ends(
        pairs in prop::collection::vec((0_u32..6, 0_u32..6, 0_u32..3), 0..60),
        edges in prop::collection::vec((0_usize..1_000, 0_usize..1_000, any::<bool>()), 0..80),
    ) {
        let mut job = Builder::new(6).unwrap();
        let mut tasks: Vec<Vec<TaskId>> = vec![Vec::new(); 6];
        for (from, to, tag) in pairs.into_iter().filter(|(from, to, _)| from != to) {
            let sent = Task::new(Kind::Send { to: Rank(to), bytes: 1, tag });
            let got = Task::new(Kind::Recv { from: Rank(from), bytes: 1, tag });
            tasks[from as usize].push(job.add(Rank(from), sent).unwrap());
            tasks[to as usize].push(job.add(Rank(to), got).unwrap());
        }
        for (rank, (a, b, start)) in (0..6).cycle().zip(edges) {
            let tasks: &[TaskId] = &tasks[rank];
            if tasks.is_empty() {
                continue;
            }
            let (a, b) = (a % tasks.len(), b % tasks.len());
            if a != b {
                let (pred, task) = (tasks[a.min(b)], tasks[a.max(b)]);
                let done = if start { job.after_start(task, pred) } else { job.after(task, pred) };
                done.unwrap();
            }
        }
        prop_assert!(job.finish().is_ok());
    }
}

#[test]
fn the_longest_chain_of_work_goes_over_messages_and_collectives() {
    let mut job = Builder::new(3).unwrap();
    let group = job.everyone().unwrap();
    let work = |us| Task::new(Kind::Compute { dur: Dur::from_us(us), stream: 0 });
    let mut last = Vec::new();
    for rank in (0..3).map(Rank) {
        let before = job.add(rank, work(10 * u64::from(rank.0))).unwrap();
        let meet = Task::new(Kind::Collective { group, op: Op::Barrier, bytes: 0 });
        let meet = job.add(rank, meet).unwrap();
        job.after(meet, before).unwrap();
        let after = job.add(rank, work(1)).unwrap();
        job.after(after, meet).unwrap();
        last.push(after);
    }
    let send = job.add(Rank(0), Task::new(Kind::Send { to: Rank(1), bytes: 5, tag: 0 })).unwrap();
    job.after(send, last[0]).unwrap();
    let recv = job.add(Rank(1), Task::new(Kind::Recv { from: Rank(0), bytes: 5, tag: 0 })).unwrap();
    let end = job.add(Rank(1), work(7)).unwrap();
    job.after(end, recv).unwrap();
    assert_eq!(job.finish().unwrap().longest_chain(), Dur::from_us(20 + 1 + 7));
}
