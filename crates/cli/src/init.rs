//! `trimline init`: a first scenario with comments, from the answers to three questions.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;

use scenario::{Diagnostic, Error};

use crate::{Ended, args, say_written, tell, write_new};

/// An answer: its name, what it is, and its part of the scenario.
struct Answer {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

/// A question, and the answers to it; the first is the default.
pub(crate) struct Question {
    asks: &'static str,
    answers: &'static [Answer],
}

pub(crate) const FABRIC: Question = Question {
    asks: "Which fabric?",
    answers: &[
        Answer {
            name: "leaf-spine",
            about: "32 hosts: four leaves with eight each, four spines",
            text: r#"[topology]
kind = "leaf-spine"
leaves = 4
spines = 4
hosts_per_leaf = 8
link_rate = "10Gbps"
uplink_rate = "20Gbps"      # eight hosts share four of them: no oversubscription
link_delay = "1us"
"#,
        },
        Answer {
            name: "star",
            about: "16 hosts around one switch",
            text: r#"[topology]
kind = "star"
hosts = 16
link_rate = "10Gbps"
link_delay = "1us"
"#,
        },
        Answer {
            name: "fat-tree",
            about: "128 hosts: three tiers of switches with eight ports",
            text: r#"[topology]
kind = "fat-tree"
k = 8                       # ports of a switch; k^3 / 4 hosts
link_rate = "10Gbps"
link_delay = "1us"
"#,
        },
    ],
};

/// With the queue and the routing that the publication has.
pub(crate) const TRANSPORT: Question = Question {
    asks: "Which transport?",
    answers: &[
        Answer {
            name: "ndp",
            about: "NDP: switches trim packets, receivers pull them",
            text: r#"[queue]                     # of each switch port
kind = "ndp"
capacity = "8 packets"      # what does not fit is trimmed to its header

[routing]
mode = "permute"            # the sender sprays packets over all paths

[transport]
kind = "ndp"
preset = "paper"            # published values; any key below changes one of them
payload = "9000B"
initial_window = 12         # packets sent before the first pull
"#,
        },
        Answer {
            name: "dctcp",
            about: "DCTCP: switches mark packets, senders slow down in proportion",
            text: r#"[queue]                     # of each switch port
kind = "drop-tail"
capacity = "700 packets"
ecn_threshold = "65 packets"

[routing]
mode = "ecmp"               # a connection takes one of the paths

[transport]
kind = "tcp"
rule = "dctcp"
recovery = "sack"
ecn = true
preset = "linux-datacenter" # published values; any key below changes one of them
mss = "1460B"
"#,
        },
        Answer {
            name: "newreno",
            about: "TCP NewReno over drop-tail queues",
            text: r#"[queue]                     # of each switch port
kind = "drop-tail"
capacity = "100 packets"

[routing]
mode = "ecmp"               # a connection takes one of the paths

[transport]
kind = "tcp"
rule = "newreno"
recovery = "sack"
ecn = false
preset = "linux-datacenter" # published values; any key below changes one of them
mss = "1460B"
"#,
        },
        Answer {
            name: "dcqcn",
            about: "DCQCN: RDMA over a lossless fabric",
            text: r#"[queue]                     # of each switch port
kind = "lossless"           # switches pause their neighbours before they lose packets
preset = "hpcc"
headroom = "auto"           # for what comes after a pause was asked for
ecn = { min = "5KB", max = "200KB", probability = 0.01, at = "departure" }

[routing]
mode = "ecmp"               # a queue pair takes one of the paths

[transport]
kind = "rdma"
rule = "dcqcn"              # or "hpcc", "swift", "timely"; docs/lossless.md
preset = "paper"            # published values; any key below changes one of them
payload = "1000B"
"#,
        },
    ],
};

pub(crate) const TRAFFIC: Question = Question {
    asks: "Which traffic?",
    answers: &[
        Answer {
            name: "rpc",
            about: "short messages of Google's RPC sizes, at 30 % of the hosts' rate",
            text: r#"[traffic]
kind = "poisson"            # messages at random instants, between random hosts
distribution = "google-rpc" # `trimline list workloads` names others
load = 0.3                  # of the hosts' links

[measure]                   # what is submitted meanwhile counts
from = "1ms"
to = "5ms"
limit = "50ms"              # the run ends then, whatever is unfinished
"#,
        },
        Answer {
            name: "web-search",
            about: "long and short messages of a web search, at 30 % of the hosts' rate",
            text: r#"[traffic]
kind = "poisson"            # messages at random instants, between random hosts
distribution = "web-search" # `trimline list workloads` names others
load = 0.3                  # of the hosts' links

[measure]                   # what is submitted meanwhile counts
from = "5ms"
to = "25ms"
limit = "500ms"             # the run ends then, whatever is unfinished
"#,
        },
        Answer {
            name: "incast",
            about: "twelve hosts send 100 KB each to one, all at once",
            text: r#"[traffic]
kind = "incast"
senders = 12
receiver = 0
size = "100KB"

[measure]
limit = "2s"                # the run ends then, whatever is unfinished
"#,
        },
    ],
};

/// `trimline init`.
pub(crate) fn init(args: &args::Init) -> Ended {
    let asked = [&args.fabric, &args.transport, &args.traffic];
    let mut answers = Vec::new();
    for (question, asked) in [&FABRIC, &TRANSPORT, &TRAFFIC].into_iter().zip(asked) {
        answers.push(question.answer(asked.as_deref())?);
    }
    let file = &args.file;
    let text = scenario(file, &answers);
    let unwritable = |why: String| {
        let error = Diagnostic::new(format!("cannot write {}: {why}", file.display()));
        Error::from(error.hint("name another file"))
    };
    write_new(file, &text).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => unwritable("it is there already".to_owned()),
        _ => unwritable(e.to_string()),
    })?;
    let name = file.display();
    let next = format_args!("try: trimline check {name}, then: trimline run {name}");
    say_written(args.json, file, format_args!("{name} is written; {next}"))
}

fn scenario(file: &Path, answers: &[&Answer]) -> String {
    let name = file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy();
    let about: Vec<String> =
        answers.iter().map(|a| format!("# {}: {}\n", a.name, a.about)).collect();
    let parts: Vec<&str> = answers.iter().map(|answer| answer.text).collect();
    format!(
        "{}# Every key: docs/scenario-reference.md, or `trimline list keys`.\nname = {}\n\
         seed = 1                    # of every draw: the same seed, the same result\n\n{}",
        about.concat(),
        serde_json::Value::from(&*name),
        parts.join("\n")
    )
}

impl Question {
    /// What the answers are called.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.answers.iter().map(|answer| answer.name).collect()
    }

    /// The answer called `asked`; otherwise who sits at the terminal is asked, or it is the
    /// default.
    fn answer(&self, asked: Option<&str>) -> Result<&Answer, Diagnostic> {
        if let Some(name) = asked {
            return self.named(name);
        }
        if !io::stdin().is_terminal() {
            return Ok(&self.answers[0]);
        }
        tell(format_args!("{}\n", self.asks));
        for Answer { name, about, .. } in self.answers {
            tell(format_args!("  {name:<12} {about}\n"));
        }
        tell(format_args!("[{}] ", self.answers[0].name));
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.map_err(|e| Diagnostic::new(format!("cannot read the answer: {e}")))?;
        match line.trim() {
            "" => Ok(&self.answers[0]),
            name => self.named(name),
        }
    }

    fn named(&self, name: &str) -> Result<&Answer, Diagnostic> {
        self.answers.iter().find(|answer| answer.name == name).ok_or_else(|| {
            let error = Diagnostic::new(format!("{} `{name}` is no answer", self.asks));
            error.hint(format!("one of: {}", self.names().join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use ::scenario::{Options, Scenario, simulate};

    use super::*;

    /// Whatever the answers are, nothing in the scenario looks wrong; and it runs.
    #[test]
    fn every_scenario_runs() {
        for fabric in FABRIC.answers {
            for transport in TRANSPORT.answers {
                for traffic in TRAFFIC.answers {
                    let text = scenario(Path::new("my first.toml"), &[fabric, transport, traffic]);
                    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
                    let read = Scenario::parse("x.toml", &text, Path::new(""), &[]);
                    let read = read.unwrap_or_else(|e| panic!("{text}\n{}", e.render(false)));
                    assert!(read.warnings().is_empty(), "{text}");
                    // Others take seconds.
                    if fabric.name == "star" && traffic.name != "web-search" {
                        nearly_all_arrives(&read, &text);
                    }
                }
            }
        }
    }

    fn nearly_all_arrives(read: &Scenario, text: &str) {
        let simulated = simulate(read, &Options::default(), &mut |_| ()).unwrap();
        let measured: Vec<_> = simulated.flows.iter().filter(|flow| flow.measured).collect();
        let arrived = measured.iter().filter(|flow| flow.finish.is_some()).count();
        // TCP's timeouts are longer than the run.
        assert!(measured.len() >= 12 && arrived * 100 >= measured.len() * 99, "{text}");
    }

    #[test]
    fn answers_are_known_by_name() {
        assert_eq!(TRANSPORT.answer(Some("dctcp")).unwrap().name, "dctcp");
        let wrong = TRANSPORT.answer(Some("tcp")).err().unwrap().render(false);
        assert!(wrong.contains("Which transport? `tcp` is no answer"), "{wrong}");
        assert!(wrong.contains("one of: ndp, dctcp"), "{wrong}");
    }
}
