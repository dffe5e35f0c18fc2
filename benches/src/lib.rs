//! Benchmarks of single functions; see `benches/`. Of whole runs: `trimline bench`.
