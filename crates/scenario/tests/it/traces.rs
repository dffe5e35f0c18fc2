//! `kind = "job"` with a `file`: traces of training jobs are played, and what is wrong with them or
//! with the keys beside them is said with its place.

use std::path::Path;

use trimline_scenario::{Options, Results, Scenario, evaluate};

const RING: &str = include_str!("../../../../scenarios/ai/ring.toml");

/// The files of the readers' own tests.
fn data() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ai/tests/data")
}

/// The scenario of the ring with another job: the lines of `keys` instead of its own.
fn load(keys: &str) -> Result<Scenario, String> {
    let own = ["collective", "size", "steps", "algorithm"];
    let kept = RING.lines().filter(|line| !own.iter().any(|key| line.starts_with(key)));
    let text = kept.collect::<Vec<_>>().join("\n") + "\nalgorithm = \"ring\"\n" + keys;
    let sets = crate::EXACT.map(str::to_owned);
    Scenario::parse("job.toml", &text, &data(), &sets).map_err(|e| e.render(false))
}

fn run(keys: &str) -> Results {
    let scenario = load(keys).unwrap_or_else(|e| panic!("{keys}: {e}"));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{keys}: {e}"))
}

/// A trace of one collective is the job of that collective, to the digest.
#[test]
fn astra_sims_micro_benchmarks_are_jobs_of_one_collective() {
    for (name, keys) in [
        ("all_reduce", "size = \"1MiB\"\ncollective = \"all-reduce\""),
        ("reduce_scatter", "size = \"1MiB\"\ncollective = \"reduce-scatter\""),
        ("all_to_all", "size = \"1MiB\"\ncollective = \"all-to-all\""),
        // In a trace the size is what one rank brings.
        ("all_gather", "size = \"8MiB\"\ncollective = \"all-gather\""),
    ] {
        let trace = run(&format!("file = \"astra-sim/{name}/8npus_1MB/{name}.0.et\""));
        let job = run(&format!("{keys}\nranks = 8\nsteps = 1"));
        assert_eq!(trace.summary.digest, job.summary.digest, "{name}");
        assert_eq!(trace.summary.steps.completed, 1, "{name}");
    }
}

/// Every message of every format comes to its end.
#[test]
fn traces_of_all_formats_are_played() {
    for (keys, steps) in [
        ("file = \"tree_8.goal\"", 1),
        ("file = \"any_3.goal\"", 1),
        ("file = \"transformer_8.txt\"", 1),
        ("file = \"micro.txt\"\nranks = 4", 3),
        ("file = \"pipeline_8.csv\"", 2),
        ("file = \"micro.csv\"\nranks = 4", 2),
        ("file = \"pair/pair.0.et\"", 1),
    ] {
        let results = run(keys);
        let steps_of = results.summary.steps;
        assert_eq!((steps_of.completed, steps_of.unfinished), (steps, 0), "{keys}");
        let messages = results.summary.flows.messages;
        assert!(messages.submitted > 0 && messages.submitted == messages.completed, "{keys}");
    }
}

/// astra-sim's system file cuts collectives: four all-reduces one after the other cost 3 x 2(n - 1)
/// latencies more than one.
#[test]
fn a_system_file_cuts_collectives() {
    let file = "file = \"astra-sim/all_reduce/4npus_1MB/all_reduce.0.et\"\n";
    let whole = run(file);
    let cut = run(&(file.to_owned() + "system = \"astra-sim/Ring_4chunks.json\""));
    assert_eq!(cut.summary.flows.messages.submitted, 4 * whole.summary.flows.messages.submitted);
    let [whole, cut] = [whole, cut].map(|run| run.summary.steps.time_us.max.unwrap());
    assert!(cut > whole, "{cut} and {whole}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (keys, expected) in [
        ("file = \"none.goal\"", "cannot read"),
        ("file = \"README.md\"", "`README.md` is no trace of a training job"),
        ("file = \"pair/pair.et\"", "cannot read"),
        ("file = \"tree_8.goal\"\nranks = 7", "tree_8.goal:2:11"),
        ("file = \"tree_8.goal\"\nsteps = 2", "`steps`"),
        ("file = \"tree_8.goal\"\ncollective = \"barrier\"\nsteps = 2", "exclude each other"),
        ("collective = \"barrier\"\nsteps = 2\ngroups = \"x.json\"", "`groups`"),
        ("file = \"pair/pair.0.et\"\ngroups = \"README.md\"", "README.md:1:1"),
        ("file = \"pair/pair.0.et\"\nranks = 1", "2 files, but there is room for 1 ranks"),
    ] {
        let error = load(keys).err().unwrap_or_else(|| panic!("{keys} is valid"));
        assert!(error.contains(expected), "{keys}: {error}");
    }
}

/// A scenario with a trace is played from its manifest, and only with the same files.
#[test]
fn a_manifest_knows_the_files() {
    let folder = tempfile::tempdir().unwrap();
    for rank in [0, 1] {
        let name = format!("pair.{rank}.et");
        std::fs::copy(data().join("pair").join(&name), folder.path().join(&name)).unwrap();
    }
    let file = folder.path().join("pair.0.et");
    let resolved = load(&format!("file = {:?}", file.display().to_string())).unwrap();
    let text = resolved.resolved().to_string();
    let again = Scenario::parse("m.toml", &text, Path::new(""), &[]);
    assert!(again.is_ok(), "{}", again.err().unwrap().render(false));
    std::fs::copy(data().join("nodes.0.et"), folder.path().join("pair.1.et")).unwrap();
    let changed = Scenario::parse("m.toml", &text, Path::new(""), &[]).err().unwrap();
    assert!(changed.render(false).contains("the file has changed"), "{}", changed.render(false));
}
