//! The windows and rates of chosen messages over time, on request.

use endpoint::{Endpoint, FlowRecord, FlowState};
use units::{HostId, MsgKey, Time};

use crate::links::Watcher;

/// Messages, and what their transports said last.
pub(crate) struct FlowTrace(Vec<(MsgKey, Option<FlowState>)>);

impl FlowTrace {
    pub(crate) fn new(keys: &[MsgKey]) -> Self {
        Self(keys.iter().map(|&key| (key, None)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `endpoint` of host `me` has been called: report what has changed.
    pub(crate) fn look(
        &mut self,
        endpoint: &dyn Endpoint,
        me: HostId,
        at: Time,
        observer: Option<&mut Watcher<'_>>,
    ) {
        let Some(observer) = observer else { return };
        for (key, last) in self.0.iter_mut().filter(|(key, _)| key.src == me) {
            let state = endpoint.flow_state(key.id);
            if let Some(state) = state.filter(|_| state != *last) {
                observer.flow(&FlowRecord { at, key: *key, state });
                *last = Some(state);
            }
        }
    }
}
