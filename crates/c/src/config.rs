//! What a node begins with.

use std::net::SocketAddr;

use endpoint::Endpoint;
use host::{Config, Error, Key, Limits, Node, Socket, Way, Xdp, XdpError, bind};
use transports::{homa, ndp, tcp};
use units::HostId;

/// As `trimline_config` of the header.
pub(crate) struct Start<'a> {
    pub(crate) transport: &'a str,
    pub(crate) payload: u16,
    pub(crate) me: HostId,
    pub(crate) addresses: Vec<&'a str>,
    pub(crate) xdp: bool,
    pub(crate) busy: bool,
    /// What all hosts share.
    pub(crate) key: Option<Key>,
    /// At least one.
    pub(crate) source_ports: u16,
}

/// Why there is no node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("a pointer is null")]
    Null,
    #[error("a text is not UTF-8")]
    Text,
    #[error("there is no transport \"{0}\": \"ndp\", \"homa\" or \"newreno\"")]
    Transport(String),
    #[error("payload {payload} B: {why}")]
    Payload { payload: u16, why: String },
    #[error("\"{0}\" is no address and port, such as \"10.0.0.1:4000\"")]
    Address(String),
    #[error("host {me} has no address: there are {hosts}, counted from 0")]
    Me { me: u32, hosts: usize },
    #[error("host {0}: AF_XDP speaks IPv4")]
    Version(SocketAddr),
    #[error("cannot listen at {0}: {1}")]
    Bind(SocketAddr, std::io::Error),
    #[error(transparent)]
    Xdp(#[from] XdpError),
    #[error(transparent)]
    Host(#[from] Error),
}

impl Start<'_> {
    pub(crate) fn node(&self) -> Result<Node, StartError> {
        let address =
            |text: &&str| text.parse().map_err(|_| StartError::Address((*text).to_owned()));
        let addresses =
            self.addresses.iter().map(address).collect::<Result<Vec<SocketAddr>, _>>()?;
        let hosts = addresses.len();
        let at = *addresses.get(self.me.index()).ok_or(StartError::Me { me: self.me.0, hosts })?;
        let endpoint = self.endpoint()?;
        let socket: Socket = match (self.xdp, at) {
            (false, at) => bind(at).map_err(|error| StartError::Bind(at, error))?.into(),
            (true, SocketAddr::V4(at)) => Xdp::bind_ports(at, self.source_ports)?.into(),
            (true, at) => return Err(StartError::Version(at)),
        };
        let others = (0..).map(HostId).zip(addresses).filter(|(host, _)| *host != self.me);
        let config = Config::loopback(self.me, others.collect(), 1);
        let keys =
            self.key.iter().flat_map(|key| config.peers.keys().map(|&host| (host, key.clone())));
        let way = Way { paths: self.source_ports.into(), hops: 1 };
        let config = Config {
            busy: self.busy,
            keys: keys.collect(),
            source_ports: self.source_ports,
            ways: config.peers.keys().map(|&host| (host, way)).collect(),
            ..config
        };
        Ok(Node::start(config, socket, endpoint, Limits::default())?)
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, StartError> {
        let payload = self.payload;
        let wrong = |why: String| StartError::Payload { payload, why };
        match self.transport {
            "ndp" => match ndp::Ndp::new(ndp::Config::processes(payload)) {
                Ok(ndp) => Ok(Box::new(ndp)),
                Err(why) => Err(wrong(why.to_string())),
            },
            "newreno" => match tcp::Tcp::new(tcp::Config::processes(payload)) {
                Ok(tcp) => Ok(Box::new(tcp)),
                Err(why) => Err(wrong(why.to_string())),
            },
            "homa" => {
                // Unscheduled priorities for sizes as those of memcached, the paper's W1.
                let cutoffs = homa::Cutoffs::new(&[433, 2_339, 6_756]);
                let cutoffs =
                    cutoffs.ok_or_else(|| wrong("cutoffs that do not rise".to_owned()))?;
                let config = homa::Config { payload, ..homa::Config::paper(cutoffs) };
                match homa::Homa::new(config) {
                    Ok(homa) => Ok(Box::new(homa)),
                    Err(why) => Err(wrong(why.to_string())),
                }
            }
            other => Err(StartError::Transport(other.to_owned())),
        }
    }
}
