//! P4 programs that scenarios name: `program`, `constants`, `entries`, `backend`.

mod entries;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use p4::interp::Machine;
use p4::ir;
use p4::program::{Externs, Program};
use p4::state::State;
use units::HostId;

pub use entries::Entries;

use crate::diagnostic::{Checked, Diagnostic, Source};
use crate::document::Value;
use crate::files;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::value::{Form, Refused, ScenarioValue, choices};

/// Who runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// A model of it in Rust, which shares nothing with it.
    Model,
    /// The reference.
    Interpreter,
    /// Generated code, for the programs of `p4/` with the constants that `programs` has.
    Rust,
    /// A circuit, in Verilator. On a clocked NIC.
    Rtl,
}

choices!(Backend,
    "model" => Backend::Model,
    "interpreter" => Backend::Interpreter,
    "rust" => Backend::Rust,
    "rtl" => Backend::Rtl);

/// A program, compiled.
pub(crate) struct Compiled {
    /// What it is.
    pub(crate) program: Arc<ir::Program>,
    entries: Entries,
    backend: Backend,
    /// Hosts whose NIC is a circuit; none: all, if that is the back end.
    pub(crate) rtl_hosts: Vec<u32>,
}

/// The programs that have a model, with what they include.
const SHIPPED: [(&str, &str); 5] = [
    ("ndp.p4", include_str!("../../../p4/ndp.p4")),
    ("ndp_rules.p4", include_str!("../../../p4/ndp_rules.p4")),
    ("homa.p4", include_str!("../../../p4/homa.p4")),
    ("homa_rules.p4", include_str!("../../../p4/homa_rules.p4")),
    ("headers.p4", include_str!("../../../p4/headers.p4")),
];

/// What a table says of the program that it names.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) program: PathBuf,
    constants: Constants,
    entries: Option<PathBuf>,
    pub(crate) backend: Option<Backend>,
    pub(crate) rtl_hosts: Vec<u32>,
}

keys! { pub(crate) PROGRAM: Named {
    program: PathBuf,
        "what runs: on a NIC NDP, Homa or Homa-Tr, or a program of your own"
            .range("the path of a `.p4` file; on a NIC also `ndp`, `homa`, `homa-tr`").written();
    backend (maybe backend): Backend,
        "who runs it: a model in Rust (of the first three on a NIC), the reference interpreter, or \
         Rust generated when Trimline was built (the programs of `p4/`, with the constants that \
         `crates/programs/build.rs` lists), or a circuit that is simulated cycle by cycle (a NIC \
         with `clocked = true`: [nic.md](nic.md#in-hardware)). Results are the same"
            .default("the quickest that there is");
    rtl_hosts (rtl_hosts when Named::is_rtl): Vec<u32>,
        "hosts whose NIC is the circuit; the others run the model of it".range("numbers of hosts")
            .default("all").only("`backend = \"rtl\"`");
    constants (constants when Named::is_file): Constants,
        "other values for constants of the program, `constants = { TRIM = true }`; which there \
         are, it says".range("integers and booleans").default("none").only(FILE);
    entries (maybe entries when Named::is_file): PathBuf,
        "entries for the program's tables, [p4.md](p4.md#entries-of-tables)"
            .default("none").only(FILE);
}}

const FILE: &str = "a `program` in a file";

impl Named {
    /// Read what `table` says.
    pub(crate) fn read(table: &mut Reader<'_>) -> Checked<Self> {
        let mut named = Self::default();
        table.all_keys(PROGRAM, &mut named)?;
        Ok(named)
    }

    fn is_rtl(&self) -> bool {
        self.backend == Some(Backend::Rtl)
    }

    fn is_file(&self) -> bool {
        self.program.extension().is_some_and(|end| end == "p4")
    }
}

/// For the reference.
pub(crate) fn keys() -> Section {
    section("program", PROGRAM, &[], Some(&Named::default()))
}

impl Compiled {
    /// What `named` says, with paths relative to `dir`.
    pub(crate) fn new(table: &mut Reader<'_>, dir: &Path, named: Named) -> Checked<Self> {
        let program = Arc::new(program(table, dir, named.constants)?);
        let entries = match named.entries {
            None => Entries::default(),
            Some(_) => {
                let file = files::read_noting(table, "entries", dir, "entries_fingerprint")?;
                Entries::read(&program, &file.source.name, &file.source.text)?
            }
        };
        let generated = programs::is_generated(&program);
        let usual = if generated { Backend::Rust } else { Backend::Interpreter };
        let backend = named.backend.unwrap_or(usual);
        table.resolve("backend", &backend);
        Ok(Self { program, entries, backend, rtl_hosts: named.rtl_hosts })
    }

    /// The program `file` of `p4/`, as this crate was built with it.
    pub(crate) fn shipped(
        table: &Reader<'_>,
        file: &str,
        constants: &[(String, i128)],
        backend: Backend,
    ) -> Checked<Self> {
        let text_of = |name: &str| {
            let found = SHIPPED.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("no {name}"))
        };
        let checked = p4::front::check(&text_of, file, constants);
        let program = checked.program.ok_or_else(|| {
            let error = table.error("program", "the program cannot be compiled", "this one");
            error.hint("leave out `backend`")
        })?;
        let (program, entries) = (Arc::new(program), Entries::default());
        Ok(Self { program, entries, backend, rtl_hosts: Vec::new() })
    }

    /// Whether a circuit runs it.
    pub(crate) fn is_rtl(&self) -> bool {
        self.backend == Backend::Rtl
    }

    /// Whether one runs it on the NIC of `host`.
    pub(crate) fn is_circuit(&self, host: HostId) -> bool {
        self.is_rtl() && (self.rtl_hosts.is_empty() || self.rtl_hosts.contains(&host.0))
    }

    /// The state in which it begins.
    pub(crate) fn state(&self) -> State {
        let mut state = State::new(Arc::clone(&self.program));
        self.entries.apply(&mut state);
        state
    }

    /// What runs it, in the state in which it begins; `None` if there is no code of it for the back
    /// end.
    pub(crate) fn runs<E: Externs + ?Sized>(&self) -> Option<Box<dyn Program<E>>> {
        let program = Arc::clone(&self.program);
        let mut runs: Box<dyn Program<E>> = match self.backend {
            Backend::Model => return None,
            Backend::Interpreter => Box::new(Machine::new(program)),
            Backend::Rust => programs::find(program)?,
            // Of hosts whose NIC is no circuit.
            Backend::Rtl if programs::is_generated(&program) => programs::find(program)?,
            Backend::Rtl => Box::new(Machine::new(program)),
        };
        self.entries.apply(runs.state());
        Some(runs)
    }

    /// As `runs`, with an error that names the key in the table that the program is from.
    pub(crate) fn first<E: Externs + ?Sized>(
        &self,
        table: &Reader<'_>,
    ) -> Checked<Box<dyn Program<E>>> {
        self.runs().ok_or_else(|| {
            let (what, hint) = match self.backend {
                Backend::Model => ("model", "use `program = \"ndp\"`, `\"homa\"` or `\"homa-tr\"`"),
                _ => ("generated Rust", "crates/programs/build.rs lists what is generated"),
            };
            let message = format!("there is no {what} of this program with these constants");
            let error = table.error("backend", message, "not this one");
            error.hint(format!("leave it out, or use \"interpreter\"; {hint}"))
        })
    }
}

/// Compile the program, with its constants. What it includes is looked for beside it.
fn program(table: &mut Reader<'_>, dir: &Path, constants: Constants) -> Checked<ir::Program> {
    let file = files::read(table, "program", dir)?;
    let constants: Vec<(String, i128)> = constants.0.into_iter().collect();
    let dir = file.path.parent().unwrap_or(Path::new(""));
    let mut included = String::new();
    let mut checked = compile(&file.source, dir, &constants, &mut included);
    if !included.is_empty() {
        files::unchanged_text(table, "includes_fingerprint", &included)?;
    }
    if let Some(program) = checked.program {
        checked.warnings.into_iter().for_each(|warning| table.warn(warning));
        return Ok(program);
    }
    let more = checked.errors.len().saturating_sub(1);
    Err(match checked.errors.drain(..).next() {
        Some(first) if more > 0 => first.remark(&format!("and {more} more")),
        Some(only) => only,
        None => table.error("program", "the program cannot be compiled", "this one"),
    })
}

/// What the P4 compiler made of a program, and what it says of it.
#[derive(Debug)]
pub struct CheckedProgram {
    /// The program, if it has no errors.
    pub program: Option<ir::Program>,
    /// Why it has none, in the order of the places.
    pub errors: Vec<Diagnostic>,
    /// What may mean something else than was meant.
    pub warnings: Vec<Diagnostic>,
}

/// Compile the P4 program `main`, whose file is in `dir`; what it includes in quotes is looked for
/// there. `constants` replace the values of its constants of those names.
#[must_use]
pub fn check_program(
    main: &Arc<Source>,
    dir: &Path,
    constants: &[(String, i128)],
) -> CheckedProgram {
    compile(main, dir, constants, &mut String::new())
}

/// The same; what is included is appended to `included`.
fn compile(
    main: &Arc<Source>,
    dir: &Path,
    constants: &[(String, i128)],
    included: &mut String,
) -> CheckedProgram {
    let read = RefCell::new(included);
    let text_of = |name: &str| match name == main.name {
        true => Ok(main.text.clone()),
        false => {
            let text = files::read_text(&dir.join(name))?;
            read.borrow_mut().push_str(&text);
            Ok(text)
        }
    };
    let p4::front::Compiled { program, diagnostics } =
        p4::front::check(&text_of, &main.name, constants);
    let (warnings, errors) =
        diagnostics.iter().partition::<Vec<_>, _>(|d| d.severity == p4::front::Severity::Warning);
    let drawn = |all: Vec<_>| all.into_iter().map(|found| located(found, main)).collect();
    CheckedProgram {
        program,
        errors: drawn(errors),
        warnings: drawn(warnings).into_iter().map(Diagnostic::warning).collect(),
    }
}

/// What the compiler found in `main` or in what it includes, which is named as seen from `main`.
fn located(found: &p4::front::Diagnostic, main: &Source) -> Diagnostic {
    let mut name = found.file().to_owned();
    if name != main.name && !name.starts_with('<') {
        name = Path::new(&main.name).with_file_name(name).display().to_string();
    }
    let source = Arc::new(Source { name, text: found.source.text.clone() });
    let diagnostic = Diagnostic::new(&found.message).at(&source, found.span.clone(), "here");
    if found.hint.is_empty() { diagnostic } else { diagnostic.hint(&found.hint) }
}

/// Values of the program's constants, by name.
#[derive(Clone, Default)]
struct Constants(BTreeMap<String, i128>);

impl ScenarioValue for Constants {
    fn form() -> Form {
        Form::new("table", "{ TRIM = true }", "object")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let Value::Table(table) = value else {
            return Err(format!("a table of constants is wanted, not {}", value.kind()).into());
        };
        let constant = |name: &String, value: &Value| match value {
            Value::Boolean(value) => Ok((name.clone(), i128::from(*value))),
            Value::Integer(n) => Ok((name.clone(), i128::from(*n))),
            other => {
                Err(format!("`{name}` is {}, not a number or true or false", other.kind()).into())
            }
        };
        let read = table.iter().map(|(name, (_, node))| constant(name, &node.value));
        read.collect::<Result<_, _>>().map(Self)
    }
    fn show(&self) -> toml::Value {
        let number = |n: &i128| toml::Value::Integer(i64::try_from(*n).unwrap_or(i64::MAX));
        toml::Value::Table(self.0.iter().map(|(name, n)| (name.clone(), number(n))).collect())
    }
}
