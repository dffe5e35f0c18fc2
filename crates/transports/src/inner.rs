//! [`Inner`]: the endpoint inside another one around it, which has a timer of its own.

use endpoint::{Cx, Endpoint, TimerId};

/// The endpoint inside. Its timer `t` is `t + 1` outside.
pub(crate) struct Inner(pub(crate) Box<dyn Endpoint>);

impl Inner {
    /// The timer of the one around it.
    pub(crate) const OUTER: TimerId = TimerId(0);

    /// Call it with its own timer numbers.
    pub(crate) fn call<R>(
        &mut self,
        cx: &mut Cx<'_>,
        call: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>) -> R,
    ) -> R {
        let before = cx.fx.as_slice().len();
        let answer = call(&mut *self.0, cx);
        for timer in cx.fx.timers_mut(before) {
            timer.0 += 1;
        }
        answer
    }

    /// Its number for timer `id`; `None`: that is [`Self::OUTER`].
    pub(crate) fn timer(id: TimerId) -> Option<TimerId> {
        id.0.checked_sub(1).map(TimerId)
    }
}
