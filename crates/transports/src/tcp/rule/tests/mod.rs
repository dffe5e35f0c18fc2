//! What rules are tested against that no single rule is about.

mod equilibria;
