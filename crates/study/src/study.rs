//! [`Study`]: where a study's files are, and what `study.toml` says.

use std::path::{Path, PathBuf};

use metrics::Form;
use scenario::{Diagnostic, Document, Reader, did_you_mean, read_text};

use crate::Checked;
use crate::figure::Figure;

/// Where studies are looked for by name, from the working directory.
const STUDIES: &str = "studies";

/// A study, or one figure of it, in one of its forms.
pub struct Study {
    /// Where its `study.toml` is.
    pub(crate) dir: PathBuf,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) publication: String,
    /// The figure whose plot the page shows first.
    pub(crate) picture: Option<String>,
    pub(crate) figures: Vec<Figure>,
    /// Whether it is one figure of the study.
    pub(crate) one_figure: bool,
    pub(crate) form: Form,
}

/// What `study.toml` says.
struct Head {
    title: String,
    publication: String,
    picture: Option<String>,
    figures: Vec<String>,
}

impl Study {
    /// Figures of one's own, of no publication.
    pub(crate) fn of_figures(name: String, title: String, figures: Vec<Figure>) -> Self {
        Self {
            dir: PathBuf::new(),
            name,
            title,
            publication: String::new(),
            picture: None,
            figures,
            one_figure: false,
            form: Form::Full,
        }
    }

    /// Read the study or figure `what`: `ndp` or `ndp/fig14` in `./studies`, or the path of such a
    /// directory.
    ///
    /// # Errors
    /// There is no such study, or the first thing that is wrong in its files.
    pub fn load(what: &str) -> Result<Self, Diagnostic> {
        let what = what.trim_end_matches('/');
        for dir in [Path::new(STUDIES).join(what), PathBuf::from(what)] {
            if dir.join("study.toml").is_file() {
                return Self::read(&dir, None);
            }
            if let (Some(parent), Some(figure)) = (dir.parent(), dir.file_name())
                && parent.join("study.toml").is_file()
            {
                return Self::read(parent, Some(&figure.to_string_lossy()));
            }
        }
        Err(unknown(what))
    }

    /// The study's name, or that of the study and the figure: `ndp/fig14`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.figures.as_slice() {
            [figure] if self.one_figure => format!("{}/{}", self.name, figure.id),
            _ => self.name.clone(),
        }
    }

    /// Rows of its form that are skipped, since a tool is not here: figure, row and why.
    #[must_use]
    pub fn skipped(&self) -> Vec<(&str, &str, &str)> {
        let of_figure = |figure| {
            let rows = Figure::skipped_in(figure, self.form);
            rows.map(|(row, why)| (&*figure.id, row, why)).collect::<Vec<_>>()
        };
        self.figures.iter().flat_map(of_figure).collect()
    }

    /// The same in another form; it is loaded in the full one.
    #[must_use]
    pub fn in_form(mut self, form: Form) -> Self {
        self.form = form;
        if form == Form::Published {
            self.figures.iter_mut().for_each(Figure::keep_published);
        }
        self
    }

    fn read(dir: &Path, only: Option<&str>) -> Checked<Self> {
        let head = Head::read(dir)?;
        // The name of `.` or `..` is that of the directory it stands for.
        let named = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let name = named.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| "study".to_owned());
        let figures = match only {
            None => head.figures.clone(),
            Some(figure) if head.figures.iter().any(|f| f == figure) => vec![figure.to_owned()],
            Some(figure) => {
                let known: Vec<&str> = head.figures.iter().map(String::as_str).collect();
                let error = Diagnostic::new(format!("study `{name}` has no figure `{figure}`"));
                return Err(error.hint(did_you_mean(figure, &known)));
            }
        };
        let figures = figures.iter().map(|id| Figure::load(id, &dir.join(id)));
        let figures = figures.collect::<Result<_, _>>()?;
        let Head { title, publication, picture, .. } = head;
        let (dir, one_figure) = (dir.to_owned(), only.is_some());
        let form = Form::Full;
        Ok(Self { dir, name, title, publication, picture, figures, one_figure, form })
    }
}

impl Head {
    fn read(dir: &Path) -> Checked<Self> {
        let path = dir.join("study.toml");
        let document = document(&path)?;
        let mut root = Reader::new(&document.root, &document.root.at, "the study")?;
        let head = Self {
            title: root.need("title")?,
            publication: root.need("publication")?,
            picture: root.maybe("picture")?,
            figures: root.need("figures")?,
        };
        for figure in &head.figures {
            if !dir.join(figure).join("figure.toml").is_file() {
                let message = format!("figure `{figure}` has no {figure}/figure.toml");
                let error = root.error("figures", message, "named here");
                return Err(error.hint("a figure is a directory beside study.toml"));
            }
        }
        if let Some(picture) = &head.picture
            && !head.figures.contains(picture)
        {
            let known: Vec<&str> = head.figures.iter().map(String::as_str).collect();
            let error = root.error("picture", format!("there is no figure `{picture}`"), "here");
            return Err(error.hint(did_you_mean(picture, &known)));
        }
        root.finish()?;
        Ok(head)
    }
}

/// The TOML file `path`.
pub(crate) fn document(path: &Path) -> Checked<Document> {
    let name = path.display().to_string();
    let text = read_text(path).map_err(|why| {
        Diagnostic::new(format!("cannot read {name}: {why}")).hint("see docs/studies.md")
    })?;
    Document::parse(&name, &text)
}

/// Names and titles of the studies in `./studies`.
///
/// # Errors
/// A `study.toml` that cannot be read.
pub fn list() -> Result<Vec<(String, String)>, Diagnostic> {
    let mut found = Vec::new();
    for name in names() {
        let title = Head::read(&Path::new(STUDIES).join(&name))?.title;
        found.push((name, title));
    }
    Ok(found)
}

/// The names of the directories in `./studies` that are studies, sorted.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir(STUDIES).into_iter().flatten().flatten();
    let studies = entries.filter(|entry| entry.path().join("study.toml").is_file());
    let mut names: Vec<String> =
        studies.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn unknown(what: &str) -> Diagnostic {
    let error = Diagnostic::new(format!("there is no study `{what}`"));
    let names = names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        return error.hint(
            "studies are looked for in ./studies: `trimline examples DIR` writes them to \
             DIR/studies, so change to DIR, or give the path of the study's directory",
        );
    }
    let study = what.split('/').next().unwrap_or(what);
    error.hint(format!("in ./studies, {}; the path of a directory does as well", {
        did_you_mean(study, &names)
    }))
}
