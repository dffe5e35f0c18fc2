//! [`OutputDir`]: a run's files appear together when it is complete, or not at all.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::FileError;

/// Where files wait until they are complete: inside the directory, so that it is the same file
/// system even if the directory is a mount point.
const STAGE: &str = ".trimline-unfinished";

/// The suffix of a file that is still being written.
const PARTIAL: &str = "partial";

/// Held locked by the run that writes to the stage.
const LOCK: &str = "lock";

/// Published last: where it stands, the others of the same run do too.
const LAST: &str = "summary.json";

/// What the results in a directory are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsOf {
    /// A run.
    Run,
    /// A study, or a sweep.
    Study,
    /// A comparison over seeds.
    Comparison,
    /// A search for the best values.
    Search,
}

impl ResultsOf {
    /// Of what `dir` has results, if of anything but `own`.
    #[must_use]
    pub fn other_in(dir: &Path, own: Option<Self>) -> Option<Self> {
        let is_other =
            |(mark, _, of): &(&str, _, Self)| Some(*of) != own && dir.join(mark).exists();
        MARKS.into_iter().find(is_other).map(|(.., of)| of)
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Study => "a sweep or a study",
            Self::Comparison => "a comparison",
            Self::Search => "a search",
        }
    }
}

/// By which a directory is known to be ours, by what in it, and what it has. All but the last are
/// published first.
const MARKS: [(&str, &str, ResultsOf); 5] = [
    ("manifest.json", "/versions/trimline", ResultsOf::Run),
    ("study.json", "/engine", ResultsOf::Study),
    ("comparison.json", "/engine", ResultsOf::Comparison),
    ("tune.json", "/engine", ResultsOf::Search),
    (LAST, "/digest", ResultsOf::Run),
];

/// How often a directory is asked for that another run is just taking away, and how long between.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// The directories of this process that are neither committed nor dropped.
static UNFINISHED: Mutex<Vec<Unfinished>> = Mutex::new(Vec::new());

/// What a run may write. Those of an earlier run that this one does not write are removed.
const RESULT_FILES: [&str; 24] = [
    "summary.json",
    "manifest.json",
    "flows.parquet",
    "series.parquet",
    "links.parquet",
    "report.html",
    "packets.pcapng",
    "hops.pcapng",
    "trace.perfetto.json",
    "queues.parquet",
    "results.json",
    "study.json",
    "jobs.parquet",
    "steps.parquet",
    "collectives.parquet",
    "critical.parquet",
    "cpu.csv",
    "packet_latency.parquet",
    "life.parquet",
    "flow_trace.parquet",
    "metrics.json",
    "runs.parquet",
    "comparison.json",
    "tune.json",
];

/// What an [`OutputDir`] has made, and takes away again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unfinished {
    stage: PathBuf,
    /// Directories that did not exist before, innermost first.
    created: Vec<PathBuf>,
}

impl Unfinished {
    /// Leaves the directory as it was found. Nothing can be done about a failure here.
    fn clear(&self) {
        for entry in fs::read_dir(&self.stage).into_iter().flatten().flatten() {
            if entry.file_name() != LOCK {
                let _ = fs::remove_file(entry.path());
            }
        }
        // The lock goes last, and a directory that another run has begun to use stays.
        let _ = fs::remove_file(self.stage.join(LOCK));
        let _ = fs::remove_dir(&self.stage);
        self.remove_created();
    }

    /// A directory that holds files is not removed.
    fn remove_created(&self) {
        self.created.iter().for_each(|dir| drop(fs::remove_dir(dir)));
    }
}

fn unfinished() -> MutexGuard<'static, Vec<Unfinished>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves all directories of this process that are not committed as they were found: for a
/// process that is about to end. A commit that has begun is waited for.
pub fn discard_unfinished() {
    unfinished().iter().for_each(Unfinished::clear);
}

/// The directory that a run writes to.
///
/// Files are written to a hidden directory inside and moved into place by
/// [`commit`](Self::commit). Dropped without it, the directory is left as it was found. What a
/// killed run leaves is removed by the next one.
#[derive(Debug)]
pub struct OutputDir {
    dir: PathBuf,
    made: Unfinished,
    /// Keeps other runs out.
    _lock: File,
}

impl OutputDir {
    /// Prepares `dir` for a run: creates it if need be, and checks that it can be written.
    ///
    /// # Errors
    /// As of [`OutputDir::create_for`].
    pub fn create(dir: impl Into<PathBuf>) -> Result<Self, FileError> {
        Self::create_for(dir, ResultsOf::Run)
    }

    /// The same for results `of` what is said.
    ///
    /// # Errors
    /// It cannot be created or written, another run is writing to it, it has results of another
    /// kind, which would be lost, or it holds files that a run would replace and that no run has
    /// written.
    pub fn create_for(dir: impl Into<PathBuf>, of: ResultsOf) -> Result<Self, FileError> {
        let dir = dir.into();
        let (made, lock) = stage(&dir)?;
        unfinished().push(made.clone());
        let out = Self { dir, made, _lock: lock };
        if let Some(name) = foreign(&out.dir) {
            let cause = format!("its {name} is of no run (there is no manifest.json of one)");
            let hint = "choose another directory with --out, or move that file";
            return Err(FileError::new("write results to", &out.dir, cause, hint));
        }
        if let Some(other) = ResultsOf::other_in(&out.dir, Some(of)) {
            let cause = format!("it has the results of {}", other.words());
            let hint = "choose another directory with --out, or remove that one first";
            return Err(FileError::new("write results to", &out.dir, cause, hint));
        }
        probe(&out.made.stage).map_err(|e| FileError::io("write results to", &out.dir, &e))?;
        Ok(out)
    }

    /// Whether another run is writing to `dir` at this moment.
    #[must_use]
    pub fn is_in_use(dir: &Path) -> bool {
        let lock = File::open(dir.join(STAGE).join(LOCK));
        lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// The directory itself.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where finished files wait for [`commit`](Self::commit): to make a report of them.
    #[must_use]
    pub fn staged(&self) -> &Path {
        &self.made.stage
    }

    /// Starts a file, for example `flows.parquet`.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn file(&self, name: &str) -> Result<StagedFile, FileError> {
        debug_assert!(RESULT_FILES.contains(&name), "a later run would not remove {name}");
        let path = self.dir.join(name);
        let staged = self.made.stage.join(name);
        let file = File::create(staged.with_added_extension(PARTIAL))
            .map_err(|e| FileError::io("write", &path, &e))?;
        Ok(StagedFile { path, staged, file: BufWriter::with_capacity(1 << 16, file) })
    }

    /// Writes a whole file of text, for example `report.html`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn text(&self, name: &str, text: &str) -> Result<(), FileError> {
        let mut file = self.file(name)?;
        let written = file.write_all(text.as_bytes());
        written.map_err(|e| FileError::io("write", file.path(), &e))?;
        file.finish()
    }

    /// Moves all files into place, the mark of a run first and `summary.json` last, and removes
    /// what an earlier run left of the files that this one did not write.
    ///
    /// # Errors
    /// A file is unfinished, or the directory cannot be written any more.
    pub fn commit(self) -> Result<(), FileError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |e| FileError::io("publish", &path, &e)
        };
        // Nobody interrupts: see `discard_unfinished`.
        let _held = unfinished();
        let mut names = self.staged_names().map_err(failed(&self.made.stage))?;
        if let Some(name) = names.iter().find(|n| n.ends_with(PARTIAL)) {
            let hint = "this is a defect: report it";
            return Err(FileError::new("publish", &self.dir.join(name), "unfinished", hint));
        }
        let mark = |name: &String| MARKS.iter().any(|(mark, ..)| name == mark);
        names.sort_by_key(|name| (name == LAST, !mark(name), name.clone()));
        for name in RESULT_FILES {
            let path = self.dir.join(name);
            if (name == LAST || !names.iter().any(|n| n == name)) && path.exists() {
                fs::remove_file(&path).map_err(failed(&path))?;
            }
        }
        for name in &names {
            let path = self.dir.join(name);
            fs::rename(self.made.stage.join(name), &path).map_err(failed(&path))?;
        }
        Ok(())
    }

    fn staged_names(&self) -> io::Result<Vec<String>> {
        let entries: io::Result<Vec<_>> = fs::read_dir(&self.made.stage)?.collect();
        let names = entries?.into_iter().map(|e| e.file_name().to_string_lossy().into_owned());
        Ok(names.filter(|n| n != LOCK).collect())
    }
}

impl Drop for OutputDir {
    fn drop(&mut self) {
        let mut all = unfinished();
        all.retain(|other| *other != self.made);
        self.made.clear();
    }
}

/// Makes `dir` and its stage, and locks the stage. Another run may take directories away at the
/// same time, so what has gone is made again.
fn stage(dir: &Path) -> Result<(Unfinished, File), FileError> {
    let stage = dir.join(STAGE);
    let mut attempt = 1;
    loop {
        let created = dir
            .ancestors()
            .take_while(|a| !a.as_os_str().is_empty() && !a.exists())
            .map(Path::to_owned)
            .collect();
        let made = Unfinished { stage: stage.clone(), created };
        let again = |e: &io::Error| {
            matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
        };
        match fs::create_dir_all(&stage).and_then(|()| lock(&stage)) {
            Ok(Some(lock)) => return Ok((made, lock)),
            Ok(None) => {
                let hint = "wait for it to end, or choose another directory with --out";
                let cause = "another run is writing to it";
                return Err(FileError::new("write results to", dir, cause, hint));
            }
            Err(e) if again(&e) && attempt < ATTEMPTS => std::thread::sleep(PAUSE),
            Err(e) => {
                // Neither removes what another run uses.
                let _ = fs::remove_dir(&stage);
                made.remove_created();
                return Err(FileError::io("write results to", dir, &e));
            }
        }
        attempt += 1;
    }
}

/// Locks the stage, then clears it of what a killed run left. The lock dies with its process.
/// `None` if another run has it; not found if that run took the stage away at this moment.
fn lock(stage: &Path) -> io::Result<Option<File>> {
    let path = stage.join(LOCK);
    let lock = File::create(&path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(e)) => return Err(e),
    }
    if !is_at(&lock, &path)? {
        return Err(io::ErrorKind::NotFound.into());
    }
    for entry in fs::read_dir(stage)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(Some(lock))
}

/// Whether `path` still leads to `file`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (open, there) = (file.metadata()?, fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

/// Whether `path` still leads to `file`: elsewhere, an open file cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}

/// A file in `dir` that a run would replace or remove, although no run has written there.
fn foreign(dir: &Path) -> Option<&'static str> {
    let there = RESULT_FILES.into_iter().find(|name| dir.join(name).exists())?;
    let ours = MARKS.into_iter().any(|(mark, inside, _)| {
        let value: Option<Value> = read_json(&dir.join(mark)).ok();
        value.is_some_and(|value| value.pointer(inside).is_some())
    });
    (!ours).then_some(there)
}

/// Writes and removes a small file, so that a full disk shows before the run and not after it.
fn probe(stage: &Path) -> io::Result<()> {
    let path = stage.join("probe");
    let mut file = File::create(&path)?;
    let written = file.write_all(&[b' '; 4096]).and_then(|()| file.sync_all());
    fs::remove_file(&path)?;
    written
}

/// A file on its way into an [`OutputDir`]. Unless it is [finished](Self::finish), the directory
/// refuses to commit.
#[derive(Debug)]
pub struct StagedFile {
    /// Where it will be; named in errors.
    path: PathBuf,
    /// Where it waits once it is finished.
    staged: PathBuf,
    file: BufWriter<File>,
}

impl StagedFile {
    /// Where the file will be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is buffered through to the disk and marks the file as complete.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<(), FileError> {
        // A file system may report only now that it is full.
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        let partial = self.staged.with_added_extension(PARTIAL);
        written
            .and_then(|()| fs::rename(partial, &self.staged))
            .map_err(|e| FileError::io("write", &self.path, &e))
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

pub(crate) fn write_json(
    out: &OutputDir,
    name: &str,
    value: &impl Serialize,
) -> Result<(), FileError> {
    let path = out.dir().join(name);
    let text = serde_json::to_string_pretty(value);
    out.text(name, &(text.map_err(|e| FileError::json("write", &path, e))? + "\n"))
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    let text = fs::read_to_string(path).map_err(|e| FileError::io("read", path, &e))?;
    serde_json::from_str(&text).map_err(|e| FileError::json("read", path, e))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{QueueRow, TableWriter};

    /// All names in a directory, sorted.
    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// By which a run's directory is known.
    const MANIFEST: &str = "{\"versions\": {\"trimline\": \"0.1.0\"}}";

    const SUMMARY: &str = "{\"digest\": \"0\"}";

    #[test]
    fn what_no_run_has_written_is_not_replaced() {
        let base = tempfile::tempdir().unwrap();
        let (page, manifest) = (base.path().join("report.html"), base.path().join("manifest.json"));
        fs::write(&page, "mine").unwrap();
        let error = OutputDir::create(base.path()).unwrap_err();
        assert!(error.cause.starts_with("its report.html is of no run"), "{error}");
        assert_eq!(names(base.path()), ["report.html"], "nothing else is left");
        fs::write(&manifest, "{\"name\": \"of another program\"}").unwrap();
        assert!(OutputDir::create(base.path()).is_err());
        assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
        fs::write(&manifest, MANIFEST).unwrap();
        assert!(OutputDir::create(base.path()).is_ok());
        fs::remove_file(&manifest).unwrap();
        fs::remove_file(&page).unwrap();
        fs::write(base.path().join("notes.txt"), "mine").unwrap();
        assert!(OutputDir::create(base.path()).is_ok(), "notes.txt is in nobody's way");
    }

    #[test]
    fn who_is_interrupted_leaves_nothing() {
        let base = tempfile::tempdir().unwrap();
        let made = Unfinished {
            stage: base.path().join("a/b").join(STAGE),
            created: vec![base.path().join("a/b"), base.path().join("a")],
        };
        let out = OutputDir::create(base.path().join("a/b")).unwrap();
        out.text("summary.json", "{}").unwrap();
        assert!(unfinished().contains(&made), "what an interruption would clear");
        made.clear();
        assert_eq!(names(base.path()), Vec::<String>::new());
        drop(out);
        assert!(!unfinished().contains(&made));
    }

    /// Runs that begin and end beside each other, and in one place.
    #[test]
    fn neighbours_do_not_take_each_other_s_directories() {
        let base = tempfile::tempdir().unwrap();
        let lost = std::sync::atomic::AtomicU32::new(0);
        let together = std::sync::Barrier::new(4);
        // Of two in one place the later one finds the results of the other.
        let run = |dir: PathBuf| match OutputDir::create_for(dir, ResultsOf::Study) {
            // Every other one fails, and takes away what it has made.
            Ok(out) if out.dir().ends_with("3") => Ok(()),
            Ok(out) => out.text("study.json", "{\"engine\": 1}").and_then(|()| out.commit()),
            Err(error) if error.cause == "another run is writing to it" => Ok(()),
            Err(error) => Err(error),
        };
        std::thread::scope(|scope| {
            for n in 0..4 {
                let (base, lost, together) = (base.path(), &lost, &together);
                scope.spawn(move || {
                    for i in 0..20 {
                        together.wait();
                        let out = base.join(format!("out{i}"));
                        let dir = if n < 2 { out.join("same") } else { out.join(n.to_string()) };
                        if let Err(error) = run(dir) {
                            println!("{error}");
                            lost.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(lost.into_inner(), 0);
    }

    #[test]
    fn files_appear_at_commit_and_not_before() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("a/b");
        let out = OutputDir::create(&dir).unwrap();
        out.text("summary.json", "{}").unwrap();
        out.text("report.html", "<p>").unwrap();
        assert_eq!(names(&dir), [STAGE]);
        out.commit().unwrap();
        assert_eq!(names(&dir), ["report.html", "summary.json"]);
        assert_eq!(fs::read_to_string(dir.join("report.html")).unwrap(), "<p>");
    }

    #[test]
    fn without_commit_all_is_as_before() {
        let base = tempfile::tempdir().unwrap();
        let out = OutputDir::create(base.path().join("a/b")).unwrap();
        out.text("summary.json", "{}").unwrap();
        drop(out);
        assert_eq!(names(base.path()), Vec::<String>::new(), "created directories are gone");

        fs::write(base.path().join("summary.json"), "old").unwrap();
        fs::write(base.path().join("manifest.json"), MANIFEST).unwrap();
        let out = OutputDir::create(base.path()).unwrap();
        out.text("summary.json", "new").unwrap();
        drop(out);
        assert_eq!(names(base.path()), ["manifest.json", "summary.json"]);
        assert_eq!(fs::read_to_string(base.path().join("summary.json")).unwrap(), "old");
    }

    #[test]
    fn an_earlier_run_is_replaced_and_other_files_are_left() {
        let base = tempfile::tempdir().unwrap();
        for name in ["summary.json", "packets.pcapng", "notes.txt"] {
            fs::write(base.path().join(name), "old").unwrap();
        }
        fs::write(base.path().join("manifest.json"), MANIFEST).unwrap();
        let out = OutputDir::create(base.path()).unwrap();
        out.text("summary.json", "new").unwrap();
        out.commit().unwrap();
        assert_eq!(names(base.path()), ["notes.txt", "summary.json"]);
        assert_eq!(fs::read_to_string(base.path().join("summary.json")).unwrap(), "new");
    }

    #[test]
    fn an_unfinished_file_stops_the_commit() {
        let base = tempfile::tempdir().unwrap();
        let out = OutputDir::create(base.path()).unwrap();
        out.text("manifest.json", "{}").unwrap();
        drop(out.file("flows.parquet").unwrap());
        assert_eq!(out.commit().unwrap_err().cause, "unfinished");
        assert_eq!(names(base.path()), Vec::<String>::new());
    }

    #[test]
    fn one_run_at_a_time_and_a_killed_one_does_not_count() {
        let base = tempfile::tempdir().unwrap();
        let first = OutputDir::create(base.path()).unwrap();
        first.text("summary.json", SUMMARY).unwrap();
        let error = OutputDir::create(base.path()).unwrap_err();
        assert_eq!(error.cause, "another run is writing to it");
        first.commit().unwrap();
        assert_eq!(fs::read_to_string(base.path().join("summary.json")).unwrap(), SUMMARY);

        // What a killed run leaves: a stage that nobody has locked.
        fs::create_dir(base.path().join(STAGE)).unwrap();
        fs::write(base.path().join(STAGE).join("queues.parquet.partial"), "x").unwrap();
        OutputDir::create(base.path()).unwrap().commit().unwrap();
        assert_eq!(names(base.path()), Vec::<String>::new());
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("out");
        fs::write(&file, "").unwrap();
        for dir in [file.clone(), file.join("deeper")] {
            let error = OutputDir::create(&dir).unwrap_err().to_string();
            assert!(error.contains(dir.to_str().unwrap()), "{error}");
            assert!(error.contains("a file of that name is in the way"), "{error}");
            assert!(error.contains("--out"), "{error}");
        }
        assert_eq!(names(base.path()), ["out"]);
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error() {
        let dir = Path::new("/proc/trimline");
        if !Path::new("/proc/self").exists() {
            println!("skipped: no /proc here");
            return;
        }
        let error = OutputDir::create(dir).unwrap_err();
        assert_eq!((error.action, error.path.as_path()), ("write results to", dir));
    }

    /// A staged file that is really `/dev/full`, where every write fails.
    fn full() -> Option<StagedFile> {
        let file = File::options().write(true).open("/dev/full").ok()?;
        let (path, staged) = ("out/queues.parquet".into(), "/nonexistent/queues".into());
        Some(StagedFile { path, staged, file: BufWriter::new(file) })
    }

    #[test]
    fn every_writer_says_that_the_disk_is_full() {
        let (Some(table), Some(pcapng), Some(perfetto)) = (full(), full(), full()) else {
            println!("skipped: no /dev/full here");
            return;
        };
        let mut table = TableWriter::new(table).unwrap();
        table.push(QueueRow::default()).unwrap();
        let pcapng = crate::PcapngWriter::new(pcapng, []).unwrap();
        let perfetto = crate::PerfettoWriter::new(perfetto, []).unwrap();
        for result in [table.finish(), pcapng.into_inner().finish(), perfetto.finish()] {
            let error = result.unwrap_err().to_string();
            let expected = "cannot write out/queues.parquet: the disk is full (free some space, \
                 or choose another directory with --out)";
            assert_eq!(error, expected);
        }
    }

    /// Mounted for the life of the value.
    struct Mount(tempfile::TempDir);

    impl Mount {
        fn tmpfs(size: &str) -> Option<Self> {
            let dir = tempfile::tempdir().ok()?;
            let options = format!("size={size}");
            let mount = Command::new("mount")
                .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
                .arg(dir.path())
                .output();
            mount.is_ok_and(|m| m.status.success()).then(|| Self(dir))
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.0.path()).status();
        }
    }

    #[test]
    fn a_disk_that_fills_up_leaves_nothing() {
        let Some(disk) = Mount::tmpfs("64k") else {
            println!("skipped: cannot mount a tmpfs (not root, or a closed sandbox)");
            return;
        };
        let disk = disk.0.path();
        let dir = disk.join("out");
        let out = OutputDir::create(&dir).unwrap();
        out.text("manifest.json", "{}").unwrap();
        let error = out.text("report.html", &"x".repeat(1 << 20)).unwrap_err();
        assert_eq!(
            (error.path, error.cause.as_str()),
            (dir.join("report.html"), "the disk is full")
        );
        drop(out);
        assert_eq!(names(disk), Vec::<String>::new());

        fs::write(disk.join("filler"), vec![0; 1 << 20]).unwrap_err();
        let error = OutputDir::create(&dir).unwrap_err();
        assert_eq!(error.cause, "the disk is full", "seen before the run");
        assert_eq!(names(disk), ["filler"]);
    }
}
