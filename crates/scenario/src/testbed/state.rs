//! [`Testbed`]: the namespaces of a testbed, and the file that says which they are. It is written
//! before the first of them is made, so that what a crash leaves can be found.

use std::fs;
use std::path::{Path, PathBuf};

use fabric::{Node, Topology};
use switch::netns::{self, NetnsError};

use super::check;
use crate::diagnostic::{Checked, Diagnostic};

/// Where the files are: gone after a restart, as namespaces are.
const STATE: &str = "/run/trimline";

/// The namespaces of a testbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Testbed {
    name: String,
    /// What its links take, bytes from IP on.
    mtu: u32,
    namespaces: Vec<String>,
}

impl Testbed {
    /// Make those of `topology`.
    pub(super) fn up(name: &str, topology: &Topology, mtu: u32) -> Checked<Self> {
        check::name(name)?;
        if path(name).exists() {
            let error =
                Diagnostic::new(format!("the testbed {name} is up, or was left by a crash"));
            return Err(error.hint(format!("`trimline testbed down --name {name}` first")));
        }
        let prefix = prefix(name);
        let bed = Self { name: name.to_owned(), mtu, namespaces: netns::names(&prefix, topology) };
        // Before the state file says that they are ours: is anything there that is not?
        if let Some(other) = bed.namespaces.iter().find(|name| netns::exists(name)) {
            let error = Diagnostic::new(format!("there is a network namespace {other} already"));
            return Err(error.hint("it is no testbed's: another --name, or `ip netns del` it"));
        }
        bed.write()?;
        netns::up(&prefix, topology, mtu).map_err(|error| {
            let _ = fs::remove_file(path(name));
            of_netns(&error)
        })?;
        Ok(bed)
    }

    /// The one called `name`.
    pub(super) fn find(name: &str) -> Checked<Self> {
        check::name(name)?;
        let none = |why: String| {
            let error = Diagnostic::new(format!("there is no testbed {name}: {why}"));
            error.hint("`trimline testbed up FILE.toml` makes one")
        };
        let file = path(name);
        let text =
            fs::read_to_string(&file).map_err(|e| none(format!("{}: {e}", file.display())))?;
        let mut lines = text.lines();
        let mtu = lines.next().and_then(|line| line.strip_prefix("mtu ")?.parse().ok());
        let mtu = mtu.ok_or_else(|| none(format!("{} is none's", file.display())))?;
        // Only names of ours, whatever the file says.
        let mine = |line: &&str| line.starts_with(&prefix(name));
        let namespaces = lines.filter(mine).map(str::to_owned).collect();
        Ok(Self { name: name.to_owned(), mtu, namespaces })
    }

    /// Remove what there is of it, and how many namespaces that was.
    pub(super) fn down(&self) -> Checked<usize> {
        let there: Vec<&String> =
            self.namespaces.iter().filter(|name| netns::exists(name)).collect();
        let count = there.len();
        netns::down(there).map_err(|error| of_netns(&error))?;
        let file = path(&self.name);
        fs::remove_file(&file).map_err(|e| unwritable(&file, &e))?;
        Ok(count)
    }

    /// Whether it is one of `topology` with packets that need `mtu`, and all there.
    pub(super) fn check(&self, topology: &Topology, mtu: u32) -> Checked<()> {
        let anew =
            format!("`trimline testbed down` and `up`, with this file and --name {}", self.name);
        let refuse = |what: String| Err(Diagnostic::new(what).hint(&anew));
        if self.namespaces != netns::names(&prefix(&self.name), topology) {
            return refuse(format!("the testbed {} has another topology", self.name));
        }
        if let Some(gone) = self.namespaces.iter().find(|name| !netns::exists(name)) {
            return refuse(format!("the network namespace {gone} is gone"));
        }
        if self.mtu < mtu {
            let have = self.mtu;
            return refuse(format!(
                "the links of the testbed take {have} bytes, packets have {mtu}"
            ));
        }
        Ok(())
    }

    /// The namespaces, hosts first.
    #[must_use]
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// The namespace of `node`.
    pub(super) fn namespace(&self, node: Node) -> String {
        netns::name(&prefix(&self.name), node)
    }

    fn write(&self) -> Checked<()> {
        let file = path(&self.name);
        let mut text = format!("mtu {}\n", self.mtu);
        self.namespaces.iter().for_each(|name| text += &format!("{name}\n"));
        let written = fs::create_dir_all(STATE).and_then(|()| fs::write(&file, text));
        written.map_err(|e| unwritable(&file, &e))
    }
}

fn prefix(name: &str) -> String {
    format!("tl-{name}")
}

fn path(name: &str) -> PathBuf {
    Path::new(STATE).join(name)
}

fn unwritable(file: &Path, error: &std::io::Error) -> Diagnostic {
    let error = Diagnostic::new(format!("cannot write {}: {error}", file.display()));
    error.hint("be root, or run inside `unshare -Urnm` after `mount -t tmpfs tmpfs /run`")
}

fn of_netns(error: &NetnsError) -> Diagnostic {
    let hint = match error {
        NetnsError::Stale(name) => format!("`ip netns del {name}`, or another --name"),
        _ => "be root, or run inside `unshare -Urnm` after `mount -t tmpfs tmpfs /run`".to_owned(),
    };
    Diagnostic::new(error.to_string()).hint(hint)
}
