//! The conformance suite, the ideal time of a lone message, and the rules of specs/ndp.md#11.

use endpoint::Endpoint;
use testkit::conformance::{self, Opts};
use testkit::{Bottleneck, Link, Net, Sent, Verdict, fault};
use units::{Bytes, Dur, HostId, Rate, Time};
use wire::phost::{Kind, Repr};

use super::{Config, FreeTokens, PHost, PathStrategy};

const TEN_GIG: Rate = Rate(10_000_000_000);
const DELAY: Dur = Dur::from_us(2);
const TO: HostId = HostId(0);

fn net(config: Config, hosts: usize) -> Net {
    let make = |_| Box::new(PHost::new(config).unwrap()) as Box<dyn Endpoint>;
    let mtu = config.payload + config.header;
    let link = Link { rate: TEN_GIG, delay: DELAY, mtu, paths: 4, hashed: false };
    Net::new(1, link, (0..hosts).map(make).collect())
}

fn kind(sent: &Sent) -> Kind {
    Repr::parse(sent.pkt.header()).unwrap().kind
}

fn conforms(config: Config) {
    let opts = Opts {
        payload: Bytes(u64::from(config.payload)),
        window: Bytes(8 * u64::from(config.payload)),
        trims: false,
        bounces: false,
        hashed_paths: false,
        patience: Dur::from_ms(60_000),
    };
    conformance::run(|_| Box::new(PHost::new(config).unwrap()) as Box<dyn Endpoint>, opts);
}

#[test]
fn the_variant_of_the_ndp_paper_conforms() {
    conforms(Config::ndp_paper(1500));
}

#[test]
fn the_authors_values_conform() {
    conforms(Config { paths: PathStrategy::Single, ..Config::authors(1460) });
}

/// Up to the free tokens, no waiting at all. Beyond, the receiver lets the turns of the free tokens
/// pass before it gives its first (R2: CAPABILITY_HOLD), so that the sender waits for as long as a
/// REQ there and a TOKEN back take.
#[test]
fn a_lone_message_takes_the_ideal_time_and_a_long_one_waits_for_its_first_token() {
    for payload in [1500, 9000] {
        let config = Config::ndp_paper(payload);
        let p = u64::from(payload);
        let free = 2 * DELAY.0 / (p * 800) + 2;
        for packets in [0, 1, 2, 3, free, free + 1, 20, 300] {
            for len in [packets * p, packets * p + 7] {
                let mut net = net(config, 2);
                let wide = Bottleneck { rate: TEN_GIG, packets: 1000, trim: false };
                net.set_bottleneck(TO, wide);
                let key = net.submit(HostId(1), TO, len);
                net.run_until_idle(Dur::from_ms(100));
                let delivered = net.record(key).delivered.unwrap();
                let free = net.log().iter().find_map(|s| match kind(s) {
                    Kind::Req { free, .. } => Some(u64::from(free)),
                    _ => None,
                });
                let expected = arrival(&config, len, free.unwrap());
                assert_eq!(delivered, expected, "{len} B of {payload}");
            }
        }
    }
}

/// When the last of `len` bytes is there, over one link and one store-and-forward switch, if the
/// sender pauses only once its free tokens are used up.
fn arrival(config: &Config, len: u64, free: u64) -> Time {
    let framing = config.framing();
    let control = TEN_GIG.serialise(u64::from(config.control));
    // The REQ leaves before the first packet.
    let (mut left, mut sent, mut arrived) = (len, Time::ZERO + control, Time::ZERO);
    for n in 0.. {
        if n == free {
            // REQ and TOKEN on two links and in the switch; the sender has not waited for the
            // first.
            sent += DELAY * 2 + control * 2;
        }
        let payload = left.min(u64::from(framing.payload));
        let wire = TEN_GIG.serialise(payload + u64::from(framing.overhead));
        sent += wire;
        arrived = arrived.max(sent + DELAY) + wire;
        left -= payload;
        if left == 0 {
            break;
        }
    }
    arrived
}

/// The MTU time of [`Config::ndp_paper`] with 9000 B.
fn mtu_times(n: u64) -> Dur {
    TEN_GIG.serialise(9064) * n
}

fn reqs(net: &Net) -> Vec<Time> {
    let sent = net.log().iter().filter(|s| matches!(kind(s), Kind::Req { .. }));
    sent.map(|s| s.at).collect()
}

fn tokens(net: &Net) -> Vec<&Sent> {
    net.log().iter().filter(|s| matches!(kind(s), Kind::Token { .. })).collect()
}

/// Tokens leave one MTU time apart at least, eight are in flight at most; of a message that answers
/// none of them, one more in each 25 MTU times.
#[test]
fn a_silent_sender_uses_up_its_window_and_is_probed() {
    let config = Config { free_tokens: FreeTokens::UpTo(0), ..Config::ndp_paper(9000) };
    let mut net = net(config, 2);
    net.fault(|sent: &Sent| match sent.pkt.carries_payload() {
        true => Verdict::Drop,
        false => Verdict::Pass,
    });
    net.submit(HostId(1), TO, 90_000_000);
    net.run_until(Time::ZERO + mtu_times(100));
    let at: Vec<Time> = tokens(&net).iter().map(|s| s.at).collect();
    assert!(at.windows(2).all(|pair| pair[1].since(pair[0]) >= mtu_times(1)), "{at:?}");
    let first = at.iter().filter(|t| t.since(at[0]) < mtu_times(20)).count();
    assert_eq!(first, 8);
    assert_eq!(at[8].since(at[7]), mtu_times(25));
    assert_eq!(at[9].since(at[8]), mtu_times(25));
}

/// A token is for the next packet after the one before; what was lost has one when all have had
/// theirs and 9 MTU times are over.
#[test]
fn what_is_lost_is_given_tokens_again_at_the_end() {
    let mut net = net(Config::ndp_paper(9000), 2);
    net.fault(fault::drop_data(HostId(1), &[5, 6]));
    net.submit(HostId(1), TO, 20 * 9000);
    net.run_until_idle(Dur::from_ms(10));
    net.ledger().assert_all_done();
    let tokens = tokens(&net);
    let seqs: Vec<u64> = tokens
        .iter()
        .filter_map(|s| match kind(s) {
            Kind::Token { seq, .. } => Some(seq),
            _ => None,
        })
        .collect();
    let last = seqs.iter().position(|&seq| seq == 19).unwrap();
    assert_eq!(seqs[last + 1..], [5, 6]);
    assert_eq!(tokens[last + 1].at.since(tokens[last].at), mtu_times(9));
}

/// A sender that is busy elsewhere cannot use its tokens, and they are void: nothing is sent on one
/// more than 1.5 MTU times old.
#[test]
fn tokens_expire() {
    let config = Config { free_tokens: FreeTokens::UpTo(0), ..Config::ndp_paper(9000) };
    let mut net = net(config, 4);
    for to in [0, 2, 3] {
        net.submit(HostId(1), HostId(to), 900_000);
    }
    net.run_until(Time::ZERO + Dur::from_ms(1));
    // Three receivers give a token each per MTU time, and one can be used.
    let given = tokens(&net);
    let data: Vec<&Sent> = net.log().iter().filter(|s| s.pkt.carries_payload()).collect();
    assert!(given.len() > data.len(), "{} tokens, {} packets", given.len(), data.len());
    for sent in &data {
        let Kind::Data { number, .. } = kind(sent) else { panic!("no data: {sent:?}") };
        let token = given.iter().find(|token| {
            let Kind::Token { number: n, .. } = kind(token) else { return false };
            n == number && token.pkt.src == sent.pkt.dst
        });
        let came = token.unwrap().at + TEN_GIG.serialise(64) + DELAY;
        let age = sent.at.since(came);
        assert!(age.0 * 2 <= mtu_times(3).0, "{age} old");
    }
}

#[test]
fn the_shorter_message_goes_first_at_both_ends() {
    // Two senders to one receiver, and one sender to two receivers.
    for pairs in [[(1, 0), (2, 0)], [(1, 0), (1, 2)]] {
        let mut net = net(Config::ndp_paper(9000), 3);
        let [long, short] = pairs;
        let long = net.submit(HostId(long.0), HostId(long.1), 3_000_000);
        net.run_until(Time::ZERO + Dur::from_us(500));
        let start = net.now();
        let short = net.submit(HostId(short.0), HostId(short.1), 900_000);
        net.run_until_idle(Dur::from_ms(100));
        let done = |key| net.record(key).delivered.unwrap();
        assert!(done(short) < done(long));
        let alone = TEN_GIG.serialise(100 * 9064);
        assert!(done(short).since(start).0 < alone.0 / 3 * 4, "{pairs:?}: {}", done(short));
    }
}

/// Nothing but its REQ tells a receiver of a message without free tokens, and nothing but another
/// REQ that its ACK was lost.
#[test]
fn a_req_is_repeated_until_it_is_heard_and_answers_a_lost_ack() {
    let config = Config { free_tokens: FreeTokens::UpTo(0), ..Config::ndp_paper(9000) };
    let mut net = net(config, 2);
    let mut seen = [0; 2];
    net.fault(move |sent: &Sent| {
        let (what, lost) = match kind(sent) {
            Kind::Req { .. } => (0, 3),
            Kind::Ack => (1, 1),
            _ => return Verdict::Pass,
        };
        seen[what] += 1;
        if seen[what] <= lost { Verdict::Drop } else { Verdict::Pass }
    });
    net.submit(HostId(1), TO, 9000);
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let at = reqs(&net);
    assert_eq!(at.len(), 5, "three are lost, one is heard, one asks for the ACK");
    assert!(at.windows(2).all(|pair| pair[1].since(pair[0]) >= mtu_times(32)), "{at:?}");
}

/// The free tokens are long used up when a REQ is repeated: if that is the first one heard, the
/// receiver has nothing to wait for, and the packets of the burst have been lost like it.
#[test]
fn a_repeated_req_is_answered_at_once() {
    let mut net = net(Config::ndp_paper(9000), 2);
    net.fault(|sent: &Sent| {
        let first = sent.at < Time::ZERO + mtu_times(30);
        if first { Verdict::Drop } else { Verdict::Pass }
    });
    net.submit(HostId(1), TO, 20 * 9000);
    net.run_until_idle(Dur::from_ms(10));
    net.ledger().assert_all_done();
    let [_, repeat] = reqs(&net)[..] else { panic!("one repeat: {:?}", reqs(&net)) };
    let token = tokens(&net)[0];
    assert!(matches!(kind(token), Kind::Token { number: 0, seq: 0, .. }), "{token:?}");
    assert_eq!(token.at, repeat + TEN_GIG.serialise(64) + DELAY, "as soon as it has arrived");
}

#[test]
fn a_cancelled_message_gets_no_more_tokens() {
    let mut net = net(Config::ndp_paper(9000), 2);
    let key = net.submit(HostId(1), TO, 90_000_000);
    net.run_until(Time::ZERO + Dur::from_us(500));
    net.cancel(key);
    let cancelled = net.now();
    net.run_until_idle(Dur::from_ms(1));
    let late = tokens(&net).iter().filter(|s| s.at > cancelled + DELAY + mtu_times(2)).count();
    assert_eq!(late, 0);
}
