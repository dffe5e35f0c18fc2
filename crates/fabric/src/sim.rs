//! A run as its caller sees it. The engine itself ([`crate::run`]) is compiled twice, for observers
//! that look at packets and for those that do not.

use std::ops::ControlFlow;
use std::sync::Arc;

use endpoint::{App, Endpoint, Observer};

use crate::config::{Config, ConfigError, LifeDetail};
use crate::outcome::{Outcome, Progress, Violated};
use crate::run::{Run, Setup};
use crate::topology::Topology;

/// A fabric with its hosts, ready to run once.
pub struct Sim<'o>(AnyRun<'o>);

enum AnyRun<'o> {
    Plain(Run<'o, false>),
    Watched(Run<'o, true>),
}

impl<'o> Sim<'o> {
    /// Join endpoints and applications, one each per host, by a fabric. `observer` is called while
    /// it runs.
    ///
    /// # Errors
    /// If there is not one endpoint and application per host, a fault or queue names a link that is
    /// not there, or failed links leave a pair of hosts without a path.
    pub fn new(
        topology: impl Into<Arc<Topology>>,
        config: Config,
        endpoints: Vec<Box<dyn Endpoint>>,
        apps: Vec<Box<dyn App>>,
        observer: &'o mut (dyn Observer + Send),
    ) -> Result<Self, ConfigError> {
        let topology = topology.into();
        let follows = config.life != LifeDetail::None || !config.flows.is_empty();
        let watches = observer.watches_packets() || follows;
        let setup = Setup { topology, config, endpoints, apps, observer };
        let run = match watches {
            true => Run::new(setup).map(AnyRun::Watched),
            false => Run::new(setup).map(AnyRun::Plain),
        };
        run.map(Self)
    }

    /// Run to the end: until everything the run waits for is done, the limit, or `progress` (called
    /// at every grid step) breaks.
    ///
    /// With a bounded measurement window, the run goes on until the window is over and every
    /// message submitted in it is delivered or has failed. Without one, until no application has
    /// more to come and every message is done; one of unbounded length never is.
    ///
    /// # Errors
    /// If a transport breaks its contract, calls or events follow each other at one instant without
    /// end, or the fabric loses count of a packet. The error has what the run did until then.
    pub fn run(
        self,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Outcome, Box<Violated>> {
        match self.0 {
            AnyRun::Plain(run) => run.run(progress),
            AnyRun::Watched(run) => run.run(progress),
        }
    }

    #[cfg(test)]
    pub(crate) fn is_by_entity(&self) -> bool {
        match &self.0 {
            AnyRun::Plain(run) => run.is_by_entity(),
            AnyRun::Watched(run) => run.is_by_entity(),
        }
    }
}
