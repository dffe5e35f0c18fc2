//! The programs of `p4/`, compiled to Rust when this crate is built.
