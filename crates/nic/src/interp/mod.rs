//! The reference interpreter of [`crate::ir`].
