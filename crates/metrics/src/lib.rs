//! Streaming statistics and result files.
//!
//! | file | written by | holds |
//! |---|---|---|
//! | `summary.json` | [`Summary`] | the run in one page of numbers |
//! | `manifest.json` | [`Manifest`] | what was run, and the command that runs it again |
//! | `flows.parquet` | [`FlowRow`] | one row per message |
//! | `jobs.parquet` | [`JobRow`] | one row per piece of work of several messages, where there are such |
//! | `steps.parquet` | [`StepRow`] | one row per step and rank of training jobs, where there are such |
//! | `collectives.parquet` | [`CollectiveRow`] | one row per collective and rank of training jobs |
//! | `critical.parquet` | [`CriticalRow`] | what each step of training jobs waited for |
//! | `series.parquet` | [`Series`] | queues, goodput and link use over time, at most 2000 points |
//! | `links.parquet` | [`LinkRow`] | one row per directed link |
//! | `packet_latency.parquet` | [`LatencyRow`] | how long packets took until they were acknowledged, with `measure.packet_latency` |
//! | `life.parquet` | [`LifeRow`] | where the time of each message went, with `measure.life` |
//! | `flow_trace.parquet` | [`FlowTraceRow`] | windows, rates and round trips over time, with `--trace flows@SRC:MSG` |
//! | `queues.parquet` | [`QueueRow`] | queue lengths, sampled, with `--trace queues` |
//! | `metrics.json` | [`RunValues`] | every metric of a job of a sweep or comparison |
//! | `runs.parquet` | [`RunTable`] | one row per job of a sweep or comparison |
//! | `tune.json` | [`TuneResults`] | what `tune` found |
//! | `comparison.json` | [`ComparisonResults`] | what a comparison over seeds says |
//! | `results.json`, `study.json` | [`StudyResults`] | what a study's rows say, with `reproduce` |
//! | `packets.pcapng` | [`PcapngWriter`] | every packet that arrives at a host, with `--trace packets` |
//! | `hops.pcapng` | [`PcapngWriter`] | every packet on every link, with `--trace packets` |
//! | `trace.perfetto.json` | [`PerfettoWriter`] | the same on a time line, with `--trace packets` |
//!
//! All of them go through [`OutputDir`], which publishes a run's files together or not at all.

mod cdf;
mod comparison;
mod critical;
mod error;
mod flow;
mod flow_stats;
mod flow_trace;
mod job;
mod life;
mod link;
mod manifest;
mod metric;
mod output;
mod packet_latency;
mod pcapng;
mod perfetto;
mod phases;
mod runs;
mod series;
mod sorted;
mod statistics;
mod step;
mod study;
mod summary;
mod table;
mod tune;

pub use cdf::{Thinning, cdf, cdf_of};
pub use comparison::{
    COMPARISON_SCHEMA, Compared, ComparisonResults, Difference, Estimate, Order, Setting,
    SizeCompared, joint_confidence, named, row,
};
pub use critical::{CriticalRow, read_critical, write_critical};
pub use error::FileError;
pub use flow::{Failure, FlowRow, read_each_flow, read_flows, write_flow_rows, write_flows};
pub use flow_stats::{
    FlowFold, Window, acked_us, fct_us, long_flow_goodputs, size_bucket, size_buckets, slowdowns,
};
pub use flow_trace::{FlowTraceRow, read_flow_trace};
pub use job::{JobRow, JobStats, Stats, fold_jobs, job_times_us, read_jobs, write_jobs};
pub use life::{
    ByCause, CAUSES, LIFE_CAUSES, LifeCause, LifeRow, LifeStats, read_each_life, read_lives,
    write_lives,
};
pub use link::{LinkRow, QueueRow, read_links, read_queues, write_links};
pub use manifest::{Manifest, Versions};
pub use metric::{
    BY_PHASE, BY_SIZE_ERROR, BY_TRAFFIC, Metric, Numbers, Unit, all_metrics, documented_metrics,
    metrics_of, metrics_under,
};
pub use output::{OutputDir, ResultsOf, StagedFile, discard_unfinished};
pub use packet_latency::{LatencyRow, PacketLatency, read_packet_latency, write_packet_latency};
pub use pcapng::{Interface, PcapngWriter};
pub use perfetto::{MessageSlice, Part, PerfettoWriter, Port};
pub use phases::{Phase, PhaseFold};
pub use runs::{RunRow, RunTable, RunValues};
pub use series::{MAX_POINTS, QueueSample, Series, SeriesRow, read_series};
pub use sorted::{Items, Merge, Pack, Runs, Sorted, Sorter, take};
pub use statistics::{
    Moments, jain, mean_and_interval, mean_and_interval_at, nearest_rank, student_t,
};
pub use step::{
    CollectiveRow, StepRow, StepStats, StepTimes, fold_steps, read_collectives, read_steps,
    write_collectives, write_steps,
};
pub use study::{
    AxisSpec, Curve, CurvePoint, Experiment, FigureResults, FigureRow, Form, OnPhases, Origin,
    Plot, RowResult, RunRecord, STUDY_SCHEMA, Score, Shows, Span, StudyResults, Timeline, Verdict,
    is_within,
};
pub use summary::{
    Calibration, Deadlines, Distribution, Failed, FctUs, FlowGoodput, FlowStats, Measured,
    Messages, Packets, Pfc, QueueBytes, RESULT_SCHEMA, RelativeError, SharedBuffer, SizeBucket,
    SizeError, SkipStats, Summary, Timeouts, TrafficStats, Verified, size_range,
};
pub use table::{Columns, Row, TableWriter};
pub use tune::{Aim, Flat, HalvingRound, Sampling, Stands, TUNE_SCHEMA, TunePoint, TuneResults};
