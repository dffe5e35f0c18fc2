//! [`Kind`]: what a scenario can name in a `kind` key. The lists are beside the tables that they
//! are of: `TRANSPORTS` in `transport`, `QUEUES` in `queue`, and so on.

use crate::key::Section;

/// Something that a scenario can name in a `kind` key.
pub(crate) struct Kind<F> {
    /// The name in scenarios.
    pub(crate) name: &'static str,
    /// A line of description.
    pub(crate) about: &'static str,
    /// Reads the rest of its table.
    pub(crate) read: F,
    /// Its keys, for the reference.
    pub(crate) keys: fn() -> Vec<Section>,
}

/// A list of kinds, one to a row: `name, reading, keys, "description";`.
macro_rules! kinds {
    ($list:ident: $f:ty { $($name:literal, $read:expr, $keys:expr, $about:literal;)+ }) => {
        /// What `kind` can be.
        pub(crate) const $list: &[$crate::registry::Kind<$f>] = &[
            $($crate::registry::Kind { name: $name, about: $about, read: $read, keys: $keys }),+
        ];
    };
}
pub(crate) use kinds;
