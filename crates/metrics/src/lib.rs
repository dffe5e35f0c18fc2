//! Streaming statistics and result files.
