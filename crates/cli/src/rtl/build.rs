//! `trimline rtl build`: a design in a directory by itself, whole or not at all.

use std::path::Path;
use std::{fs, io};

use rtl::package;
use scenario::{Diagnostic, Error};

use super::{Made, What};
use crate::args::RtlBuild;
use crate::p4::apart;
use crate::{Ended, Written, say, say_json};

/// `trimline rtl build PROGRAM --out DIR`.
pub(crate) fn build(args: &RtlBuild) -> Ended {
    let made = Made::new(&args.hardware, args.bytes)?;
    let files = match &made.what {
        What::Nic(nic) => package::of_nic(made.program(), &nic.0, &nic.1),
        What::Port(port) => package::of_switch(made.program(), &port.0),
        What::Pipelines(pipelines) => package::of_pipelines(made.program(), pipelines),
    };
    check_free(&args.out)?;
    write(&args.out, &files).map_err(|why| unwritable(&args.out, &why))?;
    let top = made.ports().top;
    let sources = made.texts().len();
    if args.json {
        return say_json(&Written { written: &args.out });
    }
    say(format_args!("{}: `{top}`, {sources} sources", args.out.display()))?;
    for spacing in &made.spacings {
        let name = &made.program().pipelines[spacing.pipeline.index()].name;
        say(format_args!("  {name}: packets {}", apart(made.program(), spacing)))?;
    }
    say(format_args!("  ports and what they mean: PORTS.md; for tools: {top}.f"))?;
    say("  an example that runs: python cocotb/run.py")
}

/// Nothing of anybody's is written over.
fn check_free(dir: &Path) -> Result<(), Error> {
    let taken = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(why) if why.kind() == io::ErrorKind::NotFound => false,
        Err(why) => return Err(unwritable(dir, &why)),
    };
    if taken {
        let error = Diagnostic::new(format!("{} is there, and it is not empty", dir.display()));
        return Err(error.hint("choose another directory with --out, or remove it").into());
    }
    Ok(())
}

/// Written beside `dir`, then renamed to it.
fn write(dir: &Path, files: &package::Files) -> io::Result<()> {
    let name = dir.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
    let own = format!(".{}.{}", name.to_string_lossy(), std::process::id());
    let own = dir.with_file_name(own);
    dir.parent().map_or(Ok(()), fs::create_dir_all)?;
    let written = files.iter().try_for_each(|(path, text)| {
        let path = own.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)
    });
    let published = written.and_then(|()| fs::rename(&own, dir));
    if published.is_err() {
        // What is left of it is of no use; why it is not there is said.
        let _ = fs::remove_dir_all(&own);
    }
    published
}

fn unwritable(dir: &Path, why: &io::Error) -> Error {
    let error = Diagnostic::new(format!("cannot write {}: {why}", dir.display()));
    error.hint("choose another directory with --out").into()
}
