//! Every kind of endpoint, for tests that try them all (also `fuzz/fuzz_targets/hostile.rs`): with
//! timers short enough that a lossy network costs milliseconds.

use std::sync::Arc;

use endpoint::Endpoint;
use testkit::conformance::{Make, Opts};
use testkit::hostile::Subject;
use trimline_transports::mux::Mux;
use trimline_transports::rdma::rule::{dcqcn, fast, hpcc, swift, timely};
use trimline_transports::rto::RtoConfig;
use trimline_transports::tcp::rule;
use trimline_transports::{cbr, homa, mptcp, nano, ndp, pfabric, phost, rdma, tcp, uet};
use units::{Bytes, Dur, Rate};

/// A kind, its endpoint, and what there is to know of it.
struct Kind {
    name: &'static str,
    make: Box<dyn Fn() -> Box<dyn Endpoint>>,
    opts: Opts,
    transports: u8,
}

const HASHED: Opts = Opts {
    payload: Bytes(1000),
    window: Bytes(10_000),
    trims: false,
    bounces: false,
    hashed_paths: true,
    patience: Dur::from_ms(600_000),
};

fn kind<E: Endpoint + 'static>(
    name: &'static str,
    opts: Opts,
    make: impl Fn() -> E + 'static,
) -> Kind {
    Kind { name, make: Box::new(move || Box::new(make())), opts, transports: 1 }
}

fn rto(config: RtoConfig) -> RtoConfig {
    RtoConfig { min: Dur::from_ms(1), initial: Dur::from_ms(1), max: Dur::from_ms(100), ..config }
}

fn ndp() -> ndp::Ndp {
    let ms = Dur::from_ms;
    let config = ndp::Config {
        initial_window: 12,
        rto_initial: ms(1),
        rto_min: ms(1),
        stall_timeout: ms(5),
        msl: ms(50),
        ..ndp::Config::paper(1000)
    };
    ndp::Ndp::new(config).unwrap()
}

fn tcp_config() -> tcp::Config {
    let plain = tcp::Config::linux_datacenter(1000);
    tcp::Config { rto: rto(plain.rto), delayed_ack: Some(Dur::from_us(300)), ..plain }
}

fn tcp_kinds() -> Vec<Kind> {
    let plain = tcp_config();
    let sack = tcp::Config { recovery: tcp::Recovery::Sack, isn: u32::MAX - 99, ..plain };
    let dctcp =
        tcp::Config { rule: tcp::RuleConfig::Dctcp(rule::dctcp::Params::RFC), ecn: true, ..sack };
    let rule = tcp::RuleConfig::Cubic(rule::cubic::Params::RFC);
    let opened = tcp::Config { rule, handshake: true, timestamps: true, dsack: true, ..sack };
    let paper = tcp::ictcp::Params::paper(Dur::from_ms(1));
    let receive_window = tcp::ReceiveWindow::Ictcp(paper);
    let reno = tcp::Config { recovery: tcp::Recovery::Reno, receive_window, ..plain };
    let pias = tcp::Config { class: 2, pias: tcp::Demotion::new(&[2000, 20_000]), ..dctcp };
    let named = [
        ("tcp", plain),
        ("tcp sack", sack),
        ("dctcp", dctcp),
        ("pias", pias),
        ("tcp opened", opened),
    ];
    let all = named.into_iter().chain([("ictcp", reno)]);
    all.map(|(name, config)| kind(name, HASHED, move || tcp::Tcp::new(config).unwrap())).collect()
}

fn mptcp_kinds() -> Vec<Kind> {
    let plain = mptcp::Config::linux(1000);
    let tcp = tcp::Config { rto: rto(plain.tcp.rto), ..plain.tcp };
    let linux = mptcp::Config { tcp, receive_buffer: 20_000, send_buffer: 40_000, ..plain };
    let published = mptcp::Config::mmptcp_infocom16(1000);
    let tcp = tcp::Config { rto: rto(published.tcp.rto), ..published.tcp };
    let mmptcp = mptcp::Config { tcp, ..published };
    let named = [("mptcp", linux), ("mmptcp", mmptcp)];
    let make = |config| move || mptcp::Mptcp::new(config).unwrap();
    named.map(|(name, config)| kind(name, HASHED, make(config))).into()
}

fn rdma_kinds() -> Vec<Kind> {
    use rdma::{Config, RuleConfig};
    let selective = rdma::Recovery::Selective { reordering: 3 };
    let roce = Config::roce(900, RuleConfig::Unlimited);
    let patched = RuleConfig::Timely(timely::Params::PATCHED);
    // Of less payload than others, as telemetry takes some of the packet.
    let named = [
        ("rdma", roce),
        ("rdma selective", Config { recovery: selective, ..roce }),
        ("rdma read", Config { operation: rdma::Operation::Read, ..Config::timely(900) }),
        ("timely", Config::timely(900)),
        ("patched timely", Config::roce(900, patched)),
        ("rdma fast", Config::roce(900, RuleConfig::Fast(fast::Params::TIMELY_PAPER))),
        ("dcqcn", Config::dcqcn(900, dcqcn::Params::PAPER)),
        ("hpcc", Config::hpcc(900, hpcc::Params::PAPER)),
        ("swift", Config::swift(900, swift::Params::PAPER)),
    ];
    let make = |(name, config): (_, Config)| {
        let config = Config { rto: rto(config.rto), max_timeouts: 100, ..config };
        kind(name, HASHED, move || rdma::Rdma::new(config).unwrap())
    };
    named.map(make).into()
}

fn homa_config(trimmed: homa::Trimmed) -> homa::Config {
    let cutoffs = homa::Cutoffs::new(&[433, 2339, 6756]).unwrap();
    homa::Config { payload: 1000, trimmed, ..homa::Config::paper(cutoffs) }
}

/// With a timeout longer than a round trip here.
fn pfabric_config() -> pfabric::Config {
    pfabric::Config { rto: Dur::from_us(300), ..pfabric::Config::paper(1000) }
}

/// Ultra Ethernet by its receivers' credit alone.
fn credit_config() -> uet::Config {
    let control = uet::WindowControl::None;
    uet::Config { control, credit: true, ..uet::Config::htsim(1000) }
}

/// NICs, with a patience for faults that the published ones do not have.
fn nic(program: nano::Program, trims: bool, name: &'static str) -> Kind {
    let config = Arc::new(nano::Config {
        timeout: Dur::from_ms(5),
        max_timeouts: None,
        ingress_timeouts: 1_000_000,
        pull_cycles: 28_000,
        ..nano::Config::firesim(program)
    });
    let opts = Opts { payload: Bytes(1024), window: Bytes(1900), trims, ..HASHED };
    kind(name, opts, move || nano::Nano::new(Arc::clone(&config)).unwrap())
}

fn mixed() -> Kind {
    let make = || {
        let tcp = || Box::new(tcp::Tcp::new(tcp_config()).unwrap()) as Box<dyn Endpoint>;
        let homa = homa::Homa::new(homa_config(homa::Trimmed::Lost)).unwrap();
        let phost = phost::PHost::new(phost::Config::ndp_paper(1000)).unwrap();
        let parts: Vec<(u8, Box<dyn Endpoint>)> = vec![
            (wire::ndp::PROTOCOL, Box::new(ndp())),
            (wire::tcp::PROTO, tcp()),
            (wire::tcp::PROTO, tcp()),
            (wire::homa::PROTO, Box::new(homa)),
            (wire::phost::PROTO, Box::new(phost)),
        ];
        Mux::new(parts).unwrap()
    };
    Kind { transports: 5, ..kind("mux", HASHED, make) }
}

fn kinds() -> Vec<Kind> {
    let chosen = Opts { hashed_paths: false, ..HASHED };
    let trimming = Opts { trims: true, ..chosen };
    let config = cbr::Config { payload: 1000, header: 64, rate: Rate(1_000_000_000) };
    let homa = |trimmed| move || homa::Homa::new(homa_config(trimmed)).unwrap();
    let phost = || phost::PHost::new(phost::Config::ndp_paper(1000)).unwrap();
    let pfabric = || pfabric::PFabric::new(pfabric_config()).unwrap();
    let mut kinds = vec![
        kind("ndp", Opts { bounces: true, ..trimming }, ndp),
        kind("homa", chosen, homa(homa::Trimmed::Lost)),
        kind("homa-tr", trimming, homa(homa::Trimmed::Refused)),
        kind("phost", chosen, phost),
        kind("pfabric", chosen, pfabric),
        kind("uet", trimming, || uet::Uet::new(uet::Config::htsim(1000)).unwrap()),
        kind("uet-credit", trimming, || uet::Uet::new(credit_config()).unwrap()),
        kind("cbr", HASHED, move || cbr::Cbr::new(config).unwrap()),
        nic(nano::Program::Ndp, true, "ndp-nano"),
        nic(nano::Program::Homa, false, "homa-nano"),
        nic(nano::Program::HomaTr, true, "homatr-nano"),
        mixed(),
    ];
    kinds.extend(tcp_kinds().into_iter().chain(mptcp_kinds()).chain(rdma_kinds()));
    kinds
}

/// Call `with` for every kind of endpoint.
pub(crate) fn each(mut with: impl FnMut(&Subject<'_>)) {
    for Kind { name, make, opts, transports } in kinds() {
        let make: Make<'_> = &|_| make();
        let endless = name == "cbr";
        with(&Subject { name, make, opts, transports, endless });
    }
}
