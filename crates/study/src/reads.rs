//! What rows, the experiments on their causes and curves read of a figure's runs.

use std::collections::BTreeSet;

use metrics::{Form, Origin};

use crate::figure::{Curve, CurveOf, Figure};
use crate::formula::Formula;
use crate::row::{Cause, Row};
use crate::run::{Point, Run};

/// A point of the sweep of a run: by index of the run.
pub(crate) type Read = (usize, Point);

impl Figure {
    /// Leave out rows and curves that read a run whose tool is not here.
    pub(crate) fn skip_without_tools(&mut self) {
        self.runs.iter_mut().for_each(Run::find_tool);
        let shown = |curve: &Curve| {
            let reads = self.reads_of_curve(curve, false).into_iter().map(|(run, _)| run);
            self.missing(reads.chain([curve.run])).is_none()
        };
        let shown: Vec<bool> = self.curves.iter().map(shown).collect();
        let kept: Vec<bool> = self.rows.iter().map(|row| self.lacks(row).is_none()).collect();
        let (rows, curves) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.curves));
        for (row, kept) in rows.into_iter().zip(kept) {
            if kept { self.rows.push(row) } else { self.skipped.push(row) }
        }
        self.curves =
            curves.into_iter().zip(shown).filter_map(|(c, shown)| shown.then_some(c)).collect();
    }

    /// Why a row is skipped: a run that it reads, or the experiment on its cause, lacks its tool.
    fn lacks(&self, row: &Row) -> Option<&str> {
        let reads = self.reads_of(row).into_iter().map(|(run, _)| run);
        self.missing(reads.chain(row.cause.as_ref().map(|cause| cause.run)))
    }

    /// Why one of `runs` is not run, if its tool is not here.
    fn missing(&self, mut runs: impl Iterator<Item = usize>) -> Option<&str> {
        runs.find_map(|run| self.runs[run].missing())
    }

    /// Rows of a form that are skipped, each with why.
    pub(crate) fn skipped_in(&self, form: Form) -> impl Iterator<Item = (&str, &str)> {
        let is_in_form = move |row: &&Row| match form {
            Form::Full => true,
            Form::Published => row.origin == Origin::Published,
            Form::Quick => self.reads_of(row).iter().all(|(r, _)| self.runs[*r].quick.is_some()),
        };
        let rows = self.skipped.iter().filter(is_in_form);
        rows.filter_map(|row| Some((&*row.id, self.lacks(row)?)))
    }

    /// Leave out rows that are not published, and curves of which a point would not be run.
    pub(crate) fn keep_published(&mut self) {
        let is_published = |row: &Row| row.origin == Origin::Published;
        let (kept, others) = std::mem::take(&mut self.rows).into_iter().partition(is_published);
        let others: Vec<Row> = others;
        self.rows = kept;
        self.left_out = others.into_iter().map(|row| row.id).collect();
        let read = self.read_by_rows();
        let curves = std::mem::take(&mut self.curves).into_iter();
        let is_run = |curve: &Curve| {
            let reads = self.reads_of_curve(curve, false);
            reads.iter().all(|of| read.contains(of))
        };
        self.curves = curves.filter(is_run).collect();
    }

    /// What rows read, without the experiments on their causes.
    pub(crate) fn read_by_rows(&self) -> BTreeSet<Read> {
        self.rows.iter().flat_map(|row| self.reads_of(row)).collect()
    }

    /// What the experiments on causes of rows read.
    pub(crate) fn read_by_causes(&self, quick: bool) -> BTreeSet<Read> {
        let causes = self.rows.iter().filter_map(|row| Some((row, row.cause.as_ref()?)));
        let of = |(row, cause): (&Row, &Cause)| {
            let point = self.point_of(row, cause, quick)?;
            Some(self.reads(cause.run, &cause.formula, &point))
        };
        causes.filter_map(of).flatten().collect()
    }

    /// What only the experiments on causes read.
    pub(crate) fn read_by_causes_alone(&self, quick: bool) -> BTreeSet<Read> {
        let by_curves = self.curves.iter().flat_map(|curve| self.reads_of_curve(curve, quick));
        let by_others = &self.read_by_rows() | &by_curves.collect();
        &self.read_by_causes(quick) - &by_others
    }

    /// What a row reads.
    pub(crate) fn reads_of(&self, row: &Row) -> Vec<Read> {
        let points = row.points().into_iter();
        points.flat_map(|(run, point)| self.reads(run, &row.formula, point)).collect()
    }

    /// What a curve reads.
    fn reads_of_curve(&self, curve: &Curve, quick: bool) -> Vec<Read> {
        let points = curve.points(&self.runs[curve.run], quick).into_iter();
        let of = |point| match &curve.of {
            CurveOf::Along { y, .. } => self.reads(curve.run, y, &point),
            _ => vec![(curve.run, point)],
        };
        points.flat_map(of).collect()
    }

    /// The point of the sweep of the run of `cause`; nothing if the quick form leaves it out.
    pub(crate) fn point_of(&self, row: &Row, cause: &Cause, quick: bool) -> Option<Point> {
        let run = &self.runs[cause.run];
        let point = cause.at.clone().or_else(|| run.same_point(&self.runs[row.run], &row.point))?;
        run.points(quick).contains(&point).then_some(point)
    }

    /// The runs that `formula` reads at `point` of the sweep of `run`, each at its own point.
    pub(crate) fn reads(&self, run: usize, formula: &Formula, point: &Point) -> Vec<Read> {
        let own = &self.runs[run];
        let others = formula.names().filter(|name| own.axis(name).is_none()).map(|name| {
            let other = self.distance(name).map(|(other, _)| other);
            other.unwrap_or_else(|| self.resolve(run, name).0)
        });
        let all: BTreeSet<usize> = others.chain([run]).collect();
        let at = |index: usize| Some((index, self.runs[index].same_point(own, point)?));
        all.into_iter().filter_map(at).collect()
    }
}
