//! P4 programs that scenarios name: `program`, `constants`, `backend`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nic::interp::Machine;
use nic::ir;
use nic::program::{Externs, Program};

use crate::diagnostic::{Diagnostic, Source};
use crate::document::Value;
use crate::files;
use crate::reader::{Knob, Reader};

/// Who runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    /// The reference.
    Interpreter,
    /// Generated code, for the programs of `p4/` with the constants that `programs` has.
    Rust,
}

const BACKENDS: [(&str, Backend); 2] =
    [("interpreter", Backend::Interpreter), ("rust", Backend::Rust)];

/// A program, compiled.
pub(crate) struct Compiled {
    /// What it is.
    pub(crate) program: Arc<ir::Program>,
    backend: Backend,
}

impl Compiled {
    /// Read `program`, relative to `dir`, `constants` and `backend`.
    pub(crate) fn read(table: &mut Reader<'_>, dir: &Path) -> Result<Self, Diagnostic> {
        let program = Arc::new(program(table, dir)?);
        let (_, backend) = *table.choose("backend", &BACKENDS, |(name, _)| name)?;
        Ok(Self { program, backend })
    }

    /// What runs it, in the state in which it begins; `None` if there is no generated code of it.
    pub(crate) fn runs<E: Externs + ?Sized>(&self) -> Option<Box<dyn Program<E>>> {
        match self.backend {
            Backend::Interpreter => Some(Box::new(Machine::new(Arc::clone(&self.program)))),
            Backend::Rust => programs::find(Arc::clone(&self.program)),
        }
    }

    /// As `runs`, with an error that names the key in the table that the program is from.
    pub(crate) fn first<E: Externs + ?Sized>(
        &self,
        table: &Reader<'_>,
    ) -> Result<Box<dyn Program<E>>, Diagnostic> {
        self.runs().ok_or_else(|| {
            let message = "there is no generated Rust of this program with these constants";
            let error = table.error("backend", message, "not this one");
            error.hint("use \"interpreter\"; crates/programs/build.rs lists what is generated")
        })
    }
}

/// Compile the program, with its constants. What it includes is looked for beside it.
fn program(table: &mut Reader<'_>, dir: &Path) -> Result<ir::Program, Diagnostic> {
    let file = files::read(table, "program", dir)?;
    let constants = table.or("constants", Constants(BTreeMap::new()))?;
    let constants: Vec<(String, u128)> = constants.0.into_iter().collect();
    let dir = file.path.parent().unwrap_or(Path::new("")).to_owned();
    let main = file.source.name.clone();
    let text_of = |name: &str| {
        if name == main {
            Some(file.source.text.clone())
        } else {
            files::read_text(&dir.join(name)).ok()
        }
    };
    nic::p4::compile(&text_of, &main, &constants).map_err(|errors| located(table, &errors))
}

/// The first error of the compiler, drawn in its file.
fn located(table: &Reader<'_>, errors: &[nic::p4::Diagnostic]) -> Diagnostic {
    let Some(error) = errors.first() else {
        return table.error("program", "the program cannot be compiled", "this one");
    };
    let message = match errors.len() {
        1 => error.message.clone(),
        n => format!("{} (and {} more)", error.message, n - 1),
    };
    let name = error.file().to_owned();
    let source = Arc::new(Source { name, text: error.source.text.clone() });
    let diagnostic = Diagnostic::new(message).at(&source, error.span.clone(), "here");
    if error.hint.is_empty() { diagnostic } else { diagnostic.hint(error.hint.clone()) }
}

/// Values of the program's constants, by name.
struct Constants(BTreeMap<String, u128>);

impl Knob for Constants {
    const EXAMPLE: &'static str = "{ TRIM = true }";
    fn read(value: &Value) -> Result<Self, String> {
        let Value::Table(table) = value else {
            return Err(format!("a table of constants is wanted, not {}", value.kind()));
        };
        let constant = |name: &String, value: &Value| match value {
            Value::Boolean(value) => Ok((name.clone(), u128::from(*value))),
            Value::Integer(n) => u128::try_from(*n)
                .map(|n| (name.clone(), n))
                .map_err(|_| format!("`{name}` is negative")),
            other => Err(format!("`{name}` is {}, not a number or true or false", other.kind())),
        };
        let read = table.iter().map(|(name, (_, node))| constant(name, &node.value));
        read.collect::<Result<_, _>>().map(Self)
    }
    fn show(&self) -> toml::Value {
        let number = |n: &u128| toml::Value::Integer(i64::try_from(*n).unwrap_or(i64::MAX));
        toml::Value::Table(self.0.iter().map(|(name, n)| (name.clone(), number(n))).collect())
    }
}
