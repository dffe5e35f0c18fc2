//! `placement = "file"`: a host for each rank of a job, one a line.

use std::sync::Arc;

use ai::{Placement, PlacementError};
use units::HostId;
use workload::text;

use super::Context;
use crate::diagnostic::{Checked, Diagnostic, Source};
use crate::files;

/// The hosts that a file names, rank by rank.
pub(super) struct Listed {
    source: Arc<Source>,
    hosts: Vec<HostId>,
    /// By rank: where its host stands, as it stands there.
    places: Vec<(text::Place, String)>,
}

/// The file that `placement_file` names, if the keys say that ranks are placed so. Hosts must be
/// among `allowed`.
pub(super) fn read(cx: &mut Context<'_, '_>, allowed: &[HostId]) -> Checked<Option<Listed>> {
    if cx.table.peek::<String>("placement").as_deref() != Some("file") {
        return Ok(None);
    }
    let file = files::read_noting(cx.table, "placement_file", cx.dir, "placement")?;
    let mut listed = Listed { source: file.source, hosts: Vec::new(), places: Vec::new() };
    let source = Arc::clone(&listed.source);
    let text = text::Source::new(&source.text, &source.name);
    let located = |error: text::TextError| files::located(&source, &error);
    for line in text.lines(char::is_whitespace) {
        let word = line.first();
        let host = text.whole_u32(word, "a host").map_err(located)?;
        if let Some(second) = line.words().get(1) {
            let error = text.wrong(*second, "more than a host in a line", "one host a line");
            return Err(located(error));
        }
        if !allowed.contains(&HostId(host)) {
            let message = "no host of this job";
            let hint = "a host of the fabric, and of `hosts` if that is written";
            return Err(located(text.wrong(word, message, hint)));
        }
        listed.hosts.push(HostId(host));
        listed.places.push((word.at, word.text.to_owned()));
    }
    if listed.hosts.is_empty() {
        let hint = "write a host for each rank, one a line";
        return Err(located(text.missing(text.end(), "no ranks are placed", hint)));
    }
    Ok(Some(listed))
}

impl Listed {
    /// How many ranks it places.
    pub(super) fn len(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// The placement of a job with `ranks` ranks, up to `per_host` on a host.
    pub(super) fn of_job(
        &self,
        cx: &Context<'_, '_>,
        (ranks, per_host): (u32, u32),
    ) -> Checked<Placement> {
        if ranks != self.len() {
            let message = format!("{} ranks are placed, and the job has {ranks}", self.len());
            let error = cx.table.error("placement_file", message, "as many lines as ranks");
            return Err(error.hint("a host for each rank, one a line"));
        }
        Placement::listed(&self.hosts, per_host).map_err(|why| match why {
            PlacementError::Crowded { rank, .. } => self.wrong(rank, &why.to_string()),
            _ => cx.table.error("ranks_per_host", why.to_string(), "here"),
        })
    }

    /// An error where the host of `rank` stands.
    fn wrong(&self, rank: u32, message: &str) -> Diagnostic {
        let text = text::Source::new(&self.source.text, &self.source.name);
        let (at, word) = &self.places[rank as usize];
        let hint = "another host, or more `ranks_per_host`";
        let error = text.wrong(text::Word { text: word, at: *at }, message, hint);
        files::located(&self.source, &error)
    }
}
