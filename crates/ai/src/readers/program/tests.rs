use super::*;

const JOB: Layout = Layout { tp: 2, ep: 2, dp: 4, pp: 2 };

fn members(group: Group, rank: u32) -> Vec<u32> {
    JOB.members(group, rank).into_iter().map(|rank| rank.0).collect()
}

#[test]
fn groups_are_cut_by_megatrons_rule() {
    assert_eq!(JOB.ranks(), 16);
    let of_rank_5 = [
        (Group::Tp, vec![4, 5]),
        (Group::Dp, vec![1, 3, 5, 7]),
        (Group::Ep, vec![5, 7]),
        (Group::DpEp, vec![1, 5]),
        (Group::EpTp, vec![4, 5, 6, 7]),
        (Group::Pp, vec![5, 13]),
        (Group::Embedding, vec![5, 13]),
        (Group::All, (0..16).collect()),
    ];
    for (group, expected) in of_rank_5 {
        assert_eq!(members(group, 5), expected, "{group:?}");
        assert_eq!(JOB.size(group) as usize, expected.len(), "{group:?}");
    }
}

/// Every group is the same list for all its members, so that they meet in it.
#[test]
fn all_members_of_a_group_agree_on_it() {
    let kinds = [
        Group::Tp,
        Group::Dp,
        Group::Ep,
        Group::DpEp,
        Group::EpTp,
        Group::Pp,
        Group::Embedding,
        Group::All,
    ];
    for group in kinds {
        for rank in 0..JOB.ranks() {
            let members = members(group, rank);
            assert!(members.contains(&rank), "{group:?} of {rank}");
            for &member in &members {
                assert_eq!(self::members(group, member), members, "{group:?}");
            }
        }
    }
}

#[test]
fn the_ends_of_a_pipeline_have_no_neighbour() {
    assert_eq!(JOB.other_stage(Rank(3), 1), Some(Rank(11)));
    assert_eq!(JOB.other_stage(Rank(11), -1), Some(Rank(3)));
    assert_eq!(JOB.other_stage(Rank(3), -1), None);
    assert_eq!(JOB.other_stage(Rank(11), 1), None);
}
