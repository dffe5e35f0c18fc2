//! Mistakes planted in blocks, which a bench has to find; and the draws of benches.

use std::fs;
use std::path::{Path, PathBuf};

/// `1`: all mistakes of all blocks. Any other text: those that have it in theirs.
const ALL: &str = "TRIMLINE_RTL_MUTANTS";

/// Blocks whose first mistake is planted in every run: one of each bench, since a mistake takes a
/// build.
const IN_EVERY_RUN: [&str; 2] = ["timers", "rx_writer"];

/// Warnings that a copy with a mistake may give.
const LENIENT: &str = "// verilator lint_off UNUSEDSIGNAL\n// verilator lint_off WIDTH\n\
    // verilator lint_off UNUSEDPARAM\n// verilator lint_off UNSIGNED\n";

/// A mistake: in a file, this text is replaced, which is there once.
pub(crate) struct Mutant {
    file: &'static str,
    from: &'static str,
    to: &'static str,
    case: usize,
}

impl Mutant {
    /// In this file of a block; to be found in the first case.
    pub(crate) const fn new(file: &'static str, from: &'static str, to: &'static str) -> Self {
        Self { file, from, to, case: 0 }
    }

    /// To be found in case `case`.
    pub(crate) const fn in_case(self, case: usize) -> Self {
        Self { case, ..self }
    }

    /// The case in which it is to be found.
    pub(crate) const fn case(&self) -> usize {
        self.case
    }
}

/// The files of a block, each where `path` has it below `rtl/`; the one with a mistake is a copy in
/// `folder`.
pub(crate) fn sources<'a>(
    files: impl Iterator<Item = &'a str>,
    path: impl Fn(&str) -> String,
    mutant: Option<&Mutant>,
    folder: &Path,
) -> Vec<PathBuf> {
    let rtl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rtl");
    let mut copied = false;
    let source = |file: &str| {
        let path = rtl.join(path(file));
        let Some(mutant) = mutant.filter(|mutant| mutant.file == file) else { return path };
        copied = true;
        let text = fs::read_to_string(&path).unwrap();
        let times = text.matches(mutant.from).count();
        assert_eq!(times, 1, "{file}.sv has `{}` {times} times", mutant.from);
        let copy = folder.join(path.file_name().unwrap());
        // A mistake may leave a port without use, or with another width.
        fs::write(&copy, LENIENT.to_owned() + &text.replace(mutant.from, mutant.to)).unwrap();
        copy
    };
    let sources = files.map(source).collect();
    assert!(copied || mutant.is_none(), "a mistake in another block's file");
    sources
}

/// Plant the mistakes of `block`: all, some, the first, or none. `run` builds it with one in a
/// folder and says what it finds; panics where it finds none.
pub(crate) fn check(
    block: &str,
    mutants: &[Mutant],
    run: impl Fn(&Mutant, usize) -> Result<(), String>,
) {
    let asked = std::env::var(ALL).ok();
    let is_wanted = |(at, mutant): &(usize, &Mutant)| match asked.as_deref() {
        None => *at == 0 && IN_EVERY_RUN.contains(&block),
        Some("1") => true,
        Some(text) => mutant.from.contains(text) || mutant.to.contains(text),
    };
    let (mut wanted, mut missed) = (0, Vec::new());
    for (at, mutant) in mutants.iter().enumerate().filter(is_wanted) {
        wanted += 1;
        match run(mutant, at) {
            Ok(()) => missed.push(mutant.to),
            Err(found) => println!("{block}: `{}` found: {found}", mutant.to),
        }
    }
    assert!(missed.is_empty(), "{block}: not found: {missed:#?}");
    println!("{block}: {wanted} of {wanted} mistakes found");
}

/// A folder of this bench; what stands in it from an earlier run is built once.
pub(crate) fn folder(bench: &str, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(bench).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Random numbers (splitmix64).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`.
    pub(crate) const fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// True once in `n` times.
    pub(crate) const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// From `from` to `to`, both among them.
    pub(crate) const fn between(&mut self, from: usize, to: usize) -> usize {
        from + self.below((to - from + 1) as u64) as usize
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}
