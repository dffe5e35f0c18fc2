//! Benchmarks of single functions, and of hosts on a real clock; see `benches/`. Of whole runs:
//! `trimline bench`.
