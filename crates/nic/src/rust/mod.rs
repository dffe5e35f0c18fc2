//! Rust source from [`crate::ir`].
