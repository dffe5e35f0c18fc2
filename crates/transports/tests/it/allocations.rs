//! No transport allocates per packet once it is warm. Counting takes a global allocator, which
//! counts per thread.

use endpoint::Endpoint;
use testkit::conformance::{self, Opts};
use trimline_transports::rto::RtoConfig;
use trimline_transports::{homa, mptcp, ndp, pfabric, phost, rdma, tcp, uet};
use units::{Bytes, Dur};

fn allocations(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).count_total
}

#[test]
fn the_counter_counts() {
    let mut kept = Vec::new();
    assert_eq!(allocations(&mut || kept.push(1)), 1);
}

/// Over hashed paths that neither trim nor bounce.
fn hashed(payload: u64, window: u64) -> Opts {
    Opts {
        payload: Bytes(payload),
        window: Bytes(window),
        trims: false,
        bounces: false,
        hashed_paths: true,
        patience: Dur::from_ms(10_000),
    }
}

fn tcp_allocates_nothing(mut config: tcp::Config) {
    config.rto.min = Dur::from_ms(1);
    config.rto.initial = Dur::from_ms(1);
    let make = |_| Box::new(tcp::Tcp::new(config).unwrap()) as Box<dyn Endpoint>;
    let opts = hashed(1460, 14_600);
    conformance::allocates_nothing(&make, opts, allocations);
}

#[test]
fn newreno_allocates_nothing_per_packet() {
    tcp_allocates_nothing(tcp::Config::linux_datacenter(1460));
}

#[test]
fn ictcp_allocates_nothing_per_packet() {
    let mut config = tcp::Config::linux_datacenter(1460);
    config.receive_window = tcp::ReceiveWindow::Ictcp(tcp::ictcp::Params::paper(Dur::from_ms(1)));
    tcp_allocates_nothing(config);
}

#[test]
fn rdma_allocates_nothing_per_packet() {
    let lossy = |config: rdma::Config| {
        let rto = RtoConfig { min: Dur::from_ms(1), initial: Dur::from_ms(1), ..config.rto };
        // Rates come back sooner so: what is in flight has been as much as it gets by the end of
        // the warm-up.
        rdma::Config { rto, max_timeouts: 100, recompute_gap: true, ..config }
    };
    let each_packet = rdma::Config::roce(1024, rdma::RuleConfig::Unlimited);
    let timely = rdma::Config::timely(1024);
    let selective = rdma::Recovery::Selective { reordering: 3 };
    for config in [
        timely,
        each_packet,
        rdma::Config { recovery: selective, segment: rdma::Segment::Packet, ..timely },
    ] {
        let config = lossy(config);
        let make = |_| Box::new(rdma::Rdma::new(config).unwrap()) as Box<dyn Endpoint>;
        let opts = hashed(1024, 16 << 10);
        conformance::allocates_nothing(&make, opts, allocations);
    }
}

#[test]
fn mptcp_allocates_nothing_per_packet() {
    let mut config = mptcp::Config::mmptcp_infocom16(1400);
    config.tcp.rto.min = Dur::from_ms(1);
    config.tcp.rto.initial = Dur::from_ms(1);
    config.reinject = mptcp::Reinject::Timeout;
    config.opportunistic = true;
    // Small enough that the rings of all subflows have grown to it during the warm-up.
    config.receive_buffer = 32 * 1400;
    let make = |_| Box::new(mptcp::Mptcp::new(config).unwrap()) as Box<dyn Endpoint>;
    let opts = hashed(1400, 14_000);
    conformance::allocates_nothing(&make, opts, allocations);
}

#[test]
fn ndp_allocates_nothing_per_packet() {
    let config = ndp::Config::paper(1500);
    let opts = Opts {
        payload: Bytes(1500),
        window: Bytes(45_000),
        trims: true,
        bounces: true,
        hashed_paths: false,
        patience: Dur::from_ms(10_000),
    };
    let make = |_| Box::new(ndp::Ndp::new(config.clone()).unwrap()) as Box<dyn Endpoint>;
    conformance::allocates_nothing(&make, opts, allocations);
}

#[test]
fn phost_allocates_nothing_per_packet() {
    let config = phost::Config::ndp_paper(1500);
    let opts = Opts {
        payload: Bytes(1500),
        window: Bytes(12_000),
        trims: false,
        bounces: false,
        hashed_paths: false,
        patience: Dur::from_ms(10_000),
    };
    let make = |_| Box::new(phost::PHost::new(config).unwrap()) as Box<dyn Endpoint>;
    conformance::allocates_nothing(&make, opts, allocations);
}

#[test]
fn pfabric_allocates_nothing_per_packet() {
    let config = pfabric::Config::paper(1500);
    let make = |_| Box::new(pfabric::PFabric::new(config).unwrap()) as Box<dyn Endpoint>;
    let opts = Opts { hashed_paths: false, ..hashed(1500, 18_000) };
    conformance::allocates_nothing(&make, opts, allocations);
}

#[test]
fn ultra_ethernet_allocates_nothing_per_packet() {
    let window = uet::Config::htsim(1000);
    let credit = uet::Config { control: uet::WindowControl::None, credit: true, ..window };
    for config in [window, credit, uet::Config { credit: true, ..window }] {
        let make = |_| Box::new(uet::Uet::new(config).unwrap()) as Box<dyn Endpoint>;
        let opts = Opts { hashed_paths: false, trims: true, ..hashed(1000, 15_000) };
        conformance::allocates_nothing(&make, opts, allocations);
    }
}

#[test]
fn homa_allocates_nothing_per_packet() {
    let cutoffs = homa::Cutoffs::new(&[433, 2339]).unwrap();
    for trimmed in [homa::Trimmed::Lost, homa::Trimmed::Refused] {
        let config = homa::Config { trimmed, ..homa::Config::paper(cutoffs) };
        let trims = trimmed != homa::Trimmed::Lost;
        let opts = Opts { hashed_paths: false, trims, ..hashed(1442, 10_094) };
        let make = |_| Box::new(homa::Homa::new(config).unwrap()) as Box<dyn Endpoint>;
        conformance::allocates_nothing(&make, opts, allocations);
    }
}
