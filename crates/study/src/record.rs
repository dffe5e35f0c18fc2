//! [`Record`]: the verdicts of a study as they were found last, in `verdicts.toml` beside its
//! `study.toml`. A row that leaves its recorded verdict is news, for better or worse.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use metrics::{FigureRow, Score, StudyResults, Verdict};
use scenario::{Diagnostic, Node, Value};

use crate::Checked;
use crate::run::entries;
use crate::study::{Study, document};

/// The recorded verdicts of a study: by figure and row, of both forms.
pub struct Record {
    path: PathBuf,
    figures: BTreeMap<String, BTreeMap<String, Forms>>,
}

/// What was found of a row.
#[derive(Clone, Copy, Default)]
struct Forms {
    full: Option<Verdict>,
    quick: Option<Verdict>,
}

/// A row whose verdict is not the recorded one.
pub struct Left<'r> {
    /// The row.
    pub row: &'r FigureRow,
    /// Its recorded verdict, if there is one.
    pub recorded: Option<Verdict>,
}

impl Forms {
    fn of(&mut self, quick: bool) -> &mut Option<Verdict> {
        if quick { &mut self.quick } else { &mut self.full }
    }
}

impl Record {
    /// Read the record of `study`; without a file nothing is recorded.
    ///
    /// # Errors
    /// The file cannot be read, or has something else in it than verdicts.
    pub fn load(study: &Study) -> Result<Self, Diagnostic> {
        let path = study.dir.join("verdicts.toml");
        let mut figures = BTreeMap::new();
        if path.is_file() {
            let document = document(&path)?;
            for (figure, (_, rows)) in entries(&document.root)? {
                let rows = entries(rows)?.iter();
                let row = |(id, (_, forms)): (&String, &(_, Node))| Ok((id.clone(), read(forms)?));
                figures.insert(figure.clone(), rows.map(row).collect::<Checked<_>>()?);
            }
        }
        Ok(Self { path, figures })
    }

    /// The rows of `results` that left their verdicts. One without a record is expected to come
    /// out.
    #[must_use]
    pub fn left<'r>(&self, results: &'r StudyResults) -> Vec<Left<'r>> {
        let left = |row: &'r FigureRow| {
            let result = &row.result;
            let forms = self.figures.get(&result.figure).and_then(|rows| rows.get(&result.row));
            let recorded = forms.copied().and_then(|mut forms| *forms.of(results.quick));
            let same = recorded.map_or(result.verdict.is_good(), |was| was == result.verdict);
            (!same).then_some(Left { row, recorded })
        };
        results.rows().filter_map(left).collect()
    }

    /// Take over the verdicts of `results`; what `study` has no longer is forgotten.
    pub fn update(&mut self, study: &Study, results: &StudyResults) {
        if !study.one_figure {
            self.figures.retain(|id, _| study.figures.iter().any(|figure| figure.id == *id));
        }
        for figure in &study.figures {
            let rows = self.figures.entry(figure.id.clone()).or_default();
            rows.retain(|id, _| figure.rows.iter().any(|row| row.id == *id));
            rows.values_mut().for_each(|forms| *forms.of(results.quick) = None);
        }
        for row in results.rows().map(|row| &row.result) {
            let rows = self.figures.entry(row.figure.clone()).or_default();
            *rows.entry(row.row.clone()).or_default().of(results.quick) = Some(row.verdict);
        }
        self.figures.retain(|_, rows| !rows.is_empty());
    }

    /// The score of the rows of `study` as they are recorded.
    #[must_use]
    pub fn score(&self, study: &Study, quick: bool) -> Score {
        let rows = study.figures.iter().flat_map(|figure| {
            let recorded = self.figures.get(&figure.id);
            figure.rows.iter().filter_map(move |row| {
                let mut forms = *recorded?.get(&row.id)?;
                Some((row.origin, (*forms.of(quick))?))
            })
        });
        Score::of(rows)
    }

    /// Write the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self) -> Result<(), Diagnostic> {
        std::fs::write(&self.path, self.to_string()).map_err(|why| {
            let error = Diagnostic::new(format!("cannot write {}: {why}", self.path.display()));
            error.hint("the record stands beside study.toml")
        })
    }
}

impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "# Verdicts as they were found last: `trimline reproduce STUDY --record`.")?;
        for (figure, rows) in &self.figures {
            writeln!(f, "\n[{figure}]")?;
            for (row, forms) in rows {
                let mut all = String::new();
                for (form, verdict) in [("full", forms.full), ("quick", forms.quick)] {
                    if let Some(verdict) = verdict {
                        let comma = if all.is_empty() { "" } else { ", " };
                        write!(all, "{comma}{form} = \"{}\"", verdict.name())?;
                    }
                }
                if !all.is_empty() {
                    writeln!(f, "{row:?} = {{ {all} }}")?;
                }
            }
        }
        Ok(())
    }
}

fn read(node: &Node) -> Checked<Forms> {
    let mut forms = Forms::default();
    for (form, (at, verdict)) in entries(node)? {
        let found = match &verdict.value {
            Value::Text(text) => Verdict::ALL.into_iter().find(|known| known.name() == text),
            _ => None,
        };
        let (true, Some(found)) = (["full", "quick"].contains(&form.as_str()), found) else {
            let error = at.error("this is no verdict of a form", "here");
            return Err(error.hint("write it like `full = \"in band\"` or `quick = \"holds\"`"));
        };
        *forms.of(form == "quick") = Some(found);
    }
    Ok(forms)
}
