//! [`Record`]: the verdicts of a study as they were found last, in `verdicts.toml` beside its
//! `study.toml`. A row that leaves its recorded verdict is news, for better or worse.

use std::collections::BTreeMap;
use std::path::PathBuf;

use metrics::{FigureRow, Form, Score, StudyResults, Verdict};
use scenario::{Diagnostic, Node, Value};

use crate::Checked;
use crate::run::entries;
use crate::study::{Study, document};

/// The recorded verdicts of a study: by figure and row, of each form.
pub struct Record {
    path: PathBuf,
    figures: BTreeMap<String, BTreeMap<String, Forms>>,
}

/// What was found of a row.
#[derive(Clone, Copy, Default)]
struct Forms {
    /// With all sizes and seeds, and in which of the two forms that have them.
    whole: Option<(Form, Verdict)>,
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
    const fn of(self, form: Form) -> Option<Verdict> {
        match (form, self.whole) {
            (Form::Quick, _) => self.quick,
            (_, Some((_, verdict))) => Some(verdict),
            (_, None) => None,
        }
    }

    const fn set(&mut self, form: Form, verdict: Verdict) {
        match form {
            Form::Quick => self.quick = Some(verdict),
            Form::Full | Form::Published => self.whole = Some((form, verdict)),
        }
    }

    const fn forget(&mut self, form: Form) {
        match form {
            Form::Quick => self.quick = None,
            Form::Full | Form::Published => self.whole = None,
        }
    }

    /// All that was found, each with its form.
    fn all(self) -> impl Iterator<Item = (Form, Verdict)> {
        self.whole.into_iter().chain(self.quick.map(|verdict| (Form::Quick, verdict)))
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
            let recorded = forms.and_then(|forms| forms.of(results.form));
            let same = recorded.map_or(result.verdict.is_good(), |was| was == result.verdict);
            (!same).then_some(Left { row, recorded })
        };
        results.rows().filter_map(left).collect()
    }

    /// Take over the verdicts of `results`; what `study` has no longer is forgotten, and rows that
    /// its form leaves out keep theirs.
    pub fn update(&mut self, study: &Study, results: &StudyResults) {
        if !study.one_figure {
            self.figures.retain(|id, _| study.figures.iter().any(|figure| figure.id == *id));
        }
        for figure in &study.figures {
            let rows = self.figures.entry(figure.id.clone()).or_default();
            let is_in_form = |id: &String| figure.rows.iter().any(|row| row.id == *id);
            let is_skipped = |id: &String| figure.skipped.iter().any(|row| row.id == *id);
            let keeps = |id: &String| is_in_form(id) || figure.left_out.contains(id);
            rows.retain(|id, _| keeps(id) || is_skipped(id));
            let in_form = rows.iter_mut().filter(|(id, _)| is_in_form(id));
            in_form.for_each(|(_, forms)| forms.forget(results.form));
        }
        for row in results.rows().map(|row| &row.result) {
            let rows = self.figures.entry(row.figure.clone()).or_default();
            rows.entry(row.row.clone()).or_default().set(results.form, row.verdict);
        }
        self.figures.retain(|_, rows| !rows.is_empty());
    }

    /// The score of the rows of `study`, in its form, as they are recorded.
    #[must_use]
    pub fn score(&self, study: &Study) -> Score {
        let rows = study.figures.iter().flat_map(|figure| {
            let recorded = self.figures.get(&figure.id);
            // What is recorded is true on machines without a tool, too.
            let rows = figure.rows.iter().chain(&figure.skipped);
            rows.filter_map(move |row| Some((row.origin, recorded?.get(&row.id)?.of(study.form)?)))
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
                let said = |(form, verdict): (Form, Verdict)| {
                    format!("{} = \"{}\"", form.name(), verdict.name())
                };
                let all: Vec<String> = forms.all().map(said).collect();
                if !all.is_empty() {
                    writeln!(f, "{row:?} = {{ {} }}", all.join(", "))?;
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
        let form = Form::ALL.into_iter().find(|known| known.name() == form);
        let (Some(form), Some(found)) = (form, found) else {
            let error = at.error("this is no verdict of a form", "here");
            return Err(error.hint("write it like `full = \"in band\"` or `quick = \"holds\"`"));
        };
        forms.set(form, found);
    }
    Ok(forms)
}
