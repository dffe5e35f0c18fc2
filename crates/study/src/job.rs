//! A job of a plan in a directory of its own: a scenario with a seed, run once. Its directory is
//! complete or not there, so that a plan that was interrupted goes on where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use metrics::{FlowRow, Manifest, OutputDir, RESULT_SCHEMA, RunValues, Summary, write_flow_rows};
use scenario::{Diagnostic, ENGINE_VERSION, Error, fingerprint_128, unwritable};
use twox_hash::XxHash3_128;

use crate::metric;
use crate::plan::{Job, Plan};
use crate::reproduce::{Ran, evaluate};
use crate::run::VARIANT;

/// Where the directories of jobs are, in the output directory.
const JOBS: &str = "jobs";

/// The messages of a job.
const FLOWS: &str = "flows.parquet";

/// How often it is looked whether another process has ended that runs the same job.
const PAUSE: Duration = Duration::from_millis(50);

/// The program: who changes a transport in the sources seldom thinks of a new version of the
/// engine.
static PROGRAM: LazyLock<String> = LazyLock::new(|| {
    let bytes = own_code().and_then(std::fs::read).unwrap_or_default();
    format!("{} {:032x}", scenario::version(), XxHash3_128::oneshot(&bytes))
});

/// The file with this code: the program, or the library in a program of another name (Python).
fn own_code() -> std::io::Result<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    code_at(&maps, name as fn(u128, u64) -> String as usize)
        .map_or_else(std::env::current_exe, |path| Ok(path.into()))
}

/// The file that is mapped at an address, as a line of `maps` says.
fn code_at(maps: &str, address: usize) -> Option<&str> {
    let holds = |range: &str| {
        let (from, to) = range.split_once('-')?;
        let hex = |text| usize::from_str_radix(text, 16).ok();
        Some((hex(from)?..hex(to)?).contains(&address))
    };
    let line = maps.lines().find(|line| line.split(' ').next().and_then(holds) == Some(true))?;
    let path = &line[line.find('/')?..];
    Path::new(path).exists().then_some(path)
}

/// A name that a job of another scenario, with another seed, or of another program, version of the
/// engine or of results would not have.
fn name(scenario: u128, seed: u64) -> String {
    // The seed first: what comes last changes little of the fingerprint.
    let about = format!(
        "seed {seed} engine {ENGINE_VERSION} results {RESULT_SCHEMA} program {} scenario \
         {scenario:032x}",
        *PROGRAM
    );
    format!("{:032x}", fingerprint_128(about.as_bytes()))
}

/// What a job has left.
pub struct Finished {
    values: RunValues,
    summary: Summary,
}

impl Finished {
    /// What is in the directory of a job, if it is complete.
    fn read(dir: &Path) -> Option<Self> {
        // Published last.
        let summary = Summary::read(&dir.join("summary.json")).ok()?;
        let values = RunValues::read(&dir.join("metrics.json")).ok()?;
        Some(Self { values, summary })
    }

    /// As that of a run of a study.
    pub(crate) fn into_ran(self, ran: &mut Ran) {
        let Self { values, summary } = self;
        ran.record.digest = Some(summary.digest);
        ran.record.wall_s = summary.wall_s;
        ran.record.packet_hops = summary.packet_hops;
        ran.metrics = values.metrics;
        ran.messages = values.messages;
        ran.by_size = summary.flows.slowdown_by_size;
        ran.warnings = summary.warnings;
    }
}

/// What a job is.
pub struct About<'j> {
    /// Its seed.
    pub seed: u64,
    /// The name of each axis, and where the job is on it.
    pub axes: Vec<(&'j str, &'j str)>,
    /// The command that repeats it alone.
    pub command: String,
}

/// What became of a job.
pub enum JobEnd {
    /// It was run.
    Finished(Box<Finished>),
    /// It failed, and why.
    Failed(String),
    /// It was not run.
    NotRun,
}

/// The jobs of a plan, in an output directory.
pub struct Jobs<'p> {
    plan: &'p Plan<'p>,
    dir: PathBuf,
    /// Whether each keeps its messages.
    flows: bool,
}

impl<'p> Jobs<'p> {
    /// Those of `plan` in the output directory `out`; with `flows`, each keeps its messages.
    #[must_use]
    pub fn new(plan: &'p Plan<'p>, out: &Path, flows: bool) -> Self {
        Self { plan, dir: out.join(JOBS), flows }
    }

    pub(crate) fn plan(&self) -> &'p Plan<'p> {
        self.plan
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.plan.runs()
    }

    /// What to call the job of this number, its seed included.
    #[must_use]
    pub fn label(&self, number: usize) -> String {
        let label = |job: &Job<'_>| format!("{}, seed {}", job.label, job.seed);
        self.plan.job(number).map(label).unwrap_or_default()
    }

    /// What the job of this number is.
    #[must_use]
    pub fn about(&self, number: usize) -> Option<About<'_>> {
        let job = self.plan.job(number)?;
        let mut axes = job.run.values(&job.point);
        // Of a comparison: the runs themselves.
        axes.extend(axes.is_empty().then_some((VARIANT, job.run.id.as_str())));
        Some(About { seed: job.seed, axes, command: job.command() })
    }

    /// The name of the directory of the job of this number.
    #[must_use]
    pub fn name(&self, number: usize) -> String {
        let job = self.plan.job(number);
        job.and_then(|job| Some(name(job.scenario?, job.seed))).unwrap_or_default()
    }

    /// The directory of the job of this number.
    #[must_use]
    pub fn dir(&self, number: usize) -> PathBuf {
        self.dir.join(self.name(number))
    }

    /// What the job of this number has left, if it was run.
    #[must_use]
    pub fn finished(&self, number: usize) -> Option<Box<Finished>> {
        self.finished_in(&self.dir(number)).map(Box::new)
    }

    fn finished_in(&self, dir: &Path) -> Option<Finished> {
        let kept = !self.flows || dir.join(FLOWS).exists();
        Finished::read(dir).filter(|_| kept)
    }

    /// The versions of the engine of directories that are none of these jobs', with how many there
    /// are of each.
    #[must_use]
    pub fn of_other_engines(&self) -> BTreeMap<u32, usize> {
        let own: BTreeSet<String> = (0..self.count()).map(|number| self.name(number)).collect();
        let mut versions = BTreeMap::new();
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let is_own = |name: &str| own.contains(name);
        for entry in entries.filter(|e| !e.file_name().to_str().is_some_and(is_own)) {
            let manifest = Manifest::read(&entry.path().join("manifest.json")).ok();
            let engine = manifest.map(|manifest| manifest.versions.engine);
            if let Some(engine) = engine.filter(|engine| *engine != ENGINE_VERSION) {
                *versions.entry(engine).or_default() += 1;
            }
        }
        versions
    }

    /// Run the job of this number with `threads` threads, unless that was done, and say in which
    /// directory. Where another process is running it, that is waited for. With `begins`, the name
    /// of its directory must begin so.
    ///
    /// # Errors
    /// There is no such job, its name begins otherwise, it fails, or its directory cannot be
    /// written.
    pub fn run(
        &self,
        (number, begins): (usize, Option<&str>),
        threads: u32,
        step: &dyn Fn(f64),
    ) -> Result<PathBuf, Error> {
        let Some(job) = self.plan.job(number) else {
            let error = format!("there is no job {number}");
            let hint = format!("they are numbered from 0 to {}", self.count() - 1);
            return Err(Diagnostic::new(error).hint(hint).into());
        };
        let scenario = job.scenario()?;
        let name = name(scenario.identity(), job.seed);
        if begins.is_some_and(|begins| !name.starts_with(begins)) {
            let error = format!("job {number} is another one than when the array was written");
            let hint = "the scenario or the program has changed since: write the array anew";
            return Err(Diagnostic::new(error).hint(hint).into());
        }
        let dir = self.dir.join(name);
        let out = loop {
            while OutputDir::is_in_use(&dir) {
                std::thread::sleep(PAUSE);
            }
            if self.finished_in(&dir).is_some() {
                return Ok(dir);
            }
            match OutputDir::create(&dir) {
                Ok(out) => break out,
                Err(_) if OutputDir::is_in_use(&dir) => {}
                Err(e) => return Err(unwritable(&e)),
            }
        };
        let threads = (threads == 1).then_some(1);
        let command = job.command();
        let options = scenario::Options { threads, command, ..scenario::Options::default() };
        let results = evaluate(&scenario, &options, step)?;
        let write = || {
            if self.flows {
                write_flow_rows(out.file(FLOWS)?, &results.flows)?;
            }
            let (metrics, messages) = (metric::of(&scenario, &results), submitted(&results.flows));
            RunValues { metrics, messages }.write(&out)?;
            scenario::manifest(&scenario, &options).write(&out)?;
            results.summary.write(&out)
        };
        write().map_err(|e| unwritable(&e))?;
        out.commit().map_err(|e| unwritable(&e))?;
        Ok(dir)
    }
}

/// A fingerprint of the measured messages as they were submitted.
fn submitted(rows: &[FlowRow]) -> String {
    let of = |row: &FlowRow| {
        let places = [row.src, row.dst].map(u32::to_le_bytes).concat();
        let size_and_start = [row.size.unwrap_or(u64::MAX), row.start.0].map(u64::to_le_bytes);
        [places, size_and_start.concat()].concat()
    };
    let bytes: Vec<u8> = rows.iter().filter(|row| row.measured).flat_map(of).collect();
    format!("{:032x}", fingerprint_128(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_in_the_file_that_is_mapped_there() {
        let maps = "1000-2000 r--p 00000000 08:02 17   /usr/bin/python3\n\
                    7000-9000 r-xp 00001000 08:02 99   /a place/_trimline.so\n\
                    9000-a000 rw-p 00000000 00:00 0\n";
        assert_eq!(code_at(maps, 0x9000), None, "of no file");
        assert_eq!(code_at(maps, 0x7abc), None, "a file that is not there any more");
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        assert_eq!(code_at(&maps.replace("/a place/_trimline.so", own), 0x7abc), Some(own));
        assert_eq!(own_code().unwrap(), Path::new(own));
    }
}
