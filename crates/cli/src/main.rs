//! The `trimline` command.

fn main() {}
