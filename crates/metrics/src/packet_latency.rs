//! [`PacketLatency`]: how long packets took until they were acknowledged, and its distribution in
//! `packet_latency.parquet`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use units::Dur;

use crate::statistics::{Moments, nearest_rank};
use crate::table::read_table;
use crate::{Columns, FileError, Row, StagedFile, TableWriter};

/// From the first transmission of a packet with payload, at its beginning, to the arrival of its
/// acknowledgement at the sender, retransmissions in between included, in microseconds. Over the
/// packets first transmitted inside the measurement window; percentiles are exact nearest ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketLatency {
    /// Packets acknowledged.
    pub count: u64,
    /// Packets that were not when the run ended: they are missing from the rest.
    pub unacknowledged: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl PacketLatency {
    /// The numbers of `ascending` latencies, beside which `unacknowledged` packets are missing.
    #[must_use]
    pub fn of(ascending: &[Dur], unacknowledged: u64) -> Self {
        let at = |permille| nearest_rank(ascending, permille).map(Dur::as_us_f64);
        Self {
            count: ascending.len() as u64,
            unacknowledged,
            mean: ascending.iter().map(|d| d.as_us_f64()).collect::<Moments>().mean(),
            p50: at(500),
            p90: at(900),
            p99: at(990),
            max: at(1000),
        }
    }
}

/// A point of the distribution: `permille` thousandths of the packets were acknowledged within
/// `latency`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyRow {
    /// 1 to 1000.
    pub permille: u32,
    /// The nearest rank.
    pub latency: Dur,
}

impl Row for LatencyRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("permille", "thousandths of the packets acknowledged within latency_ps")
            .field(|r| &mut r.permille)
            .column(
                "latency_ps",
                "from a packet's first transmission to the arrival of its acknowledgement",
            )
            .field(|r| &mut r.latency)
    }
}

/// Writes `packet_latency.parquet`: the distribution of `ascending` latencies in 1000 points, none
/// if there are none.
///
/// # Errors
/// The file cannot be written.
pub fn write_packet_latency(file: StagedFile, ascending: &[Dur]) -> Result<(), FileError> {
    let mut table = TableWriter::new(file)?;
    for permille in 1..=1000 {
        if let Some(latency) = nearest_rank(ascending, permille) {
            table.push(LatencyRow { permille, latency })?;
        }
    }
    table.finish()
}

/// All rows of a `packet_latency.parquet`.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_packet_latency(path: &Path) -> Result<Vec<LatencyRow>, FileError> {
    read_table(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutputDir;

    #[test]
    fn by_hand() {
        let ascending: Vec<Dur> = (1..=200).map(Dur::from_us).collect();
        let latency = PacketLatency::of(&ascending, 3);
        assert_eq!((latency.count, latency.unacknowledged), (200, 3));
        let numbers = [latency.mean, latency.p50, latency.p90, latency.p99, latency.max];
        assert_eq!(numbers, [100.5, 100.0, 180.0, 198.0, 200.0].map(Some));
        assert_eq!(PacketLatency::of(&[], 0), PacketLatency::default());

        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        write_packet_latency(out.file("packet_latency.parquet").unwrap(), &ascending).unwrap();
        out.commit().unwrap();
        let rows = read_packet_latency(&dir.path().join("packet_latency.parquet")).unwrap();
        assert_eq!(rows.len(), 1000);
        assert_eq!(rows[989], LatencyRow { permille: 990, latency: Dur::from_us(198) });
        assert!(rows.is_sorted_by_key(|row| row.latency));
    }
}
